/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements. GLib library. */
#include <errno.h>

#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-cursor.h"
#include "client-lib/glib/glib-error.h"
#include "client-lib/glib/glib-parameters.h"

/**
 * SqlipcStatement:
 *
 * A statement that the service has compiled, to run it several times with other values.
 *
 * If the service is lost, the next run compiles it again. A statement has one run at a time: another one ends the cursor
 * before it.
 */
struct _SqlipcStatement {
        GObject parent;
        SqlipcConnection *connection;
        sqlipc_statement *handle;
        char *sql;
};

G_DEFINE_FINAL_TYPE(SqlipcStatement, sqlipc_glib_statement, G_TYPE_OBJECT)

/* ---- Compiling ---------------------------------------------------------------------------------------------------- */

static void on_ready(sqlipc_statement *handle, void *userdata) {
        (void) handle;
        operation_wake(userdata);
}

static Outcome try_prepare(Operation *o, GError **error) {
        SqlipcStatement *statement;
        int r = sqlipc_statement_is_ready(o->handle);

        if (r == 0)
                return OUTCOME_WAIT;
        if (r < 0) {
                error_set_last(error, connection_handle(o->connection), r);
                return OUTCOME_FAILED;
        }
        statement = g_object_new(SQLIPC_TYPE_STATEMENT, NULL);
        statement->connection = g_object_ref(o->connection);
        statement->handle = g_steal_pointer(&o->handle);
        statement->sql = g_steal_pointer(&o->data);
        (void) sqlipc_statement_set_ready_callback(statement->handle, NULL, NULL);
        o->result = G_OBJECT(statement);
        return OUTCOME_DONE;
}

static void release_prepare(Operation *o, bool failed) {
        (void) failed;
        g_free(o->data);
        o->handle = sqlipc_finalize(o->handle); /* also at the service */
}

static Operation *new_prepare(SqlipcConnection *connection, const char *database, const char *sql,
                              GCancellable *cancellable, GError **error) {
        Operation *o = operation_new(connection, connection, cancellable);
        sqlipc_statement *handle = NULL;
        int r;

        if (g_cancellable_set_error_if_cancelled(cancellable, error))
                return o;
        r = sqlipc_prepare(connection_handle(connection), database, sql, &handle);
        if (r < 0) {
                error_set_last(error, connection_handle(connection), r);
                return o;
        }
        o->handle = handle;
        o->data = g_strdup(sql);
        o->try = try_prepare;
        o->release = release_prepare;
        (void) sqlipc_statement_set_ready_callback(handle, on_ready, o);
        return o;
}

/**
 * sqlipc_glib_connection_prepare:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Compiles a statement.
 *
 * Returns: (transfer full): the statement
 */
SqlipcStatement *sqlipc_glib_connection_prepare(SqlipcConnection *self, const char *database, const char *sql,
                                                GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql, NULL);
        o = new_prepare(self, database, sql, cancellable, &failure);
        return operation_run(o, failure, error) ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_connection_prepare_async:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async): called when the statement is compiled
 * @user_data: data of @callback
 *
 * Compiles a statement, without waiting.
 */
void sqlipc_glib_connection_prepare_async(SqlipcConnection *self, const char *database, const char *sql,
                                          GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql);
        o = new_prepare(self, database, sql, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_connection_prepare_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_connection_prepare_finish:
 * @self: a connection
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full): the statement
 */
SqlipcStatement *sqlipc_glib_connection_prepare_finish(SqlipcConnection *self, GAsyncResult *result, GError **error) {
        Operation *o = operation_finish(self, result, sqlipc_glib_connection_prepare_async, error);

        return o ? operation_take(o) : NULL;
}

/* ---- What it is --------------------------------------------------------------------------------------------------- */

/**
 * sqlipc_glib_statement_get_sql: (get-property sql)
 * @self: a statement
 *
 * Returns: its SQL
 */
const char *sqlipc_glib_statement_get_sql(SqlipcStatement *self) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), NULL);
        return self->sql;
}

/**
 * sqlipc_glib_statement_is_readonly:
 * @self: a statement
 *
 * Returns: whether the statement changes nothing
 */
gboolean sqlipc_glib_statement_is_readonly(SqlipcStatement *self) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), FALSE);
        return sqlipc_statement_is_readonly(self->handle) > 0;
}

/**
 * sqlipc_glib_statement_dup_column_names:
 * @self: a statement
 *
 * Gets the columns as of compilation. The columns of a run belong to its cursor.
 *
 * Returns: (array zero-terminated=1) (transfer full): the names
 */
char **sqlipc_glib_statement_dup_column_names(SqlipcStatement *self) {
        char **names;
        guint n;

        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), NULL);
        n = sqlipc_statement_column_count(self->handle);
        names = g_new0(char *, n + 1);
        for (guint i = 0; i < n; i++)
                names[i] = g_utf8_make_valid(sqlipc_statement_column_name(self->handle, i), -1);
        return names;
}

