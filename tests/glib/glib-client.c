/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every class of libsqlipc-glib from C, for test_glib.py: glib-client ADDRESS. The service has the database "written", with
 * the tables t(id, name, v) of 1000 rows and many(id, name, v) of 100,000. For tests/bus/test_library_bus.py it finds a
 * database.
 */
#include <sqlipc-glib.h>
#include <stdio.h>
#include <time.h>

#define DB "written"
#define MANY "SELECT * FROM many"
#define ENDLESS "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"

static const char *address;

/* ---- Helpers ------------------------------------------------------------------------------------------------------ */

static SqlipcConnection *open_connection(void) {
        g_autoptr(GError) error = NULL;
        SqlipcConnection *connection = sqlipc_glib_connection_new_for_address(address, &error);

        g_assert_no_error(error);
        return connection;
}

static void on_result(GObject *source, GAsyncResult *result, gpointer data) {
        GAsyncResult **ret = data;

        (void) source;
        *ret = g_object_ref(result);
}

/* Runs the loop until the result is there. */
static GAsyncResult *wait_result(GAsyncResult **result) {
        while (!*result)
                (void) g_main_context_iteration(g_main_context_get_thread_default(), TRUE);
        return *result;
}

static gint64 query_int64(SqlipcConnection *connection, const char *sql) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcCursor) cursor = sqlipc_glib_connection_query(connection, DB, sql, NULL, NULL, &error);
        g_autoptr(SqlipcRow) row = NULL;

        g_assert_no_error(error);
        row = sqlipc_glib_cursor_next(cursor, NULL, &error);
        g_assert_no_error(error);
        return sqlipc_glib_row_get_int64(row, 0);
}

static void execute(SqlipcConnection *connection, const char *sql) {
        g_autoptr(GError) error = NULL;

        (void) sqlipc_glib_connection_execute(connection, DB, sql, NULL, NULL, NULL, NULL, &error);
        g_assert_no_error(error);
}

static gpointer cancel_soon(gpointer data) {
        g_usleep(30000);
        g_cancellable_cancel(data);
        return NULL;
}

static void settle(SqlipcLiveModel *model) {
        do
                (void) g_main_context_iteration(g_main_context_get_thread_default(), TRUE);
        while (!sqlipc_glib_live_model_is_settled(model));
        g_assert_no_error(sqlipc_glib_live_model_get_error(model));
}

/* ---- Classes ------------------------------------------------------------------------------------------------------ */

static void test_values(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcCursor) cursor = NULL;
        g_autoptr(SqlipcRow) row = NULL, end = NULL;
        g_autoptr(GBytes) blob = NULL;
        g_autoptr(GVariant) variant = NULL;
        g_auto(GValue) value = G_VALUE_INIT, null = G_VALUE_INIT;
        g_auto(GStrv) names = NULL;
        g_autofree char *string = NULL;

        cursor = sqlipc_glib_connection_query(
                connection, DB, "SELECT ?1 AS i, ?2 AS r, ?3 AS t, ?4 AS b, ?5 AS n, CAST(x'ff00' AS TEXT) AS bad",
                g_variant_new("(xdsayi)", G_MININT64, 2.5, "text", NULL, 0), NULL, &error);
        g_assert_no_error(error);
        names = sqlipc_glib_cursor_dup_column_names(cursor);
        g_assert_cmpstr(names[0], ==, "i");
        g_assert_cmpuint(sqlipc_glib_cursor_get_n_columns(cursor), ==, 6);
        row = sqlipc_glib_cursor_next(cursor, NULL, &error);
        g_assert_no_error(error);
        end = sqlipc_glib_cursor_next(cursor, NULL, &error);
        g_assert_no_error(error);
        g_assert_null(end);
        g_clear_object(&cursor); /* the row stays */
        g_assert_cmpint(sqlipc_glib_row_get_int64(row, 0), ==, G_MININT64);
        g_assert_cmpfloat(sqlipc_glib_row_get_double(row, 1), ==, 2.5);
        g_assert_cmpstr(sqlipc_glib_row_get_text(row, 2), ==, "text");
        g_assert_null(sqlipc_glib_row_get_text(row, 5));
        blob = sqlipc_glib_row_dup_blob(row, 5);
        g_assert_cmpuint(g_bytes_get_size(blob), ==, 2);
        g_assert_cmpint(sqlipc_glib_row_find_column(row, "bad"), ==, 5);
        g_assert_cmpint(sqlipc_glib_row_find_column(row, "none"), ==, -1);
        g_assert_cmpint(sqlipc_glib_row_get_value_type(row, 3), ==, SQLIPC_GLIB_VALUE_TYPE_BLOB);
        string = sqlipc_glib_row_dup_string(row, 1);
        g_assert_cmpstr(string, ==, "2.5");
        sqlipc_glib_row_get_value(row, 0, &value);
        g_assert_cmpint(g_value_get_int64(&value), ==, G_MININT64);
        sqlipc_glib_row_get_value(row, 99, &null);
        g_assert_null(g_value_get_string(&null));
        variant = sqlipc_glib_row_to_variant(row);
        g_assert_cmpuint(g_variant_n_children(variant), ==, 6);
}

