/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One call that waits, synchronous or not: query, next, commit and the like. GLib library.
 *
 * An operation has one function, try(), which asks libsqlipc again until the answer is there. It runs in the loop of the
 * connection (glib-connection.h), or, for a synchronous call, in operation_wait(). Nothing of the program is called while
 * libsqlipc calls back: a callback only puts the operation into the connection's queue.
 *
 *      operation_new() ─▶ WAITING ◀──▶ QUEUED ─▶ DONE ─▶ the result is taken from it by the _finish() function
 *
 * A synchronous operation belongs to its caller, an asynchronous one to its task.
 *
 * A cancelled operation fails with G_IO_ERROR_CANCELLED only if it is certain that nothing was written: it never sent
 * anything that writes, or the service says so. If the service had done it before, the operation succeeds. Otherwise it
 * fails with SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN.
 */
#ifndef SQLIPC_CLIENT_LIB_GLIB_OPERATION_H
#define SQLIPC_CLIENT_LIB_GLIB_OPERATION_H

#include <gio/gio.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-lib/glib/sqlipc-glib.h"
#include "client-lib/sqlipc.h"

typedef enum Outcome {
        OUTCOME_WAIT,   /* a callback of libsqlipc will wake the operation */
        OUTCOME_AGAIN,  /* there is more to do, after a turn of the loop */
        OUTCOME_DONE,
        OUTCOME_FAILED, /* the error is set */
} Outcome;

typedef struct Operation Operation;

struct Operation {
        SqlipcConnection *connection; /* a reference */
        GObject *owner;               /* the object that it was called on; a reference */
        GTask *task;                  /* NULL: synchronous; else not a reference, because the task owns the operation */
        GCancellable *cancellable;
        GSource *cancel_source;       /* that waits for the cancellation, and then for the limit after it; NULL: none */
        GList queue_link, pending_link; /* in the connection's lists */
        bool queued, pending, cancelled, done;
        Outcome (*try)(Operation *o, GError **error);
        /* For a cancellation. True: something was sent that may write, so that only the service knows if it has: try() is
         * asked for the answer, within SQLIPC_CANCEL_WAIT_USEC at most. NULL, or false: the operation ends at once. */
        bool (*may_write)(const Operation *o);
        void (*cancel)(Operation *o); /* asks the service to end what may write; NULL: it cannot */
        const char *fact;             /* that is unknown without an answer, for the error; needed with may_write() */
        /* Gives up what it holds. Called once, at its end; `failed`: also if it was cancelled. */
        void (*release)(Operation *o, bool failed);

        /* For the functions above. */
        void *handle;                 /* of libsqlipc */
        void *data;
        GVariant *rows;
        gsize position;
        bool flag;

        /* The result. */
        GObject *result;
        gint64 changes, last_rowid;
};

/* Creates an operation on `owner`. */
Operation *operation_new(SqlipcConnection *connection, gpointer owner, GCancellable *cancellable);

/* Makes it asynchronous: its task, with the library's function `tag`, calls `callback` at the end. */
void operation_set_task(Operation *o, gpointer tag, GAsyncReadyCallback callback, gpointer user_data);

/* Starts an asynchronous operation, which was prepared. `error`: it has failed already (taken). */
void operation_start(Operation *o, GError *error);

/* Runs a synchronous operation to its end. `error`: it has failed already (taken). */
gboolean operation_run(Operation *o, GError *failure, GError **error);

/* To be tried again in the next turn of the loop. */
void operation_wake(Operation *o);

/* Tries it once. The connection calls this. */
void operation_step(Operation *o);

/* For _finish(): the operation of this result, which has succeeded; else NULL with the error. Borrowed. */
Operation *operation_finish(gpointer owner, GAsyncResult *result, gpointer tag, GError **error);

/* Takes the result from it. */
gpointer operation_take(Operation *o);

Operation *operation_free(Operation *o);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Operation, operation_free)

#endif