/**
 * sqlipc_glib_statement_get_n_parameters:
 * @self: a statement
 *
 * Returns: the largest index of a parameter
 */
guint sqlipc_glib_statement_get_n_parameters(SqlipcStatement *self) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), 0);
        return sqlipc_statement_parameter_count(self->handle);
}

/**
 * sqlipc_glib_statement_get_parameter_name:
 * @self: a statement
 * @index: a parameter, from 1
 *
 * Returns: (nullable): the name with its prefix; %NULL if the parameter has none
 */
const char *sqlipc_glib_statement_get_parameter_name(SqlipcStatement *self, guint index) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), NULL);
        return sqlipc_statement_parameter_name(self->handle, index);
}

/**
 * sqlipc_glib_statement_find_parameter:
 * @self: a statement
 * @name: a name, with or without its prefix
 *
 * Returns: the index of the parameter, from 1; 0 if there is none, or if a name without prefix matches several
 */
guint sqlipc_glib_statement_find_parameter(SqlipcStatement *self, const char *name) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self) && name, 0);
        return sqlipc_statement_parameter_index(self->handle, name);
}

/* ---- Binding ------------------------------------------------------------------------------------------------------ */

static gboolean bound(SqlipcStatement *self, int r, GError **error) {
        GError *failure = NULL;

        if (r >= 0)
                return TRUE;
        error_set_last(&failure, connection_handle(self->connection), r);
        connection_note_error(self->connection, failure);
        g_propagate_error(error, failure);
        return FALSE;
}

/**
 * sqlipc_glib_statement_bind_null:
 * @self: a statement
 * @index: a parameter, from 1
 * @error: return location for an error
 *
 * Binds NULL. Each value stays bound over runs until it is replaced.
 *
 * Returns: whether there is such a parameter
 */
gboolean sqlipc_glib_statement_bind_null(SqlipcStatement *self, guint index, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), FALSE);
        return bound(self, sqlipc_bind_null(self->handle, index), error);
}

/**
 * sqlipc_glib_statement_bind_int64:
 * @self: a statement
 * @index: a parameter, from 1
 * @value: the value
 * @error: return location for an error
 *
 * Binds an integer.
 *
 * Returns: whether there is such a parameter
 */
gboolean sqlipc_glib_statement_bind_int64(SqlipcStatement *self, guint index, gint64 value, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), FALSE);
        return bound(self, sqlipc_bind_int64(self->handle, index, value), error);
}

/**
 * sqlipc_glib_statement_bind_double:
 * @self: a statement
 * @index: a parameter, from 1
 * @value: the value
 * @error: return location for an error
 *
 * Binds a double.
 *
 * Returns: whether there is such a parameter
 */
gboolean sqlipc_glib_statement_bind_double(SqlipcStatement *self, guint index, double value, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), FALSE);
        return bound(self, sqlipc_bind_double(self->handle, index, value), error);
}

/**
 * sqlipc_glib_statement_bind_text:
 * @self: a statement
 * @index: a parameter, from 1
 * @text: (nullable): the value; %NULL is SQL's NULL
 * @error: return location for an error
 *
 * Binds a text.
 *
 * Returns: whether there is such a parameter
 */
gboolean sqlipc_glib_statement_bind_text(SqlipcStatement *self, guint index, const char *text, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), FALSE);
        return bound(self, sqlipc_bind_text(self->handle, index, text, SIZE_MAX), error);
}

/**
 * sqlipc_glib_statement_bind_blob:
 * @self: a statement
 * @index: a parameter, from 1
 * @blob: (nullable): the value; %NULL is SQL's NULL
 * @error: return location for an error
 *
 * Binds bytes.
 *
 * Returns: whether there is such a parameter
 */
gboolean sqlipc_glib_statement_bind_blob(SqlipcStatement *self, guint index, GBytes *blob, GError **error) {
        const void *bytes;
        gsize size;

        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), FALSE);
        if (!blob)
                return bound(self, sqlipc_bind_null(self->handle, index), error);
        bytes = g_bytes_get_data(blob, &size);
        return bound(self, sqlipc_bind_blob(self->handle, index, bytes, size), error);
}

static int bind(sqlipc_statement *handle, guint index, const sqlipc_parameter *p) {
        switch (p->type) {
        case SQLIPC_INTEGER:
                return sqlipc_bind_int64(handle, index, p->integer);
        case SQLIPC_REAL:
                return sqlipc_bind_double(handle, index, p->real);
        case SQLIPC_TEXT:
                return sqlipc_bind_text(handle, index, p->bytes, p->size);
        case SQLIPC_BLOB:
                return sqlipc_bind_blob(handle, index, p->bytes, p->size);
        case SQLIPC_NULL:
                break;
        }
        return sqlipc_bind_null(handle, index);
}