static void test_null(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        GVariantBuilder builder;

        g_variant_builder_init(&builder, G_VARIANT_TYPE("a{sv}"));
        g_variant_builder_add(&builder, "{sv}", "a", g_variant_new_maybe(G_VARIANT_TYPE_VARIANT, NULL));
        g_variant_builder_add(&builder, "{sv}", ":b", g_variant_new_boolean(TRUE));
        g_autoptr(SqlipcCursor) cursor = sqlipc_glib_connection_query(connection, DB, "SELECT :a, :b",
                                                                      g_variant_builder_end(&builder), NULL, &error);
        g_assert_no_error(error);
        g_autoptr(SqlipcRow) row = sqlipc_glib_cursor_next(cursor, NULL, &error);
        g_assert_true(sqlipc_glib_row_is_null(row, 0));
        g_assert_cmpint(sqlipc_glib_row_get_int64(row, 1), ==, 1);

        g_clear_object(&cursor);
        cursor = sqlipc_glib_connection_query(connection, DB, "SELECT ?", g_variant_new("((ii))", 1, 2), NULL, &error);
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT);
        g_assert_null(cursor);
}

static void test_errors(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcCursor) cursor = sqlipc_glib_connection_query(connection, DB, "SELECT nothing FROM t", NULL, NULL,
                                                                      &error);

        g_assert_null(cursor);
        g_assert_error(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_SQL);
        g_assert_cmpint(sqlipc_glib_error_get_sqlite_code(error), ==, 1);
        g_assert_cmpint(sqlipc_glib_error_get_sql_offset(error), ==, 7);
        g_assert_cmpint(sqlipc_glib_connection_get_error_sql_offset(connection), ==, 7);
        g_assert_cmpstr(sqlipc_glib_error_get_name(error), ==, "org.sqlipc1.Error.Sql");
        g_clear_error(&error);
        cursor = sqlipc_glib_connection_query(connection, "none", "SELECT 1", NULL, NULL, &error);
        g_assert_error(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_UNKNOWN_DATABASE);
        g_assert_cmpint(sqlipc_glib_error_get_sql_offset(error), ==, -1);
}

static void test_rows(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcCursor) cursor =
                sqlipc_glib_connection_query(connection, DB, "SELECT id, name, v FROM t ORDER BY id", NULL, NULL, &error);
        guint n = 0;

        g_assert_no_error(error);
        for (;;) {
                g_autoptr(SqlipcRows) rows = sqlipc_glib_cursor_next_rows(cursor, 300, NULL, &error);
                g_autofree gint64 *ids = NULL;
                g_autofree gboolean *nulls = NULL;
                g_auto(GStrv) names = NULL;
                gsize n_ids, n_nulls;

                g_assert_no_error(error);
                if (!rows)
                        break;
                g_assert_cmpuint(sqlipc_glib_rows_get_n_rows(rows), <=, 300);
                ids = sqlipc_glib_rows_dup_int64s(rows, 0, &n_ids);
                nulls = sqlipc_glib_rows_dup_nulls(rows, 2, &n_nulls);
                names = sqlipc_glib_rows_dup_strings(rows, 1);
                g_assert_cmpuint(n_ids, ==, sqlipc_glib_rows_get_n_rows(rows));
                g_assert_cmpuint(n_nulls, ==, n_ids);
                g_assert_cmpint(ids[0], ==, n + 1);
                g_assert_cmpuint(g_strv_length(names), ==, n_ids);
                n += (guint) n_ids;
        }
        g_assert_cmpuint(n, ==, 1000);
}

static void test_statement(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcStatement) statement = sqlipc_glib_connection_prepare(
                connection, DB, "SELECT id, name FROM t WHERE id = :id", NULL, &error);

        g_assert_no_error(error);
        g_assert_true(sqlipc_glib_statement_is_readonly(statement));
        g_assert_cmpuint(sqlipc_glib_statement_get_n_parameters(statement), ==, 1);
        g_assert_cmpstr(sqlipc_glib_statement_get_parameter_name(statement, 1), ==, ":id");
        g_assert_cmpuint(sqlipc_glib_statement_find_parameter(statement, "id"), ==, 1);
        for (gint64 i = 1; i <= 20; i++) {
                g_autoptr(SqlipcCursor) cursor = NULL;
                g_autoptr(SqlipcRow) row = NULL;

                if (i % 2)
                        (void) sqlipc_glib_statement_bind_int64(statement, 1, i, &error);
                else
                        (void) sqlipc_glib_statement_bind_variant(statement, 1, g_variant_new_int64(i), &error);
                g_assert_no_error(error);
                cursor = sqlipc_glib_statement_query(statement, NULL, &error);
                g_assert_no_error(error);
                row = sqlipc_glib_cursor_next(cursor, NULL, &error);
                g_assert_cmpint(sqlipc_glib_row_get_int64(row, 0), ==, i);
        }
        g_assert_false(sqlipc_glib_statement_bind_text(statement, 9, "x", &error));
        g_assert_nonnull(error);
}

