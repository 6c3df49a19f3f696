/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that wait (operation.h). GLib library. */
#include "client-lib/glib/operation.h"

#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-error.h"

Operation *operation_new(SqlipcConnection *connection, gpointer owner, GCancellable *cancellable) {
        Operation *o = g_new(Operation, 1);

        *o = (Operation) { .connection = g_object_ref(connection), .owner = g_object_ref(owner),
                           .cancellable = cancellable ? g_object_ref(cancellable) : NULL };
        o->queue_link.data = o->pending_link.data = o;
        return o;
}

static void release(Operation *o, bool failed) {
        if (o->release)
                o->release(o, failed);
        o->release = NULL;
}

static void stop_cancelling(Operation *o) {
        if (o->cancel_source)
                g_source_destroy(o->cancel_source);
        g_clear_pointer(&o->cancel_source, g_source_unref);
}

Operation *operation_free(Operation *o) {
        if (!o)
                return NULL;
        stop_cancelling(o);
        connection_remove(o->connection, o);
        release(o, true);
        g_clear_pointer(&o->rows, g_variant_unref);
        g_clear_object(&o->result);
        g_clear_object(&o->cancellable);
        g_clear_object(&o->owner);
        g_clear_object(&o->connection);
        g_free(o);
        return NULL;
}

static void free_operation(gpointer data) {
        (void) operation_free(data);
}

void operation_set_task(Operation *o, gpointer tag, GAsyncReadyCallback callback, gpointer user_data) {
        o->task = g_task_new(o->owner, o->cancellable, callback, user_data);
        g_task_set_source_tag(o->task, tag);
        /* An outcome that is known must not be replaced by a cancellation that came after it. */
        g_task_set_check_cancellable(o->task, FALSE);
        g_task_set_task_data(o->task, o, free_operation);
}

void operation_wake(Operation *o) {
        if (!o->queued && !o->done)
                connection_queue(o->connection, o);
}

/* Ends it, with `error` (taken) or with success. An asynchronous one may be freed by that. */
static void end(Operation *o, GError *error) {
        GTask *task = o->task;

        o->done = true;
        stop_cancelling(o);
        connection_remove(o->connection, o);
        release(o, error != NULL);
        if (!task)
                return;
        o->task = NULL;
        if (error)
                g_task_return_error(task, error);
        else
                g_task_return_boolean(task, TRUE);
        g_object_unref(task);
}

static GError *cancelled_error(void) {
        return g_error_new_literal(G_IO_ERROR, G_IO_ERROR_CANCELLED, "The operation was cancelled.");
}

static GError *unknown_error(const Operation *o) {
        const char *why = o->cancelled ? "The operation was cancelled, and the service has not said how it ended."
                                       : "The program could not wait for the answer of the service.";

        return error_new_outcome_unknown(why, o->fact);
}

/* An answer that tells of our own cancellation is reported as GIO does. */
static GError *translate(Operation *o, GError *error) {
        if (!o->cancelled || !g_error_matches(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_CANCELLED))
                return error;
        g_error_free(error);
        return cancelled_error();
}

static bool may_write(const Operation *o) { return o->may_write && o->may_write(o); }

/* Returns false while it waits. */
static bool try_once(Operation *o, GError **error) {
        if (o->cancelled && !may_write(o)) { /* the service has said meanwhile that it only reads */
                *error = cancelled_error();
                return true;
        }
        switch (o->try(o, error)) {
        case OUTCOME_WAIT:
                return false;
        case OUTCOME_AGAIN:
                operation_wake(o);
                return false;
        case OUTCOME_DONE:
        case OUTCOME_FAILED:
                break;
        }
        return true;
}

void operation_step(Operation *o) {
        GError *error = NULL;

        if (!o->done && try_once(o, &error))
                end(o, error ? translate(o, error) : NULL);
}

