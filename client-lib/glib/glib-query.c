/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queries of a connection, which need no statement. GLib library. */
#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-cursor.h"
#include "client-lib/glib/glib-error.h"
#include "client-lib/glib/glib-parameters.h"
#include "client-lib/glib/glib-query.h"

/* An operation that runs `sql`; NULL in it and an error if that has failed. */
static Operation *new_run(SqlipcConnection *self, const char *database, const char *sql, GVariant *variant, bool rows,
                          GCancellable *cancellable, GError **error) {
        g_autoptr(GVariant) sunk = variant ? g_variant_ref_sink(variant) : NULL;
        Operation *o = operation_new(self, self, cancellable);
        g_auto(VariantParameters) parameters = { .values = NULL };
        sqlipc_cursor *handle = NULL;
        int r;

        if (!parameters_init(&parameters, sunk, error))
                return o;
        if (g_cancellable_set_error_if_cancelled(cancellable, error)) /* it must not be sent */
                return o;
        r = sqlipc_query_with(connection_handle(self), database, sql, parameters_values(&parameters), parameters.values->len,
                              &handle);
        if (r < 0) {
                error_set_last(error, connection_handle(self), r);
                return o;
        }
        if (rows)
                cursor_prepare_query(o, handle, NULL);
        else
                cursor_prepare_execute(o, handle);
        return o;
}

void query_start(SqlipcConnection *self, const char *database, const char *sql, const sqlipc_parameter *parameters, gsize n,
                 GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data) {
        Operation *o = operation_new(self, self, cancellable);
        sqlipc_cursor *handle = NULL;
        GError *failure = NULL;
        int r = sqlipc_query_with(connection_handle(self), database, sql, parameters, n, &handle);

        if (r < 0)
                error_set_last(&failure, connection_handle(self), r);
        else
                cursor_prepare_read(o, handle, NULL);
        operation_set_task(o, query_start, callback, user_data);
        operation_start(o, failure);
}

SqlipcCursor *query_finish(SqlipcConnection *self, GAsyncResult *result, GError **error) {
        Operation *o = operation_finish(self, result, query_start, error);

        return o ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_connection_query:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement
 * @parameters: (nullable): a tuple or an array of positional parameters, or a dictionary `a{sv}` of named ones; consumed if
 *   it is floating
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @error: return location for an error
 *
 * Runs a statement, and waits for its first rows. A statement that writes is done when the cursor has come to its end.
 *
 * If a statement that may write is cancelled, this function waits for up to five seconds until the service has said how it
 * ended. After %G_IO_ERROR_CANCELLED it has changed nothing. If it was done before, the function succeeds, and the cursor
 * has its rows. After %SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN the statement may have taken effect. The same rule holds in a
 * transaction: if the outcome is unknown, the transaction may have the changes, so roll it back. A statement ends at once if
 * the service has said that it only reads.
 *
 * Returns: (transfer full): the cursor
 */
SqlipcCursor *sqlipc_glib_connection_query(SqlipcConnection *self, const char *database, const char *sql,
                                           GVariant *parameters, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql, NULL);
        o = new_run(self, database, sql, parameters, true, cancellable, &failure);
        return operation_run(o, failure, error) ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_connection_query_async:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement
 * @parameters: (nullable): see [method@Sqlipc.Connection.query]
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @callback: (scope async): called when the first rows, or the end of the result, are there
 * @user_data: data of @callback
 *
 * Runs a statement, without waiting. For a cancellation see [method@Sqlipc.Connection.query].
 */
void sqlipc_glib_connection_query_async(SqlipcConnection *self, const char *database, const char *sql,
                                        GVariant *parameters, GCancellable *cancellable, GAsyncReadyCallback callback,
                                        gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql);
        o = new_run(self, database, sql, parameters, true, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_connection_query_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_connection_query_finish:
 * @self: a connection
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full): the cursor
 */
SqlipcCursor *sqlipc_glib_connection_query_finish(SqlipcConnection *self, GAsyncResult *result, GError **error) {
        Operation *o = operation_finish(self, result, sqlipc_glib_connection_query_async, error);

        return o ? operation_take(o) : NULL;
}

static gboolean take_changes(const Operation *o, gint64 *changes, gint64 *last_rowid) {
        if (changes)
                *changes = o->changes;
        if (last_rowid)
                *last_rowid = o->last_rowid;
        return TRUE;
}

/**
 * sqlipc_glib_connection_execute:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement
 * @parameters: (nullable): see [method@Sqlipc.Connection.query]
 * @changes: (out) (optional): return location for the number of rows that were changed
 * @last_rowid: (out) (optional): return location for the rowid of the last row that was inserted
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @error: return location for an error
 *
 * Runs a statement to its end, for its effect. Rows that it returns are dropped. On success the changes are committed, or
 * belong to the connection's transaction on the database.
 *
 * After %SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN the statement may have taken effect. After %G_IO_ERROR_CANCELLED it has changed
 * nothing: this function waits for up to five seconds until the service has said how it ended. The same rule holds in a
 * transaction: if the outcome is unknown, the transaction may have the changes, so roll it back.
 *
 * Returns: whether it succeeded
 */
gboolean sqlipc_glib_connection_execute(SqlipcConnection *self, const char *database, const char *sql,
                                        GVariant *parameters, gint64 *changes, gint64 *last_rowid,
                                        GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql, FALSE);
        o = new_run(self, database, sql, parameters, false, cancellable, &failure);
        return operation_run(o, failure, error) && take_changes(o, changes, last_rowid);
}

/**
 * sqlipc_glib_connection_execute_async:
 * @self: a connection
 * @database: the name of a database
 * @sql: one statement
 * @parameters: (nullable): see [method@Sqlipc.Connection.query]
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @callback: (scope async): called when the statement is done
 * @user_data: data of @callback
 *
 * Runs a statement for its effect, without waiting. See [method@Sqlipc.Connection.execute].
 */
void sqlipc_glib_connection_execute_async(SqlipcConnection *self, const char *database, const char *sql,
                                          GVariant *parameters, GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_CONNECTION(self) && database && sql);
        o = new_run(self, database, sql, parameters, false, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_connection_execute_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_connection_execute_finish:
 * @self: a connection
 * @result: the result that the callback got
 * @changes: (out) (optional): return location for the number of rows that were changed
 * @last_rowid: (out) (optional): return location for the rowid of the last row that was inserted
 * @error: return location for an error
 *
 * Returns: whether it succeeded
 */
gboolean sqlipc_glib_connection_execute_finish(SqlipcConnection *self, GAsyncResult *result, gint64 *changes,
                                               gint64 *last_rowid, GError **error) {
        const Operation *o = operation_finish(self, result, sqlipc_glib_connection_execute_async, error);

        return o && take_changes(o, changes, last_rowid);
}