static void test_transaction(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        const gint64 before = query_int64(connection, "SELECT count(*) FROM t");

        for (int commits = 0; commits < 2; commits++) {
                g_autoptr(SqlipcTransaction) transaction = sqlipc_glib_connection_begin(
                        connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, NULL, &error);

                g_assert_no_error(error);
                g_assert_true(sqlipc_glib_transaction_is_open(transaction));
                execute(connection, "INSERT INTO t(name) VALUES('new')");
                if (commits)
                        (void) sqlipc_glib_transaction_commit(transaction, NULL, &error);
                else
                        (void) sqlipc_glib_transaction_rollback(transaction, NULL, &error);
                g_assert_no_error(error);
                g_assert_cmpint(query_int64(connection, "SELECT count(*) FROM t"), ==, before + commits);
        }
        execute(connection, "DELETE FROM t WHERE name = 'new'");
}

static void test_load(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcLoad) load = sqlipc_glib_connection_load(connection, DB, "INSERT INTO loaded VALUES(?, ?)", &error);
        GVariantBuilder builder;
        gint64 changes;

        g_assert_no_error(error);
        g_variant_builder_init(&builder, G_VARIANT_TYPE("a(xs)"));
        for (gint64 i = 0; i < 20000; i++)
                g_variant_builder_add(&builder, "(xs)", i, "some text");
        (void) sqlipc_glib_load_add_rows(load, g_variant_builder_end(&builder), NULL, &error);
        g_assert_no_error(error);
        g_assert_true(sqlipc_glib_load_complete(load, &changes, NULL, &error));
        g_assert_cmpint(changes, ==, 20000);
        execute(connection, "DELETE FROM loaded");

        g_clear_object(&load);
        load = sqlipc_glib_connection_load(connection, DB, "INSERT INTO loaded VALUES(?, ?)", &error);
        (void) sqlipc_glib_load_add_rows(load, g_variant_new_parsed("[(1, 'x')]"), NULL, &error);
        g_clear_object(&load); /* takes it back */
        g_assert_cmpint(query_int64(connection, "SELECT count(*) FROM loaded"), ==, 0);
}

static void test_databases(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GAsyncResult) result = NULL;
        g_autoptr(GError) error = NULL;
        g_autoptr(GVariant) list = sqlipc_glib_connection_list_databases(connection, NULL, &error), again = NULL;

        g_assert_no_error(error);
        sqlipc_glib_connection_list_databases_async(connection, NULL, on_result, &result);
        again = sqlipc_glib_connection_list_databases_finish(connection, wait_result(&result), &error);
        g_assert_no_error(error);
        g_assert_true(g_variant_equal(list, again));
}

/* ---- Without waiting ---------------------------------------------------------------------------------------------- */

static void test_async(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcStatement) statement = NULL;
        g_autoptr(SqlipcTransaction) transaction = NULL;
        g_autoptr(SqlipcLoad) load = NULL;
        gint64 changes, rowid;

        for (int i = 0; i < 3; i++) {
                g_autoptr(GAsyncResult) result = NULL, next = NULL, rows_result = NULL;
                g_autoptr(SqlipcCursor) cursor = NULL;
                g_autoptr(SqlipcRow) row = NULL;
                g_autoptr(SqlipcRows) rows = NULL;

                sqlipc_glib_connection_query_async(connection, DB, "SELECT id FROM t ORDER BY id", NULL, NULL, on_result,
                                                   &result);
                cursor = sqlipc_glib_connection_query_finish(connection, wait_result(&result), &error);
                g_assert_no_error(error);
                sqlipc_glib_cursor_next_async(cursor, NULL, on_result, &next);
                row = sqlipc_glib_cursor_next_finish(cursor, wait_result(&next), &error);
                g_assert_cmpint(sqlipc_glib_row_get_int64(row, 0), ==, 1);
                sqlipc_glib_cursor_next_rows_async(cursor, 0, NULL, on_result, &rows_result);
                rows = sqlipc_glib_cursor_next_rows_finish(cursor, wait_result(&rows_result), &error);
                g_assert_no_error(error);
                g_assert_nonnull(rows);
        }
        g_autoptr(GAsyncResult) executed = NULL, prepared = NULL, queried = NULL, begun = NULL, committed = NULL;
        g_autoptr(GAsyncResult) added = NULL, completed = NULL;

        sqlipc_glib_connection_execute_async(connection, DB, "INSERT INTO t(id, name) VALUES(5000, 'async')", NULL, NULL,
                                             on_result, &executed);
        g_assert_true(sqlipc_glib_connection_execute_finish(connection, wait_result(&executed), &changes, &rowid, &error));
        g_assert_cmpint(changes, ==, 1);
        g_assert_cmpint(rowid, ==, 5000);
        sqlipc_glib_connection_prepare_async(connection, DB, "SELECT count(*) FROM t", NULL, on_result, &prepared);
        statement = sqlipc_glib_connection_prepare_finish(connection, wait_result(&prepared), &error);
        g_assert_no_error(error);
        sqlipc_glib_statement_query_async(statement, NULL, on_result, &queried);
        g_object_unref(sqlipc_glib_statement_query_finish(statement, wait_result(&queried), &error));
        sqlipc_glib_connection_begin_async(connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, NULL, on_result, &begun);
        transaction = sqlipc_glib_connection_begin_finish(connection, wait_result(&begun), &error);
        g_assert_no_error(error);
        execute(connection, "DELETE FROM t WHERE id = 5000");
        sqlipc_glib_transaction_commit_async(transaction, NULL, on_result, &committed);
        g_assert_true(sqlipc_glib_transaction_commit_finish(transaction, wait_result(&committed), &error));
        load = sqlipc_glib_connection_load(connection, DB, "INSERT INTO loaded VALUES(?, ?)", &error);
        sqlipc_glib_load_add_rows_async(load, g_variant_new_parsed("[(1, 'x'), (2, 'y')]"), NULL, on_result, &added);
        g_assert_true(sqlipc_glib_load_add_rows_finish(load, wait_result(&added), &error));
        sqlipc_glib_load_complete_async(load, NULL, on_result, &completed);
        g_assert_true(sqlipc_glib_load_complete_finish(load, wait_result(&completed), &changes, &error));
        g_assert_cmpint(changes, ==, 2);
        execute(connection, "DELETE FROM loaded");
}

