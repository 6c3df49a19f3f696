/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Live queries, and the changes that they report. GLib library. */
#include <errno.h>

#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-error.h"
#include "client-lib/glib/glib-parameters.h"
#include "client-lib/glib/glib-row.h"

/**
 * SqlipcLiveQuery:
 *
 * A statement that runs again when its result may have changed, and tells the differences one by one. For a list on a
 * screen, [class@Sqlipc.LiveModel] is simpler.
 */
struct _SqlipcLiveQuery {
        GObject parent;
        SqlipcConnection *connection;
        sqlipc_live *handle; /* NULL: closed */
        Columns *columns;    /* of the last change */
        bool busy;           /* an operation is under way */
};

/**
 * SqlipcLiveChange:
 *
 * One difference between two results of a [class@Sqlipc.LiveQuery].
 */
struct _SqlipcLiveChange {
        GObject parent;
        SqlipcLiveKind kind;
        guint position, new_position;
        SqlipcRow *row, *old_row; /* NULL: none */
};

G_DEFINE_FINAL_TYPE(SqlipcLiveQuery, sqlipc_glib_live_query, G_TYPE_OBJECT)
G_DEFINE_FINAL_TYPE(SqlipcLiveChange, sqlipc_glib_live_change, G_TYPE_OBJECT)

/* ---- Changes ------------------------------------------------------------------------------------------------------ */

/**
 * sqlipc_glib_live_change_get_kind:
 * @self: a change
 *
 * Returns: the kind of change
 */
SqlipcLiveKind sqlipc_glib_live_change_get_kind(SqlipcLiveChange *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_CHANGE(self), SQLIPC_GLIB_LIVE_KIND_SETTLED);
        return self->kind;
}

/**
 * sqlipc_glib_live_change_get_position:
 * @self: a change
 *
 * Returns: the position of the row, in the list after all changes before this one
 */
guint sqlipc_glib_live_change_get_position(SqlipcLiveChange *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_CHANGE(self), 0);
        return self->position;
}

/**
 * sqlipc_glib_live_change_get_new_position:
 * @self: a change
 *
 * Returns: the position at which a moved row is inserted, after its removal
 */
guint sqlipc_glib_live_change_get_new_position(SqlipcLiveChange *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_CHANGE(self), 0);
        return self->new_position;
}

/**
 * sqlipc_glib_live_change_get_row:
 * @self: a change
 *
 * Returns: (transfer none) (nullable): the row that was added, moved or changed
 */
SqlipcRow *sqlipc_glib_live_change_get_row(SqlipcLiveChange *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_CHANGE(self), NULL);
        return self->row;
}

/**
 * sqlipc_glib_live_change_get_old_row:
 * @self: a change
 *
 * Returns: (transfer none) (nullable): the row that was removed, or the changed one as it was before
 */
SqlipcRow *sqlipc_glib_live_change_get_old_row(SqlipcLiveChange *self) {
        g_return_val_if_fail(SQLIPC_IS_LIVE_CHANGE(self), NULL);
        return self->old_row;
}

static void change_finalize(GObject *object) {
        SqlipcLiveChange *self = SQLIPC_LIVE_CHANGE(object);

        g_clear_object(&self->row);
        g_clear_object(&self->old_row);
        G_OBJECT_CLASS(sqlipc_glib_live_change_parent_class)->finalize(object);
}

static void sqlipc_glib_live_change_init(SqlipcLiveChange *self) { (void) self; }

static void sqlipc_glib_live_change_class_init(SqlipcLiveChangeClass *class) {
        G_OBJECT_CLASS(class)->finalize = change_finalize;
}

static SqlipcLiveChange *change_new(Columns *columns, const sqlipc_live_change *change) {
        SqlipcLiveChange *self = g_object_new(SQLIPC_TYPE_LIVE_CHANGE, NULL);

        self->kind = (SqlipcLiveKind) change->kind;
        self->position = (guint) change->position;
        self->new_position = (guint) change->new_position;
        self->row = change->values ? row_new(columns, change->values) : NULL;
        self->old_row = change->old_values ? row_new(columns, change->old_values) : NULL;
        return self;
}

/* ---- Live queries ------------------------------------------------------------------------------------------------- */

/**
 * sqlipc_glib_connection_live_query:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement that only reads
 * @parameters: (nullable): see [method@Sqlipc.Connection.query]; consumed if it is floating
 * @key_columns: (array length=n_key_columns) (nullable): the columns that identify a row, from 0; %NULL: the first one
 * @n_key_columns: the number of @key_columns
 * @error: return location for an error
 *
 * Opens a live query. This does not wait: the service's errors are those of the query's own functions.
 *
 * Returns: (transfer full): the live query
 */
SqlipcLiveQuery *sqlipc_glib_connection_live_query(SqlipcConnection *self, const char *database, const char *sql,
                                                   GVariant *parameters, const guint *key_columns, guint n_key_columns,
                                                   GError **error) {
        sqlipc_live_options options = { .struct_size = sizeof options, .key_columns = n_key_columns > 0 ? key_columns : NULL,
                                        .n_key_columns = n_key_columns };
        g_autoptr(GVariant) sunk = parameters ? g_variant_ref_sink(parameters) : NULL;
        g_auto(VariantParameters) values = { .values = NULL };
        SqlipcLiveQuery *query;
        sqlipc_live *handle = NULL;
        GError *failure = NULL;
        int r;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql, NULL);
        if (parameters_init(&values, sunk, &failure)) {
                r = sqlipc_live_open(connection_handle(self), database, sql, parameters_values(&values), values.values->len,
                                     &options, &handle);
                if (r < 0)
                        error_set_last(&failure, connection_handle(self), r);
        }
        if (failure) {
                connection_note_error(self, failure);
                g_propagate_error(error, failure);
                return NULL;
        }
        query = g_object_new(SQLIPC_TYPE_LIVE_QUERY, NULL);
        query->connection = g_object_ref(self);
        query->handle = handle;
        return query;
}