/**
 * sqlipc_glib_statement_bind_variant:
 * @self: a statement
 * @index: a parameter, from 1
 * @value: the value, as of [method@Sqlipc.Row.dup_variant]; consumed if it is floating
 * @error: return location for an error
 *
 * Binds the value of a variant. Integers and booleans of all sizes are integers; `o` and `g` are text.
 *
 * Returns: whether there is such a parameter, and the type is one of SQLite's
 */
gboolean sqlipc_glib_statement_bind_variant(SqlipcStatement *self, guint index, GVariant *value, GError **error) {
        g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func((GDestroyNotify) g_variant_unref);
        g_autoptr(GVariant) sunk = NULL;
        sqlipc_parameter parameter;

        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self) && value, FALSE);
        sunk = g_variant_ref_sink(value);
        return parameters_read_one(sunk, &parameter, kept, error) &&
               bound(self, bind(self->handle, index, &parameter), error);
}

/**
 * sqlipc_glib_statement_bind_value:
 * @self: a statement
 * @index: a parameter, from 1
 * @value: a number, a string, #GBytes or a #GVariant
 * @error: return location for an error
 *
 * Binds the value of a #GValue.
 *
 * Returns: whether there is such a parameter, and the type is one of SQLite's
 */
gboolean sqlipc_glib_statement_bind_value(SqlipcStatement *self, guint index, const GValue *value, GError **error) {
        GVariant *variant;

        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self) && G_IS_VALUE(value), FALSE);
        variant = parameters_from_value(value, error);
        return variant && sqlipc_glib_statement_bind_variant(self, index, variant, error);
}

/**
 * sqlipc_glib_statement_clear_bindings:
 * @self: a statement
 *
 * Drops all bound values: every parameter is NULL again.
 */
void sqlipc_glib_statement_clear_bindings(SqlipcStatement *self) {
        g_return_if_fail(SQLIPC_IS_STATEMENT(self));
        (void) sqlipc_clear_bindings(self->handle);
}

/* ---- Running ------------------------------------------------------------------------------------------------------ */

static Operation *new_query(SqlipcStatement *self, GCancellable *cancellable, GError **error) {
        Operation *o = operation_new(self->connection, self, cancellable);
        sqlipc_cursor *handle = NULL;
        int r;

        if (g_cancellable_set_error_if_cancelled(cancellable, error))
                return o;
        r = sqlipc_execute(self->handle, &handle);
        if (r < 0)
                error_set_last(error, connection_handle(self->connection), r);
        else
                cursor_prepare_query(o, handle, G_OBJECT(self));
        return o;
}

/**
 * sqlipc_glib_statement_query:
 * @self: a statement
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @error: return location for an error
 *
 * Runs the statement with the bound values, and waits for its first rows. A statement that writes is done when the cursor
 * has come to its end. For a cancellation see [method@Sqlipc.Connection.query].
 *
 * Returns: (transfer full): the cursor
 */
SqlipcCursor *sqlipc_glib_statement_query(SqlipcStatement *self, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_STATEMENT(self), NULL);
        o = new_query(self, cancellable, &failure);
        return operation_run(o, failure, error) ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_statement_query_async:
 * @self: a statement
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @callback: (scope async): called when the first rows, or the end of the result, are there
 * @user_data: data of @callback
 *
 * Runs the statement with the values that are bound now, without waiting. For a cancellation see
 * [method@Sqlipc.Connection.query].
 */
void sqlipc_glib_statement_query_async(SqlipcStatement *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_STATEMENT(self));
        o = new_query(self, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_statement_query_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_statement_query_finish:
 * @self: a statement
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full): the cursor
 */
SqlipcCursor *sqlipc_glib_statement_query_finish(SqlipcStatement *self, GAsyncResult *result, GError **error) {
        Operation *o = operation_finish(self, result, sqlipc_glib_statement_query_async, error);

        return o ? operation_take(o) : NULL;
}

/* ---- The class ---------------------------------------------------------------------------------------------------- */

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec) {
        if (id == 1)
                g_value_set_string(value, SQLIPC_STATEMENT(object)->sql);
        else
                G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
}

static void finalize(GObject *object) {
        SqlipcStatement *self = SQLIPC_STATEMENT(object);

        self->handle = sqlipc_finalize(self->handle);
        g_free(self->sql);
        g_clear_object(&self->connection);
        G_OBJECT_CLASS(sqlipc_glib_statement_parent_class)->finalize(object);
}

static void sqlipc_glib_statement_init(SqlipcStatement *self) { (void) self; }

static void sqlipc_glib_statement_class_init(SqlipcStatementClass *class) {
        GObjectClass *object_class = G_OBJECT_CLASS(class);

        object_class->get_property = get_property;
        object_class->finalize = finalize;

        /**
         * SqlipcStatement:sql: (getter get_sql)
         *
         * The SQL of the statement.
         */
        g_object_class_install_property(
                object_class, 1, g_param_spec_string("sql", NULL, NULL, NULL, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}