static gpointer query_in_thread(gpointer data) {
        g_autoptr(GMainContext) context = g_main_context_new();

        (void) data;
        g_main_context_push_thread_default(context);
        test_async();
        g_main_context_pop_thread_default(context);
        return NULL;
}

static void test_thread(void) { g_thread_join(g_thread_new("other context", query_in_thread, NULL)); }

static void test_pending(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(GAsyncResult) first = NULL, closed = NULL;

        sqlipc_glib_connection_query_async(connection, DB, ENDLESS, NULL, NULL, on_result, &closed);
        sqlipc_glib_connection_close(connection);
        g_assert_null(sqlipc_glib_connection_query_finish(connection, wait_result(&closed), &error));
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CLOSED);
        g_clear_error(&error);
        sqlipc_glib_connection_query_async(connection, DB, "SELECT 1", NULL, NULL, on_result, &first);
        g_assert_null(sqlipc_glib_connection_query_finish(connection, wait_result(&first), &error));
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CLOSED);
}

/* ---- Cancellation ------------------------------------------------------------------------------------------------- */

/* At once, after some turns of the loop, and by another thread while a synchronous call waits. */
static void test_cancel_query(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();

        for (int turns = 0; turns < 6; turns++) {
                g_autoptr(GCancellable) cancellable = g_cancellable_new();
                g_autoptr(GAsyncResult) result = NULL, executed = NULL;
                g_autoptr(GError) error = NULL;

                sqlipc_glib_connection_query_async(connection, DB, ENDLESS, NULL, cancellable, on_result, &result);
                sqlipc_glib_connection_execute_async(connection, DB, ENDLESS, NULL, cancellable, on_result, &executed);
                for (int i = 0; i < turns; i++)
                        (void) g_main_context_iteration(NULL, FALSE);
                g_usleep((gulong) turns * 4000);
                g_cancellable_cancel(cancellable);
                g_assert_null(sqlipc_glib_connection_query_finish(connection, wait_result(&result), &error));
                g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
                g_clear_error(&error);
                g_assert_false(
                        sqlipc_glib_connection_execute_finish(connection, wait_result(&executed), NULL, NULL, &error));
                g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
        }
        for (int executes = 0; executes < 2; executes++) {
                g_autoptr(GCancellable) cancellable = g_cancellable_new();
                g_autoptr(GError) error = NULL;
                GThread *thread = g_thread_new("cancel", cancel_soon, cancellable);

                if (executes)
                        g_assert_false(sqlipc_glib_connection_execute(connection, DB, ENDLESS, NULL, NULL, NULL, cancellable,
                                                                      &error));
                else
                        g_assert_null(sqlipc_glib_connection_query(connection, DB, ENDLESS, NULL, cancellable, &error));
                g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
                g_thread_join(thread);
        }
        g_assert_cmpint(query_int64(connection, "SELECT 7"), ==, 7);
}

