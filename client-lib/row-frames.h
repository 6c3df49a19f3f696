/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A reply of NextRows -> the frames that a pipe would have brought (sqlipc-page.h), for the decoder that reads those: so
 * rows come to the cursor in one form, whatever carried them. Library.
 *
 * Each row is a BIG_ROW of its own, which a decoder takes in any size, and hands out where it lies.
 */
#ifndef SQLIPC_ROW_FRAMES_H
#define SQLIPC_ROW_FRAMES_H

#include <systemd/sd-bus.h>

#include "buffer.h"

/* Appends what `reply` holds: COLUMNS where `*n_columns` is 0, which then has their number; the rows; END if it is the last.
 * `*ret_more`: it is not. Negative, where it is not what the interface describes or memory is short: nothing is appended. */
int row_frames_append(Buffer *frames, sd_bus_message *reply, unsigned *n_columns, bool *ret_more);

#endif
