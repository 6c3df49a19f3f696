/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One connection of libsqlipc in a main context: its GSource, and the queue of operations that should be tried again. GLib
 * library.
 *
 * The handle never blocks. The source waits for its descriptor until its timeout, calls sqlipc_process(), and then tries
 * each operation that the callbacks have put into the queue. A synchronous call does the same for itself alone, in poll();
 * what it has processed for others stays in the queue, for the source.
 */
#ifndef SQLIPC_CLIENT_LIB_GLIB_GLIB_CONNECTION_H
#define SQLIPC_CLIENT_LIB_GLIB_GLIB_CONNECTION_H

#include <stdbool.h>

#include "client-lib/glib/operation.h"
#include "client-lib/sqlipc.h"

/* Borrowed. */
sqlipc_connection *connection_handle(SqlipcConnection *self);
GMainContext *connection_context(SqlipcConnection *self);

/* The asynchronous operations that have not ended, which close() must end. */
void connection_add(SqlipcConnection *self, Operation *o);
void connection_remove(SqlipcConnection *self, Operation *o);

/* Tries all of them again: an object was closed, so there are no callbacks. */
void connection_wake_all(SqlipcConnection *self);

/* The queue of those to try again. */
void connection_queue(SqlipcConnection *self, Operation *o);
void connection_forget(SqlipcConnection *self, Operation *o);

/* Waits until something came, `cancellable` is cancelled, or the monotonic time is `until`, and processes it. `again`: does
 * not wait. */
bool connection_wait(SqlipcConnection *self, bool again, GCancellable *cancellable, gint64 until, GError **error);

/* Notes the details of an error that is returned to the program. */
void connection_note_error(SqlipcConnection *self, const GError *error);

#endif