static void test_cancel_next(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        g_autoptr(GAsyncResult) result = NULL, busy = NULL;
        g_autoptr(GError) error = NULL;
        /* One row, and then nothing for ever. */
        g_autoptr(SqlipcCursor) cursor =
                sqlipc_glib_connection_query(connection, DB, "SELECT 1 UNION ALL SELECT * FROM (" ENDLESS ")", NULL, NULL,
                                             &error);
        g_autoptr(SqlipcRow) row = NULL;

        g_assert_no_error(error);
        row = sqlipc_glib_cursor_next(cursor, NULL, &error);
        g_assert_no_error(error);
        sqlipc_glib_cursor_next_async(cursor, cancellable, on_result, &result);
        sqlipc_glib_cursor_next_async(cursor, NULL, on_result, &busy);
        g_assert_null(sqlipc_glib_cursor_next_finish(cursor, wait_result(&busy), &error));
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_PENDING);
        g_clear_error(&error);
        g_cancellable_cancel(cancellable);
        g_assert_null(sqlipc_glib_cursor_next_finish(cursor, wait_result(&result), &error));
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
        g_clear_error(&error);
        g_assert_null(sqlipc_glib_cursor_next(cursor, NULL, &error)); /* at the service, too */
        g_assert_error(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_CANCELLED);
}

/* A call that is cancelled at once ends with that error, or it was faster. */
static void assert_cancelled_or_done(gboolean done, GError **error) {
        if (!done)
                g_assert_error(*error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
        g_clear_error(error);
}

static void test_cancel_others(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();

        for (int turns = 0; turns < 4; turns++) {
                g_autoptr(GCancellable) cancellable = g_cancellable_new();
                g_autoptr(GAsyncResult) prepared = NULL, begun = NULL, listed = NULL, added = NULL;
                g_autoptr(SqlipcStatement) statement = NULL;
                g_autoptr(SqlipcTransaction) transaction = NULL;
                g_autoptr(GVariant) list = NULL;
                g_autoptr(GError) error = NULL;
                g_autoptr(SqlipcLoad) load =
                        sqlipc_glib_connection_load(connection, DB, "INSERT INTO loaded VALUES(?, ?)", &error);

                g_assert_no_error(error);
                sqlipc_glib_load_add_rows_async(load, g_variant_new_parsed("[(1, 'x')]"), cancellable, on_result, &added);
                sqlipc_glib_connection_prepare_async(connection, DB, "SELECT 1", cancellable, on_result, &prepared);
                sqlipc_glib_connection_list_databases_async(connection, cancellable, on_result, &listed);
                for (int i = 0; i < turns; i++)
                        (void) g_main_context_iteration(NULL, FALSE);
                g_cancellable_cancel(cancellable);
                statement = sqlipc_glib_connection_prepare_finish(connection, wait_result(&prepared), &error);
                assert_cancelled_or_done(statement != NULL, &error);
                list = sqlipc_glib_connection_list_databases_finish(connection, wait_result(&listed), &error);
                assert_cancelled_or_done(list != NULL, &error);
                assert_cancelled_or_done(sqlipc_glib_load_add_rows_finish(load, wait_result(&added), &error), &error);
                g_clear_object(&load);

                g_clear_object(&cancellable);
                cancellable = g_cancellable_new();
                sqlipc_glib_connection_begin_async(connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, cancellable,
                                                   on_result, &begun);
                for (int i = 0; i < turns; i++)
                        (void) g_main_context_iteration(NULL, FALSE);
                g_cancellable_cancel(cancellable);
                transaction = sqlipc_glib_connection_begin_finish(connection, wait_result(&begun), &error);
                assert_cancelled_or_done(transaction != NULL, &error);
        }
        /* Nothing of it keeps others from writing. */
        execute(connection, "INSERT INTO loaded VALUES(1, 'x')");
        execute(connection, "DELETE FROM loaded");
}

static void test_cancel_ends(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcTransaction) transaction = NULL;
        g_autoptr(GAsyncResult) committed = NULL, completed = NULL;
        g_autoptr(SqlipcLoad) load = NULL;
        gboolean done;

        transaction = sqlipc_glib_connection_begin(connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, NULL, &error);
        execute(connection, "INSERT INTO loaded VALUES(1, 'x')");
        sqlipc_glib_transaction_commit_async(transaction, cancellable, on_result, &committed);
        g_cancellable_cancel(cancellable);
        if (!sqlipc_glib_transaction_commit_finish(transaction, wait_result(&committed), &error))
                g_assert_error(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN);
        g_clear_error(&error);
        g_assert_true(sqlipc_glib_transaction_commit(transaction, NULL, &error)); /* tells the outcome */
        g_assert_cmpint(query_int64(connection, "SELECT count(*) FROM loaded"), ==, 1);

        g_clear_object(&cancellable);
        cancellable = g_cancellable_new();
        load = sqlipc_glib_connection_load(connection, DB, "DELETE FROM loaded WHERE n = ?", &error);
        (void) sqlipc_glib_load_add_rows(load, g_variant_new_parsed("[(1,)]"), NULL, &error);
        sqlipc_glib_load_complete_async(load, cancellable, on_result, &completed);
        g_cancellable_cancel(cancellable);
        done = sqlipc_glib_load_complete_finish(load, wait_result(&completed), NULL, &error);
        if (g_error_matches(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN)) {
                g_clear_error(&error);
                done = sqlipc_glib_load_complete(load, NULL, NULL, &error);
                g_assert_true(done || g_error_matches(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_CANCELLED));
                g_clear_error(&error);
        } else
                assert_cancelled_or_done(done, &error);
        g_assert_cmpint(query_int64(connection, "SELECT count(*) FROM loaded"), ==, done ? 0 : 1);
        execute(connection, "DELETE FROM loaded");
}