/* Returns the error if the operation ends at once. */
static GError *cancel(Operation *o) {
        o->cancelled = true;
        if (!may_write(o))
                return cancelled_error();
        if (o->cancel)
                o->cancel(o);
        return NULL;
}

static void attach(Operation *o, GSource *source, GSourceFunc callback) {
        stop_cancelling(o);
        o->cancel_source = source;
        g_source_set_callback(source, callback, o, NULL);
        g_source_attach(source, connection_context(o->connection));
}

/* It was cancelled, and the limit has passed. */
static gboolean on_limit(gpointer data) {
        Operation *o = data;
        GError *error = NULL;

        if (!try_once(o, &error))
                error = unknown_error(o);
        end(o, error ? translate(o, error) : NULL);
        return G_SOURCE_REMOVE;
}

static void wait_for_outcome(Operation *o) { attach(o, g_timeout_source_new(SQLIPC_CANCEL_WAIT_USEC / 1000), on_limit); }

static gboolean on_cancelled(GCancellable *cancellable, gpointer data) {
        Operation *o = data;
        GError *error;

        (void) cancellable;
        error = cancel(o);
        if (error) {
                end(o, error);
        } else {
                wait_for_outcome(o);
                operation_wake(o);
        }
        return G_SOURCE_REMOVE;
}

void operation_start(Operation *o, GError *error) {
        bool cancelled = g_cancellable_is_cancelled(o->cancellable);

        if (!error && cancelled)
                error = cancel(o);
        if (error) {
                end(o, error);
                return;
        }
        if (cancelled)
                wait_for_outcome(o);
        else if (o->cancellable)
                attach(o, g_cancellable_source_new(o->cancellable), G_SOURCE_FUNC(on_cancelled));
        connection_add(o->connection, o);
        /* The first try is made at once: a row that is here already needs no turn of the loop. The callback of the program
         * still runs in a later turn, because the task was created in this one. */
        operation_step(o);
}

/* Waits for news. False: the operation ends, with the error if it is set. */
static bool wait_once(Operation *o, gint64 until, GError **error) {
        bool again = o->queued; /* it has more to do, and waits for nothing */

        connection_forget(o->connection, o);
        if (g_get_monotonic_time() >= until) {
                *error = unknown_error(o);
                return false;
        }
        if (connection_wait(o->connection, again, o->cancelled ? NULL : o->cancellable, until, error))
                return true;
        if (may_write(o)) { /* the failure to wait does not say if it was written */
                g_clear_error(error);
                if (!try_once(o, error))
                        *error = unknown_error(o);
        }
        return false;
}

gboolean operation_run(Operation *o, GError *failure, GError **error) {
        gint64 until = G_MAXINT64;

        while (!failure) {
                if (!o->cancelled && g_cancellable_is_cancelled(o->cancellable)) {
                        until = g_get_monotonic_time() + SQLIPC_CANCEL_WAIT_USEC;
                        failure = cancel(o);
                }
                if (failure || try_once(o, &failure) || !wait_once(o, until, &failure))
                        break;
        }
        o->done = true;
        connection_forget(o->connection, o);
        release(o, failure != NULL);
        if (!failure)
                return TRUE;
        failure = translate(o, failure);
        connection_note_error(o->connection, failure);
        g_propagate_error(error, failure);
        return FALSE;
}

Operation *operation_finish(gpointer owner, GAsyncResult *result, gpointer tag, GError **error) {
        GError *failure = NULL;
        Operation *o;

        g_return_val_if_fail(g_task_is_valid(result, owner), NULL);
        g_return_val_if_fail(g_async_result_is_tagged(result, tag), NULL);
        o = g_task_get_task_data(G_TASK(result));
        if (g_task_propagate_boolean(G_TASK(result), &failure))
                return o;
        connection_note_error(o->connection, failure);
        g_propagate_error(error, failure);
        return NULL;
}

gpointer operation_take(Operation *o) {
        return g_steal_pointer(&o->result);
}
