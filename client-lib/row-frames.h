/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Converts a reply of NextRows to the frames that a pipe would have brought (sqlipc-page.h), for the same decoder, so that
 * the cursor gets rows in one form from all transports. Library.
 *
 * Each row becomes a BIG_ROW of its own, which a decoder accepts in any size, and returns in place.
 */
#ifndef SQLIPC_CLIENT_LIB_ROW_FRAMES_H
#define SQLIPC_CLIENT_LIB_ROW_FRAMES_H

#include <systemd/sd-bus.h>

#include "client-lib/buffer.h"

/* Appends the content of `reply`: COLUMNS if `*n_columns` is 0, which is then set; the rows; END if this is the last
 * reply, otherwise `*ret_more` is set. Returns a negative errno if the reply does not match the interface, or if there is
 * no memory; nothing is appended then. */
int row_frames_append(Buffer *frames, sd_bus_message *reply, unsigned *n_columns, bool *ret_more);

#endif