/* ---- Models ------------------------------------------------------------------------------------------------------- */

static void count_changes(GListModel *model, guint position, guint removed, guint added, gpointer data) {
        guint *sums = data;

        (void) model;
        (void) position;
        sums[0] += removed;
        sums[1] += added;
}

static void test_model(void) {
        const char *const key[] = { "id", NULL };

        for (int windowed = 0; windowed < 2; windowed++) {
                g_autoptr(SqlipcConnection) connection = open_connection();
                g_autoptr(SqlipcLiveModel) model =
                        windowed ? sqlipc_glib_live_model_new_windowed(connection, DB, "SELECT * FROM t", NULL, key, NULL)
                                 : sqlipc_glib_live_model_new(connection, DB, "SELECT * FROM t ORDER BY id", NULL, key);
                g_autoptr(SqlipcRow) row = NULL, same = NULL;
                guint sums[2] = { 0 };

                settle(model);
                g_assert_cmpuint(g_list_model_get_n_items(G_LIST_MODEL(model)), ==, 1000);
                row = g_list_model_get_item(G_LIST_MODEL(model), 500);
                g_assert_cmpint(sqlipc_glib_row_get_int64(row, 0), ==, 501);
                (void) g_signal_connect(model, "items-changed", G_CALLBACK(count_changes), sums);
                execute(connection, "DELETE FROM t WHERE id IN (1, 2, 700)");
                execute(connection, "UPDATE t SET name = 'other' WHERE id = 501");
                sqlipc_glib_live_model_refresh(model);
                settle(model);
                g_assert_cmpuint(sums[0], ==, 3);
                g_assert_cmpuint(sums[1], ==, 0);
                g_assert_cmpint(sqlipc_glib_live_model_find(model, row), ==, 498);
                same = g_list_model_get_item(G_LIST_MODEL(model), 498);
                g_assert_true(row == same);
                g_assert_cmpstr(sqlipc_glib_row_get_text(row, 1), ==, "other");
                execute(connection, "INSERT INTO t(id, name) VALUES(1, 'name 1'), (2, 'name 2'), (700, 'name 700')");
                execute(connection, "UPDATE t SET name = 'name 501' WHERE id = 501");
                sqlipc_glib_live_model_refresh(model);
                settle(model);
                g_assert_cmpuint(sums[0], ==, 3);
                g_assert_cmpuint(sums[1], ==, 3);
        }
}

static void count_signal(SqlipcWatch *watch, gpointer data) {
        (void) watch;
        ++*(guint *) data;
}

static void test_watch(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        const char *const tables[] = { "loaded", NULL };
        g_autoptr(SqlipcWatch) watch = sqlipc_glib_connection_watch_tables(connection, DB, tables, &error);
        g_autoptr(SqlipcWatch) other = NULL;
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        g_autoptr(GAsyncResult) cancelled = NULL, changed = NULL, closed = NULL;
        guint n = 0;

        g_assert_no_error(error);
        sqlipc_glib_watch_next_async(watch, cancellable, on_result, &cancelled);
        while (sqlipc_glib_watch_get_sequence(watch) == 0)
                (void) g_main_context_iteration(NULL, TRUE);
        g_cancellable_cancel(cancellable);
        /* A watch may tell a change that came shortly before it. */
        assert_cancelled_or_done(sqlipc_glib_watch_next_finish(watch, wait_result(&cancelled), &error), &error);

        execute(connection, "INSERT INTO loaded VALUES(1, 'x')");
        g_assert_true(sqlipc_glib_watch_next(watch, NULL, &error));
        sqlipc_glib_watch_next_async(watch, NULL, on_result, &changed);
        execute(connection, "DELETE FROM loaded");
        g_assert_true(sqlipc_glib_watch_next_finish(watch, wait_result(&changed), &error));
        sqlipc_glib_watch_next_async(watch, NULL, on_result, &closed);
        sqlipc_glib_watch_close(watch);
        g_assert_false(sqlipc_glib_watch_next_finish(watch, wait_result(&closed), &error));
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CLOSED);
        g_clear_error(&error);

        other = sqlipc_glib_connection_watch_statement(connection, DB, "SELECT * FROM loaded", &error);
        (void) g_signal_connect(other, "changed", G_CALLBACK(count_signal), &n);
        sqlipc_glib_watch_start(other);
        while (sqlipc_glib_watch_get_sequence(other) == 0)
                (void) g_main_context_iteration(NULL, TRUE);
        execute(connection, "INSERT INTO loaded VALUES(1, 'x')");
        while (n == 0)
                (void) g_main_context_iteration(NULL, TRUE);
        sqlipc_glib_watch_close(other);
        execute(connection, "DELETE FROM loaded");
}

