/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cursors: the rows of a run, which libsqlipc gives by the block and programs take one by one or by the block. GLib
 * library. */
#ifndef SQLIPC_CLIENT_LIB_GLIB_GLIB_CURSOR_H
#define SQLIPC_CLIENT_LIB_GLIB_GLIB_CURSOR_H

#include "client-lib/glib/glib-row.h"
#include "client-lib/glib/operation.h"

/* Sends `handle`, a run that has just begun (taken; NULL: `r` is the failure), through the operation: its result is a cursor
 * that knows its columns and its first block. `owner` is the object that the run must not outlive; NULL: none. */
void cursor_prepare_query(Operation *o, sqlipc_cursor *handle, GObject *owner);

/* The same for a run of the library's own, which changes nothing: it ends at once if it is cancelled. */
void cursor_prepare_read(Operation *o, sqlipc_cursor *handle, GObject *owner);

/* The same for a run whose rows are dropped: its result is what it has changed. */
void cursor_prepare_execute(Operation *o, sqlipc_cursor *handle);

/* Borrowed. */
Columns *cursor_columns(SqlipcCursor *self);

#endif
