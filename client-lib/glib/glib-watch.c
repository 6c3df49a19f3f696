/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches. GLib library. */
#include <errno.h>

#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-error.h"

/**
 * SqlipcWatch:
 *
 * Tells when tables change, whichever process changes them.
 *
 * A program either calls [method@Sqlipc.Watch.next_async] for each change, or [method@Sqlipc.Watch.start] once and connects
 * to [signal@Sqlipc.Watch::changed]. Several changes are told as one, and a change may be told that changed nothing in the
 * tables, but none is lost. A restart of the service is told as a change.
 */
struct _SqlipcWatch {
        GObject parent;
        SqlipcConnection *connection;
        sqlipc_watch *handle;
        bool busy;                 /* an operation is under way */
        GCancellable *cancellable; /* of the signal's own; NULL: not started */
};

enum { SIGNAL_CHANGED, SIGNAL_FAILED, N_SIGNALS };

static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(SqlipcWatch, sqlipc_glib_watch, G_TYPE_OBJECT)

/* Takes `handle`; NULL: `r` is the failure. */
static SqlipcWatch *watch_new(SqlipcConnection *connection, sqlipc_watch *handle, int r, GError **error) {
        GError *failure = NULL;
        SqlipcWatch *watch;

        if (r < 0) {
                error_set_last(&failure, connection_handle(connection), r);
                connection_note_error(connection, failure);
                g_propagate_error(error, failure);
                return NULL;
        }
        watch = g_object_new(SQLIPC_TYPE_WATCH, NULL);
        watch->connection = g_object_ref(connection);
        watch->handle = handle;
        return watch;
}

/**
 * sqlipc_glib_connection_watch_tables:
 * @self: a connection
 * @database: the name of a database
 * @tables: (nullable) (array zero-terminated=1): names of tables; %NULL: all that the caller may see
 * @error: return location for an error
 *
 * Watches tables. This does not wait: the service's errors are those of the watch's own functions.
 *
 * Returns: (transfer full): the watch
 */
SqlipcWatch *sqlipc_glib_connection_watch_tables(SqlipcConnection *self, const char *database, const char *const *tables,
                                                 GError **error) {
        sqlipc_watch *handle = NULL;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database, NULL);
        return watch_new(self, handle, sqlipc_watch_open(connection_handle(self), database, tables, &handle), error);
}

/**
 * sqlipc_glib_connection_watch_statement:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement that only reads
 * @error: return location for an error
 *
 * Watches the tables that a statement reads, through views. This does not wait: the service's errors are those of the
 * watch's own functions.
 *
 * Returns: (transfer full): the watch
 */
SqlipcWatch *sqlipc_glib_connection_watch_statement(SqlipcConnection *self, const char *database, const char *sql,
                                                    GError **error) {
        sqlipc_watch *handle = NULL;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql, NULL);
        return watch_new(self, handle, sqlipc_watch_open_sql(connection_handle(self), database, sql, &handle), error);
}

/* ---- The next change ---------------------------------------------------------------------------------------------- */

static void on_ready(sqlipc_watch *handle, void *userdata) {
        (void) handle;
        operation_wake(userdata);
}

static Outcome try_next(Operation *o, GError **error) {
        SqlipcWatch *self = SQLIPC_WATCH(o->owner);
        int r;

        if (!self->handle) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_CLOSED, "The watch is closed.");
                return OUTCOME_FAILED;
        }
        r = sqlipc_watch_next(self->handle, 0);
        if (r > 0)
                return OUTCOME_DONE;
        if (r == 0 || r == -EAGAIN)
                return OUTCOME_WAIT;
        error_set_last(error, connection_handle(o->connection), r);
        return OUTCOME_FAILED;
}

static void release_next(Operation *o, bool failed) {
        SqlipcWatch *self = SQLIPC_WATCH(o->owner);

        (void) failed;
        self->busy = false;
        if (self->handle)
                (void) sqlipc_watch_set_ready_callback(self->handle, NULL, NULL);
}

static Operation *new_next(SqlipcWatch *self, GCancellable *cancellable, GError **error) {
        Operation *o = operation_new(self->connection, self, cancellable);

        o->try = try_next;
        if (self->busy) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_PENDING, "The watch has an operation under way.");
                return o;
        }
        self->busy = true;
        o->release = release_next;
        if (self->handle)
                (void) sqlipc_watch_set_ready_callback(self->handle, on_ready, o);
        return o;
}

/**
 * sqlipc_glib_watch_next:
 * @self: a watch that was not started
 * @cancellable: (nullable): a cancellable; the watch goes on
 * @error: return location for an error
 *
 * Waits until the tables may have changed since the last call, or since the watch began.
 *
 * Returns: whether they may have changed
 */