static void expect_change(SqlipcLiveQuery *query, SqlipcLiveKind kind, guint position) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcLiveChange) change = sqlipc_glib_live_query_next(query, NULL, &error);

        g_assert_no_error(error);
        g_assert_cmpint(sqlipc_glib_live_change_get_kind(change), ==, kind);
        g_assert_cmpuint(sqlipc_glib_live_change_get_position(change), ==, position);
}

static void test_live_query(void) {
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(GError) error = NULL;
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        g_autoptr(GAsyncResult) cancelled = NULL, result = NULL;
        g_autoptr(SqlipcLiveChange) change = NULL;
        g_autoptr(SqlipcLiveQuery) query = sqlipc_glib_connection_live_query(
                connection, DB, "SELECT id, name FROM t WHERE id <= ? ORDER BY id", g_variant_new("(i)", 3), NULL, 0,
                &error);

        g_assert_no_error(error);
        for (guint i = 0; i < 3; i++)
                expect_change(query, SQLIPC_GLIB_LIVE_KIND_ADDED, i);
        expect_change(query, SQLIPC_GLIB_LIVE_KIND_SETTLED, 0);
        sqlipc_glib_live_query_next_async(query, cancellable, on_result, &cancelled);
        g_cancellable_cancel(cancellable);
        g_assert_null(sqlipc_glib_live_query_next_finish(query, wait_result(&cancelled), &error));
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
        g_clear_error(&error);

        execute(connection, "UPDATE t SET name = 'other' WHERE id = 2");
        sqlipc_glib_live_query_next_async(query, NULL, on_result, &result);
        change = sqlipc_glib_live_query_next_finish(query, wait_result(&result), &error);
        g_assert_no_error(error);
        g_assert_cmpint(sqlipc_glib_live_change_get_kind(change), ==, SQLIPC_GLIB_LIVE_KIND_CHANGED);
        g_assert_cmpstr(sqlipc_glib_row_get_text(sqlipc_glib_live_change_get_row(change), 1), ==, "other");
        g_assert_cmpstr(sqlipc_glib_row_get_text(sqlipc_glib_live_change_get_old_row(change), 1), ==, "name 2");
        execute(connection, "UPDATE t SET name = 'name 2' WHERE id = 2");
        sqlipc_glib_live_query_close(query);
        g_clear_object(&change);
        change = sqlipc_glib_live_query_next(query, NULL, &error);
        g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CLOSED);
}

typedef struct Turns {
        SqlipcLiveModel *model;
        gint64 began, first; /* microseconds; 0: no row has come */
        guint n, n_max;      /* rows that were told in this turn, and in one turn at most */
} Turns;

static void on_first_rows(GListModel *model, guint position, guint removed, guint added, gpointer data) {
        Turns *turns = data;

        (void) model;
        (void) position;
        (void) removed;
        if (turns->first == 0)
                turns->first = g_get_monotonic_time() - turns->began;
        turns->n += added;
}

