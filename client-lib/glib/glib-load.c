/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads. GLib library. */
#include <errno.h>

#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-error.h"
#include "client-lib/glib/glib-parameters.h"

/**
 * SqlipcLoad:
 *
 * One statement that runs once for each of many rows, in one transaction: the fastest way to write many rows.
 *
 * The rows go through a pipe, without a request for each. An error of a row may be returned by a later call. Dropping the
 * last reference closes it, as [method@Sqlipc.Load.close] does.
 */
struct _SqlipcLoad {
        GObject parent;
        SqlipcConnection *connection;
        sqlipc_load *handle; /* NULL: closed */
        bool completes;      /* its end was given to libsqlipc: it may be written */
        bool busy;           /* an operation is under way */
};

/* Rows in one turn of the loop. */
#define ROWS_PER_TURN 500

G_DEFINE_FINAL_TYPE(SqlipcLoad, sqlipc_glib_load, G_TYPE_OBJECT)

static void on_ready(sqlipc_load *handle, void *userdata) {
        (void) handle;
        operation_wake(userdata);
}

/**
 * sqlipc_glib_connection_load:
 * @self: a connection
 * @database: the name of a database
 * @sql: one INSERT, UPDATE or DELETE with parameters
 * @error: return location for an error
 *
 * Begins a load. This does not wait: the service's errors are those of the load's own functions.
 *
 * Returns: (transfer full): the load
 */
SqlipcLoad *sqlipc_glib_connection_load(SqlipcConnection *self, const char *database, const char *sql, GError **error) {
        sqlipc_load *handle = NULL;
        SqlipcLoad *load;
        int r;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql, NULL);
        r = sqlipc_load_open(connection_handle(self), database, sql, &handle);
        if (r < 0) {
                GError *failure = NULL;

                error_set_last(&failure, connection_handle(self), r);
                connection_note_error(self, failure);
                g_propagate_error(error, failure);
                return NULL;
        }
        load = g_object_new(SQLIPC_TYPE_LOAD, NULL);
        load->connection = g_object_ref(self);
        load->handle = handle;
        return load;
}

static Outcome fail_closed(GError **error) {
        g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_CLOSED, "The load is closed.");
        return OUTCOME_FAILED;
}

static Outcome fail(Operation *o, int r, GError **error) {
        error_set_last(error, connection_handle(o->connection), r);
        return OUTCOME_FAILED;
}

/* A wait that is cancelled ends the load, unless its outcome can be asked for. */
static void release_operation(Operation *o, bool failed) {
        SqlipcLoad *self = SQLIPC_LOAD(o->owner);

        self->busy = false;
        if (!self->handle)
                return;
        (void) sqlipc_load_set_ready_callback(self->handle, NULL, NULL);
        if (failed && !self->completes && g_cancellable_is_cancelled(o->cancellable))
                self->handle = sqlipc_load_close(self->handle);
}

static Operation *new_operation(SqlipcLoad *self, Outcome (*try)(Operation *, GError **), GCancellable *cancellable,
                                GError **error) {
        Operation *o = operation_new(self->connection, self, cancellable);

        o->try = try;
        if (self->busy) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_PENDING, "The load has an operation under way.");
                return o;
        }
        self->busy = true;
        o->release = release_operation;
        if (self->handle)
                (void) sqlipc_load_set_ready_callback(self->handle, on_ready, o);
        return o;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static int add_row(SqlipcLoad *self, GVariant *row, GError **error) {
        g_auto(VariantParameters) values = { .values = NULL };
        g_autoptr(GVariant) inner = NULL;

        if (g_variant_is_of_type(row, G_VARIANT_TYPE_VARIANT)) {
                inner = g_variant_get_variant(row);
                row = inner;
        }
        if (!parameters_init(&values, row, error))
                return -EINVAL;
        return sqlipc_load_row(self->handle, parameters_values(&values), values.values->len);
}

static Outcome try_add(Operation *o, GError **error) {
        SqlipcLoad *self = SQLIPC_LOAD(o->owner);
        gsize n = g_variant_n_children(o->rows);

        if (!self->handle)
                return fail_closed(error);
        for (guint i = 0; i < ROWS_PER_TURN && o->position < n; i++, o->position++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(o->rows, o->position);
                int r = add_row(self, row, error);

                if (*error)
                        return OUTCOME_FAILED;
                if (r == -EAGAIN)
                        return OUTCOME_WAIT;
                if (r < 0)
                        return fail(o, r, error);
        }
        return o->position < n ? OUTCOME_AGAIN : OUTCOME_DONE;
}

static Operation *new_add(SqlipcLoad *self, GVariant *rows, GCancellable *cancellable, GError **error) {
        Operation *o = new_operation(self, try_add, cancellable, error);

        o->rows = g_variant_ref_sink(rows);
        if (!*error && !g_variant_is_of_type(rows, G_VARIANT_TYPE_ARRAY))
                error_set_invalid(error, "Rows must be an array of tuples or arrays, not '%s'.",
                                  g_variant_get_type_string(rows));
        return o;
}

/**
 * sqlipc_glib_load_add_rows:
 * @self: a load
 * @rows: an array of tuples or arrays of values, such as `a(xs)` or `aav`; consumed if it is floating
 * @cancellable: (nullable): a cancellable, which ends the load
 * @error: return location for an error
 *
 * Gives rows to the load. On success the library has them all; the service may not have them yet.
 *
 * Returns: whether it succeeded
 */
