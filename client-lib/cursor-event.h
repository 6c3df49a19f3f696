/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events that a fetch brings to its cursor: rows, the end, errors, the loss of worker or daemon. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_CURSOR_EVENT_H
#define SQLIPC_CLIENT_LIB_CURSOR_EVENT_H

#include "client-lib/cursor.h"

/* Handles `event`, a result of fetch_next(), of a cursor that is RUNNING. 1: a row; 0: look at the state again; -EAGAIN. */
int cursor_event(sqlipc_cursor *c, int event);

/* A run that was sent is lost, and may have changed something: asks the service if its SQL changes nothing. If so, the run
 * is sent again unless the program has rows of it. Otherwise the cursor fails, and its outcome is unknown if the SQL may
 * write. `failure`: the error reply to the run; NULL: its stream ended. False: the service cannot be asked, or `failure` is
 * something else. */
bool cursor_event_ask_if_it_reads(sqlipc_cursor *c, sd_bus_message *failure);

#endif