static gint64 processor_usec(void) {
        struct timespec now;

        g_assert_cmpint(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), ==, 0);
        return (gint64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* 100,000 rows come in many turns of the loop, so that none is long. Times are only shown: --verbose. */
static void test_model_turns(void) {
        const char *const key[] = { "id", NULL };

        for (int windowed = 0; windowed < 2; windowed++) {
                g_autoptr(SqlipcConnection) connection = open_connection();
                Turns turns = { .n = 0 };
                gint64 longest = 0;
                guint n_turns = 0;

                (void) query_int64(connection, "SELECT count(*) FROM many");
                turns.began = g_get_monotonic_time();
                if (windowed)
                        turns.model = sqlipc_glib_live_model_new_windowed(connection, DB, MANY, NULL, key, NULL);
                else
                        turns.model = sqlipc_glib_live_model_new(connection, DB, MANY, NULL, key);
                (void) g_signal_connect(turns.model, "items-changed", G_CALLBACK(on_first_rows), &turns);
                while (!sqlipc_glib_live_model_is_settled(turns.model)) {
                        gint64 before = processor_usec();

                        turns.n = 0;
                        (void) g_main_context_iteration(NULL, TRUE);
                        turns.n_max = MAX(turns.n_max, turns.n);
                        longest = MAX(longest, processor_usec() - before);
                        n_turns++;
                }
                g_test_message("%s: first rows after %.1f ms, %u turns, the longest took %.1f ms of the processor",
                               windowed ? "windows" : "whole", (double) turns.first / 1000, n_turns,
                               (double) longest / 1000);
                g_assert_cmpuint(g_list_model_get_n_items(G_LIST_MODEL(turns.model)), ==, 100000);
                if (!windowed) /* with windows, rows that are only counted cost nothing */
                        g_assert_cmpuint(turns.n_max, <=, 512);
                g_assert_cmpuint(n_turns, >=, 100000 / 512);
                g_object_unref(turns.model);
        }
}

/* With windows, the first rows are shown before it is known how many there are. */
static void test_model_first_rows(void) {
        const char *const key[] = { "id", NULL };
        g_autoptr(SqlipcConnection) connection = open_connection();
        Turns turns = { .n = 0 };
        guint sums[2] = { 0 };

        turns.model = sqlipc_glib_live_model_new_windowed(connection, DB, "SELECT * FROM t", NULL, key, NULL);
        (void) g_signal_connect(turns.model, "items-changed", G_CALLBACK(on_first_rows), &turns);
        (void) g_signal_connect(turns.model, "items-changed", G_CALLBACK(count_changes), sums);
        while (turns.n == 0)
                (void) g_main_context_iteration(NULL, TRUE);
        g_assert_cmpuint(turns.n, <=, 256); /* of the first window, as many as have come */
        settle(turns.model);
        g_assert_cmpuint(g_list_model_get_n_items(G_LIST_MODEL(turns.model)), ==, 1000);
        g_assert_cmpuint(sums[0], ==, 0);
        g_assert_cmpuint(sums[1], ==, 1000);
        g_object_unref(turns.model);
}

/* A model ends in each state, with rows that outlive it. */
static void test_model_ends(void) {
        const char *const key[] = { "id", NULL }, *const order[] = { "name DESC", NULL };
        g_autoptr(SqlipcConnection) connection = open_connection();
        g_autoptr(SqlipcRow) row = NULL;

        for (int turns = 0; turns < 12; turns++) {
                g_autoptr(SqlipcLiveModel) model =
                        sqlipc_glib_live_model_new_windowed(connection, DB, "SELECT * FROM t", NULL, key, order);

                for (int i = 0; i < turns; i++)
                        (void) g_main_context_iteration(NULL, FALSE);
                g_usleep((gulong) turns * 500);
                g_clear_object(&row);
                row = g_list_model_get_item(G_LIST_MODEL(model), 0);
        }
        while (g_main_context_iteration(NULL, FALSE))
                ;
}

/* Prints the bus on which the database was found, and its row, or why not: glib-client find DATABASE BUS WAY. */
static int find(const char *database, const char *bus, const char *way) {
        SqlipcBus chosen = g_str_equal(bus, "user")     ? SQLIPC_GLIB_BUS_USER
                           : g_str_equal(bus, "system") ? SQLIPC_GLIB_BUS_SYSTEM
                                                        : SQLIPC_GLIB_BUS_FOUND;
        g_autoptr(SqlipcConnection) connection = NULL;
        g_autoptr(GAsyncResult) result = NULL;
        g_autoptr(GVariant) databases = NULL;
        g_autoptr(SqlipcCursor) cursor = NULL;
        g_autoptr(SqlipcRow) row = NULL;
        g_autoptr(GError) error = NULL;
        SqlipcBus found;

        if (g_str_equal(way, "async")) {
                sqlipc_glib_connection_new_for_database_async(database, chosen, NULL, on_result, &result);
                connection = sqlipc_glib_connection_new_for_database_finish(wait_result(&result), &error);
        } else
                connection = sqlipc_glib_connection_new_for_database(database, chosen, &error);
        if (!connection) {
                printf("%s %s\n", sqlipc_glib_error_get_name(error), error->message);
                return 0;
        }
        g_object_get(connection, "bus", &found, NULL);
        cursor = sqlipc_glib_connection_query(connection, database, "SELECT name FROM place", NULL, NULL, &error);
        g_assert_no_error(error);
        row = sqlipc_glib_cursor_next(cursor, NULL, &error);
        g_assert_no_error(error);
        databases = sqlipc_glib_connection_list_databases(connection, NULL, &error);
        g_assert_no_error(error);
        printf("%s %s %" G_GSIZE_FORMAT "\n", found == SQLIPC_GLIB_BUS_USER ? "user" : "system",
               sqlipc_glib_row_get_text(row, 0), g_variant_n_children(databases));
        return 0;
}

int main(int argc, char **argv) {
        if (argc == 5 && g_str_equal(argv[1], "find"))
                return find(argv[2], argv[3], argv[4]);
        g_test_init(&argc, &argv, NULL);
        if (argc != 2)
                return 2;
        address = argv[1];
        g_test_add_func("/databases", test_databases);
        g_test_add_func("/values", test_values);
        g_test_add_func("/null", test_null);
        g_test_add_func("/errors", test_errors);
        g_test_add_func("/rows", test_rows);
        g_test_add_func("/statement", test_statement);
        g_test_add_func("/transaction", test_transaction);
        g_test_add_func("/load", test_load);
        g_test_add_func("/async", test_async);
        g_test_add_func("/thread", test_thread);
        g_test_add_func("/pending", test_pending);
        g_test_add_func("/cancel/query", test_cancel_query);
        g_test_add_func("/cancel/next", test_cancel_next);
        g_test_add_func("/cancel/others", test_cancel_others);
        g_test_add_func("/cancel/ends", test_cancel_ends);
        g_test_add_func("/model", test_model);
        g_test_add_func("/watch", test_watch);
        g_test_add_func("/live-query", test_live_query);
        g_test_add_func("/model/turns", test_model_turns);
        g_test_add_func("/model/first-rows", test_model_first_rows);
        g_test_add_func("/model/ends", test_model_ends);
        return g_test_run();
}