gboolean sqlipc_glib_load_add_rows(SqlipcLoad *self, GVariant *rows, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_LOAD(self) && rows, FALSE);
        o = new_add(self, rows, cancellable, &failure);
        return operation_run(o, failure, error);
}

/**
 * sqlipc_glib_load_add_rows_async:
 * @self: a load
 * @rows: see [method@Sqlipc.Load.add_rows]
 * @cancellable: (nullable): a cancellable, which ends the load
 * @callback: (scope async): called when the library has the rows
 * @user_data: data of @callback
 *
 * Gives rows to the load, without waiting.
 */
void sqlipc_glib_load_add_rows_async(SqlipcLoad *self, GVariant *rows, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_LOAD(self) && rows);
        o = new_add(self, rows, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_load_add_rows_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_load_add_rows_finish:
 * @self: a load
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: whether it succeeded
 */
gboolean sqlipc_glib_load_add_rows_finish(SqlipcLoad *self, GAsyncResult *result, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_LOAD(self), FALSE);
        return operation_finish(self, result, sqlipc_glib_load_add_rows_async, error) != NULL;
}

/* ---- The end ------------------------------------------------------------------------------------------------------ */

static Outcome try_complete(Operation *o, GError **error) {
        SqlipcLoad *self = SQLIPC_LOAD(o->owner);
        int64_t changes = 0;
        int r;

        if (!self->handle)
                return fail_closed(error);
        r = sqlipc_load_finish(self->handle, &changes);
        o->changes = changes;
        if (r == -EAGAIN) {
                self->completes = true;
                return OUTCOME_WAIT;
        }
        return r < 0 ? fail(o, r, error) : OUTCOME_DONE;
}

static bool complete_may_write(const Operation *o) { return SQLIPC_LOAD(o->owner)->completes; }

static void cancel_complete(Operation *o) { (void) sqlipc_load_cancel(SQLIPC_LOAD(o->owner)->handle); }

static Operation *new_complete(SqlipcLoad *self, GCancellable *cancellable, GError **error) {
        Operation *o = new_operation(self, try_complete, cancellable, error);

        o->may_write = complete_may_write;
        o->cancel = cancel_complete;
        o->fact = "the rows were loaded";
        return o;
}

static gboolean take_changes(const Operation *o, gint64 *changes) {
        if (changes)
                *changes = o->changes;
        return TRUE;
}

/**
 * sqlipc_glib_load_complete:
 * @self: a load
 * @changes: (out) (optional): return location for the number of rows that were changed
 * @cancellable: (nullable): a cancellable; cancels the load at the service, unless that belongs to a transaction
 * @error: return location for an error
 *
 * Tells the service that there are no more rows, and waits for the result. On success the changes are committed, or belong
 * to the connection's transaction.
 *
 * If it is cancelled, this function waits for up to five seconds until the service has said how the load ended. After
 * %G_IO_ERROR_CANCELLED the load is over, and nothing was written. If it was done before, the function succeeds. After
 * %SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN the rows may have been written: call this function again to learn the outcome, or look
 * at the data.
 *
 * Returns: whether it succeeded
 */
gboolean sqlipc_glib_load_complete(SqlipcLoad *self, gint64 *changes, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_LOAD(self), FALSE);
        o = new_complete(self, cancellable, &failure);
        return operation_run(o, failure, error) && take_changes(o, changes);
}

/**
 * sqlipc_glib_load_complete_async:
 * @self: a load
 * @cancellable: (nullable): see [method@Sqlipc.Load.complete]
 * @callback: (scope async): called when the result is there
 * @user_data: data of @callback
 *
 * Tells the service that there are no more rows, without waiting for the result.
 */
void sqlipc_glib_load_complete_async(SqlipcLoad *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                     gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_LOAD(self));
        o = new_complete(self, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_load_complete_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_load_complete_finish:
 * @self: a load
 * @result: the result that the callback got
 * @changes: (out) (optional): return location for the number of rows that were changed
 * @error: return location for an error
 *
 * Returns: whether it succeeded
 */
gboolean sqlipc_glib_load_complete_finish(SqlipcLoad *self, GAsyncResult *result, gint64 *changes, GError **error) {
        const Operation *o;

        g_return_val_if_fail(SQLIPC_IS_LOAD(self), FALSE);
        o = operation_finish(self, result, sqlipc_glib_load_complete_async, error);
        return o && take_changes(o, changes);
}

/**
 * sqlipc_glib_load_close:
 * @self: a load
 *
 * Gives the load up, without waiting: nothing of it is written, unless [method@Sqlipc.Load.complete] was called; then its
 * outcome is not told.
 */
void sqlipc_glib_load_close(SqlipcLoad *self) {
        g_return_if_fail(SQLIPC_IS_LOAD(self));
        g_return_if_fail(!self->busy);
        self->handle = sqlipc_load_close(self->handle);
}

static void finalize(GObject *object) {
        SqlipcLoad *self = SQLIPC_LOAD(object);

        self->handle = sqlipc_load_close(self->handle);
        g_clear_object(&self->connection);
        G_OBJECT_CLASS(sqlipc_glib_load_parent_class)->finalize(object);
}

static void sqlipc_glib_load_init(SqlipcLoad *self) { (void) self; }

static void sqlipc_glib_load_class_init(SqlipcLoadClass *class) { G_OBJECT_CLASS(class)->finalize = finalize; }