static Columns *live_columns(sqlipc_live *handle) {
        guint n = sqlipc_live_column_count(handle);
        g_autofree const char **names = g_new0(const char *, n + 1);

        for (guint i = 0; i < n; i++)
                names[i] = sqlipc_live_column_name(handle, i);
        return columns_new_named(names, n);
}

static void on_ready(sqlipc_live *handle, void *userdata) {
        (void) handle;
        operation_wake(userdata);
}

static Outcome try_next(Operation *o, GError **error) {
        SqlipcLiveQuery *self = SQLIPC_LIVE_QUERY(o->owner);
        const sqlipc_live_change *change;
        int r;

        if (!self->handle) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_CLOSED, "The live query is closed.");
                return OUTCOME_FAILED;
        }
        r = sqlipc_live_next(self->handle, 0, &change);
        if (r == 0 || r == -EAGAIN)
                return OUTCOME_WAIT;
        if (r < 0) {
                error_set_last(error, connection_handle(o->connection), r);
                return OUTCOME_FAILED;
        }
        /* Columns stay until the list was settled with others. */
        if (!self->columns || self->columns->n != sqlipc_live_column_count(self->handle)) {
                g_clear_pointer(&self->columns, columns_unref);
                self->columns = live_columns(self->handle);
        }
        o->result = G_OBJECT(change_new(self->columns, change));
        return OUTCOME_DONE;
}

static void release_next(Operation *o, bool failed) {
        SqlipcLiveQuery *self = SQLIPC_LIVE_QUERY(o->owner);

        (void) failed;
        self->busy = false;
        if (self->handle)
                (void) sqlipc_live_set_ready_callback(self->handle, NULL, NULL);
}

static Operation *new_next(SqlipcLiveQuery *self, GCancellable *cancellable, GError **error) {
        Operation *o = operation_new(self->connection, self, cancellable);

        o->try = try_next;
        if (self->busy) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_PENDING, "The live query has an operation under way.");
                return o;
        }
        self->busy = true;
        o->release = release_next;
        if (self->handle)
                (void) sqlipc_live_set_ready_callback(self->handle, on_ready, o);
        return o;
}

/**
 * sqlipc_glib_live_query_next:
 * @self: a live query
 * @cancellable: (nullable): a cancellable; the live query goes on
 * @error: return location for an error
 *
 * Waits for the next change to the list of rows, which is empty at first. After the last change of a run comes
 * %SQLIPC_GLIB_LIVE_KIND_SETTLED. If a run fails, its error is returned once, and the list stays as it is.
 *
 * Returns: (transfer full): the change
 */
SqlipcLiveChange *sqlipc_glib_live_query_next(SqlipcLiveQuery *self, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_LIVE_QUERY(self), NULL);
        o = new_next(self, cancellable, &failure);
        return operation_run(o, failure, error) ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_live_query_next_async:
 * @self: a live query
 * @cancellable: (nullable): a cancellable; the live query goes on
 * @callback: (scope async): called when there is a change
 * @user_data: data of @callback
 *
 * Waits for the next change, without blocking.
 */
void sqlipc_glib_live_query_next_async(SqlipcLiveQuery *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_LIVE_QUERY(self));
        o = new_next(self, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_live_query_next_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_live_query_next_finish:
 * @self: a live query
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full): the change
 */
SqlipcLiveChange *sqlipc_glib_live_query_next_finish(SqlipcLiveQuery *self, GAsyncResult *result, GError **error) {
        Operation *o;

        g_return_val_if_fail(SQLIPC_IS_LIVE_QUERY(self), NULL);
        o = operation_finish(self, result, sqlipc_glib_live_query_next_async, error);
        return o ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_live_query_close:
 * @self: a live query
 *
 * Ends the live query. A call under way fails with %G_IO_ERROR_CLOSED.
 */
void sqlipc_glib_live_query_close(SqlipcLiveQuery *self) {
        g_return_if_fail(SQLIPC_IS_LIVE_QUERY(self));
        self->handle = sqlipc_live_close(self->handle);
        if (self->busy)
                connection_wake_all(self->connection);
}

static void query_finalize(GObject *object) {
        SqlipcLiveQuery *self = SQLIPC_LIVE_QUERY(object);

        self->handle = sqlipc_live_close(self->handle);
        g_clear_pointer(&self->columns, columns_unref);
        g_clear_object(&self->connection);
        G_OBJECT_CLASS(sqlipc_glib_live_query_parent_class)->finalize(object);
}

static void sqlipc_glib_live_query_init(SqlipcLiveQuery *self) { (void) self; }

static void sqlipc_glib_live_query_class_init(SqlipcLiveQueryClass *class) {
        G_OBJECT_CLASS(class)->finalize = query_finalize;
}