gboolean sqlipc_glib_watch_next(SqlipcWatch *self, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_WATCH(self), FALSE);
        o = new_next(self, cancellable, &failure);
        return operation_run(o, failure, error);
}

/**
 * sqlipc_glib_watch_next_async:
 * @self: a watch that was not started
 * @cancellable: (nullable): a cancellable; the watch goes on
 * @callback: (scope async): called when the tables may have changed
 * @user_data: data of @callback
 *
 * Waits for a change, without blocking.
 */
void sqlipc_glib_watch_next_async(SqlipcWatch *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_WATCH(self));
        o = new_next(self, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_watch_next_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_watch_next_finish:
 * @self: a watch
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: whether the tables may have changed
 */
gboolean sqlipc_glib_watch_next_finish(SqlipcWatch *self, GAsyncResult *result, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_WATCH(self), FALSE);
        return operation_finish(self, result, sqlipc_glib_watch_next_async, error) != NULL;
}

/* ---- The signal --------------------------------------------------------------------------------------------------- */

static void wait_again(SqlipcWatch *self);

static void on_next(GObject *source, GAsyncResult *result, gpointer data) {
        g_autoptr(SqlipcWatch) self = g_object_ref(SQLIPC_WATCH(source));
        GError *error = NULL;

        (void) data;
        if (sqlipc_glib_watch_next_finish(self, result, &error)) {
                g_signal_emit(self, signals[SIGNAL_CHANGED], 0);
                if (self->cancellable)
                        wait_again(self);
                return;
        }
        if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED) || self->cancellable) {
                g_clear_object(&self->cancellable);
                g_signal_emit(self, signals[SIGNAL_FAILED], 0, error);
        }
        g_error_free(error);
}

static void wait_again(SqlipcWatch *self) { sqlipc_glib_watch_next_async(self, self->cancellable, on_next, NULL); }

/**
 * sqlipc_glib_watch_start:
 * @self: a watch
 *
 * From now on each change emits [signal@Sqlipc.Watch::changed]. The watch lives until [method@Sqlipc.Watch.close].
 */
void sqlipc_glib_watch_start(SqlipcWatch *self) {
        g_return_if_fail(SQLIPC_IS_WATCH(self));
        g_return_if_fail(!self->busy && !self->cancellable);
        self->cancellable = g_cancellable_new();
        wait_again(self);
}

/**
 * sqlipc_glib_watch_close:
 * @self: a watch
 *
 * Ends the watch. A call under way fails with %G_IO_ERROR_CLOSED.
 */
void sqlipc_glib_watch_close(SqlipcWatch *self) {
        g_autoptr(GCancellable) cancellable = NULL;

        g_return_if_fail(SQLIPC_IS_WATCH(self));
        cancellable = g_steal_pointer(&self->cancellable);
        self->handle = sqlipc_watch_close(self->handle);
        if (cancellable)
                g_cancellable_cancel(cancellable);
        else if (self->busy)
                connection_wake_all(self->connection);
}

/**
 * sqlipc_glib_watch_get_sequence:
 * @self: a watch
 *
 * Gets the change sequence of the database at the last change that was told, or at the beginning of the watch. Compare it
 * with [method@Sqlipc.Cursor.get_sequence].
 *
 * Returns: the sequence; 0 before the watch has begun
 */
guint64 sqlipc_glib_watch_get_sequence(SqlipcWatch *self) {
        g_return_val_if_fail(SQLIPC_IS_WATCH(self), 0);
        return self->handle ? sqlipc_watch_sequence(self->handle) : 0;
}

static void finalize(GObject *object) {
        SqlipcWatch *self = SQLIPC_WATCH(object);

        self->handle = sqlipc_watch_close(self->handle);
        g_clear_object(&self->cancellable);
        g_clear_object(&self->connection);
        G_OBJECT_CLASS(sqlipc_glib_watch_parent_class)->finalize(object);
}

static void sqlipc_glib_watch_init(SqlipcWatch *self) { (void) self; }

static void sqlipc_glib_watch_class_init(SqlipcWatchClass *class) {
        G_OBJECT_CLASS(class)->finalize = finalize;

        /**
         * SqlipcWatch::changed:
         * @self: the watch
         *
         * The tables may have changed.
         */
        signals[SIGNAL_CHANGED] = g_signal_new("changed", SQLIPC_TYPE_WATCH, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                               G_TYPE_NONE, 0);
        /**
         * SqlipcWatch::failed:
         * @self: the watch
         * @error: the reason
         *
         * The watch is over: the database or the rights have changed.
         */
        signals[SIGNAL_FAILED] = g_signal_new("failed", SQLIPC_TYPE_WATCH, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                              G_TYPE_NONE, 1, G_TYPE_ERROR);
}
