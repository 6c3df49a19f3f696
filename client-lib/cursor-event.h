/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events that a fetch brings to its cursor: rows, the end, errors, the loss of worker or daemon. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_CURSOR_EVENT_H
#define SQLIPC_CLIENT_LIB_CURSOR_EVENT_H

#include "client-lib/cursor.h"

/* Handles `event`, a result of fetch_next(), of a cursor that is RUNNING. 1: a row; 0: look at the state again; -EAGAIN. */
int cursor_event(sqlipc_cursor *c, int event);

#endif
