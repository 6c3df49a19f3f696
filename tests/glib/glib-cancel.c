/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cancellation at each place where a program of libsqlipc-glib waits, from C, for test_glib.py: glib-cancel ADDRESS.
 *
 * For each asynchronous function, the program says "ready NAME" before the call, "waiting NAME" during it, and "cancelled
 * NAME" after the cancellation was reported. Each time it waits for a line of the test, which looks at the service
 * meanwhile.
 */
#include <glib-unix.h>
#include <sqlipc-glib.h>
#include <stdio.h>

#define DB "written"
#define ENDLESS "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
#define ONE_ROW "SELECT 1 UNION ALL SELECT * FROM (" ENDLESS ")" /* and then nothing for ever */

/* What a call needs. All are new for each call. */
typedef struct Objects {
        SqlipcConnection *connection;
        SqlipcStatement *statement;
        SqlipcCursor *cursor;
        SqlipcTransaction *transaction;
        SqlipcLoad *load;
        SqlipcWatch *watch;
        SqlipcLiveQuery *live;
} Objects;

typedef struct Call {
        const char *name;
        void (*prepare)(Objects *o); /* NULL: the connection is enough */
        void (*start)(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data);
        gboolean (*finish)(Objects *o, GAsyncResult *result, GError **error);
        void (*check)(Objects *o);   /* afterwards; may be NULL */
        gboolean unknown;            /* it may have written, and the service is stopped, so that its outcome is unknown */
} Call;

/* Returns true if there is an object, which it frees. */
static gboolean drop(gpointer object) {
        if (object)
                g_object_unref(object);
        return object != NULL;
}

/* ---- Connection --------------------------------------------------------------------------------------------------- */

static void start_query(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_connection_query_async(o->connection, DB, ENDLESS, NULL, cancellable, callback, data);
}

static gboolean finish_query(Objects *o, GAsyncResult *result, GError **error) {
        return drop(sqlipc_glib_connection_query_finish(o->connection, result, error));
}

static void start_execute(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_connection_execute_async(o->connection, DB, ENDLESS, NULL, cancellable, callback, data);
}

static gboolean finish_execute(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_connection_execute_finish(o->connection, result, NULL, NULL, error);
}

static void start_prepare(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_connection_prepare_async(o->connection, DB, "SELECT 1", cancellable, callback, data);
}

static gboolean finish_prepare(Objects *o, GAsyncResult *result, GError **error) {
        return drop(sqlipc_glib_connection_prepare_finish(o->connection, result, error));
}

static void start_begin(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_connection_begin_async(o->connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, cancellable, callback,
                                           data);
}

static gboolean finish_begin(Objects *o, GAsyncResult *result, GError **error) {
        return drop(sqlipc_glib_connection_begin_finish(o->connection, result, error));
}

static void start_list(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_connection_list_databases_async(o->connection, cancellable, callback, data);
}

static gboolean finish_list(Objects *o, GAsyncResult *result, GError **error) {
        g_autoptr(GVariant) list = sqlipc_glib_connection_list_databases_finish(o->connection, result, error);

        return list != NULL;
}

/* ---- Cursor and Statement ----------------------------------------------------------------------------------------- */

static void open_cursor(Objects *o) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcRow) row = NULL;

        o->cursor = sqlipc_glib_connection_query(o->connection, DB, ONE_ROW, NULL, NULL, &error);
        g_assert_no_error(error);
        row = sqlipc_glib_cursor_next(o->cursor, NULL, &error);
        g_assert_no_error(error);
}

static void start_next(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_cursor_next_async(o->cursor, cancellable, callback, data);
}

static gboolean finish_next(Objects *o, GAsyncResult *result, GError **error) {
        return drop(sqlipc_glib_cursor_next_finish(o->cursor, result, error));
}

static void start_next_rows(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_cursor_next_rows_async(o->cursor, 0, cancellable, callback, data);
}

static gboolean finish_next_rows(Objects *o, GAsyncResult *result, GError **error) {
        return drop(sqlipc_glib_cursor_next_rows_finish(o->cursor, result, error));
}

static void prepare_statement(Objects *o) {
        g_autoptr(GError) error = NULL;

        o->statement = sqlipc_glib_connection_prepare(o->connection, DB, ENDLESS, NULL, &error);
        g_assert_no_error(error);
}

static void start_statement(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_statement_query_async(o->statement, cancellable, callback, data);
}

static gboolean finish_statement(Objects *o, GAsyncResult *result, GError **error) {
        return drop(sqlipc_glib_statement_query_finish(o->statement, result, error));
}

/* ---- Transaction and Load ----------------------------------------------------------------------------------------- */

static void begin(Objects *o) {
        g_autoptr(GError) error = NULL;

        o->transaction = sqlipc_glib_connection_begin(o->connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, NULL, &error);
        g_assert_no_error(error);
        (void) sqlipc_glib_connection_execute(o->connection, DB, "INSERT INTO loaded VALUES(1, 'x')", NULL, NULL, NULL, NULL,
                                              &error);
        g_assert_no_error(error);
}

static gint64 count_loaded(Objects *o) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SqlipcCursor) cursor =
                sqlipc_glib_connection_query(o->connection, DB, "SELECT count(*) FROM loaded", NULL, NULL, &error);
        g_autoptr(SqlipcRow) row = NULL;
        gint64 n;

        g_assert_no_error(error);
        row = sqlipc_glib_cursor_next(cursor, NULL, &error);
        g_assert_no_error(error);
        n = sqlipc_glib_row_get_int64(row, 0);
        (void) sqlipc_glib_connection_execute(o->connection, DB, "DELETE FROM loaded", NULL, NULL, NULL, NULL, &error);
        g_assert_no_error(error);
        return n;
}

static void start_commit(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_transaction_commit_async(o->transaction, cancellable, callback, data);
}

static gboolean finish_commit(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_transaction_commit_finish(o->transaction, result, error);
}

/* It goes on. */
static void check_commit(Objects *o) {
        g_autoptr(GError) error = NULL;

        (void) sqlipc_glib_transaction_commit(o->transaction, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpint(count_loaded(o), ==, 1);
}

static void start_rollback(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_transaction_rollback_async(o->transaction, cancellable, callback, data);
}

static gboolean finish_rollback(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_transaction_rollback_finish(o->transaction, result, error);
}

static void check_rollback(Objects *o) {
        g_autoptr(GError) error = NULL;

        (void) sqlipc_glib_transaction_rollback(o->transaction, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpint(count_loaded(o), ==, 0);
}

static void check_nothing_loaded(Objects *o) { g_assert_cmpint(count_loaded(o), ==, 0); }

static void open_load(Objects *o) {
        g_autoptr(GError) error = NULL;

        o->load = sqlipc_glib_connection_load(o->connection, DB, "INSERT INTO loaded VALUES(?, ?)", &error);
        g_assert_no_error(error);
        (void) sqlipc_glib_load_add_rows(o->load, g_variant_new_parsed("[(1, 'x')]"), NULL, &error);
        g_assert_no_error(error);
}

/* More than the pipe holds. */
static void start_add(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        g_autofree char *text = g_strnfill(100000, 'x');
        GVariantBuilder builder;

        g_variant_builder_init(&builder, G_VARIANT_TYPE("a(xs)"));
        for (gint64 i = 0; i < 100; i++)
                g_variant_builder_add(&builder, "(xs)", i, text);
        sqlipc_glib_load_add_rows_async(o->load, g_variant_builder_end(&builder), cancellable, callback, data);
}

static gboolean finish_add(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_load_add_rows_finish(o->load, result, error);
}

static void start_complete(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_load_complete_async(o->load, cancellable, callback, data);
}

static gboolean finish_complete(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_load_complete_finish(o->load, result, NULL, error);
}

static void check_complete(Objects *o) {
        g_autoptr(GError) error = NULL;
        gint64 changes = 0;

        if (!sqlipc_glib_load_complete(o->load, &changes, NULL, &error))
                g_assert_error(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_CANCELLED);
        g_assert_cmpint(changes, ==, error ? 0 : 1);
        g_assert_cmpint(count_loaded(o), ==, changes);
}

/* ---- Watch and LiveQuery ------------------------------------------------------------------------------------------ */

static void open_watch(Objects *o) {
        const char *const tables[] = { "many", NULL };
        g_autoptr(GError) error = NULL;

        o->watch = sqlipc_glib_connection_watch_tables(o->connection, DB, tables, &error);
        g_assert_no_error(error);
}

static void start_watch_next(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_watch_next_async(o->watch, cancellable, callback, data);
}

static gboolean finish_watch_next(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_watch_next_finish(o->watch, result, error);
}

static void open_live(Objects *o) {
        SqlipcLiveKind kind = SQLIPC_GLIB_LIVE_KIND_ADDED;
        g_autoptr(GError) error = NULL;

        o->live = sqlipc_glib_connection_live_query(o->connection, DB, "SELECT id FROM t WHERE id < 4", NULL, NULL, 0,
                                                    &error);
        g_assert_no_error(error);
        while (kind != SQLIPC_GLIB_LIVE_KIND_SETTLED) {
                g_autoptr(SqlipcLiveChange) change = sqlipc_glib_live_query_next(o->live, NULL, &error);

                g_assert_no_error(error);
                kind = sqlipc_glib_live_change_get_kind(change);
        }
}

static void start_live_next(Objects *o, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_live_query_next_async(o->live, cancellable, callback, data);
}

static gboolean finish_live_next(Objects *o, GAsyncResult *result, GError **error) {
        return drop(sqlipc_glib_live_query_next_finish(o->live, result, error));
}

/* ---- The calls ---------------------------------------------------------------------------------------------------- */

/* That of the watch is the first, when nothing has been written: a late notice of a commit would end it. */
static const Call calls[] = {
        { "Watch.next_async", open_watch, start_watch_next, finish_watch_next, NULL, FALSE },
        { "Connection.begin_async", NULL, start_begin, finish_begin, NULL, FALSE },
        { "Connection.execute_async", NULL, start_execute, finish_execute, NULL, FALSE },
        { "Connection.list_databases_async", NULL, start_list, finish_list, NULL, FALSE },
        { "Connection.prepare_async", NULL, start_prepare, finish_prepare, NULL, FALSE },
        { "Connection.query_async", NULL, start_query, finish_query, NULL, FALSE },
        { "Cursor.next_async", open_cursor, start_next, finish_next, NULL, FALSE },
        { "Cursor.next_rows_async", open_cursor, start_next_rows, finish_next_rows, NULL, FALSE },
        { "LiveQuery.next_async", open_live, start_live_next, finish_live_next, NULL, FALSE },
        { "Load.add_rows_async", open_load, start_add, finish_add, check_nothing_loaded, FALSE },
        { "Load.complete_async", open_load, start_complete, finish_complete, check_complete, TRUE },
        { "Statement.query_async", prepare_statement, start_statement, finish_statement, NULL, FALSE },
        { "Transaction.commit_async", begin, start_commit, finish_commit, check_commit, TRUE },
        { "Transaction.rollback_async", begin, start_rollback, finish_rollback, check_rollback, FALSE },
};

static gboolean on_input(gint fd, GIOCondition condition, gpointer data) {
        (void) fd;
        (void) condition;
        *(gboolean *) data = TRUE;
        return G_SOURCE_REMOVE;
}

/* The loop goes on meanwhile, as in any program. */
static void tell(const char *what, const char *name) {
        gboolean here = FALSE;
        char line[16];

        printf("%s %s\n", what, name);
        (void) fflush(stdout);
        (void) g_unix_fd_add(0, G_IO_IN | G_IO_HUP, on_input, &here);
        while (!here)
                (void) g_main_context_iteration(NULL, TRUE);
        g_assert_nonnull(fgets(line, sizeof line, stdin));
}

static gboolean on_time(gpointer data) {
        *(gboolean *) data = TRUE;
        return G_SOURCE_REMOVE;
}

static void turn_for(guint msec) {
        gboolean over = FALSE;

        (void) g_timeout_add(msec, on_time, &over);
        while (!over)
                (void) g_main_context_iteration(NULL, TRUE);
}

static void on_result(GObject *source, GAsyncResult *result, gpointer data) {
        (void) source;
        *(GAsyncResult **) data = g_object_ref(result);
}

static void cancel_call(const char *address, const Call *call) {
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        g_autoptr(GAsyncResult) result = NULL;
        g_autoptr(GError) error = NULL;
        Objects o = { .connection = sqlipc_glib_connection_new_for_address(address, &error) };

        g_assert_no_error(error);
        if (call->prepare)
                call->prepare(&o);
        tell("ready", call->name);
        call->start(&o, cancellable, on_result, &result);
        turn_for(20);
        tell("waiting", call->name);
        g_assert_null(result);
        g_cancellable_cancel(cancellable);
        while (!result)
                (void) g_main_context_iteration(NULL, TRUE);
        g_assert_false(call->finish(&o, result, &error));
        if (call->unknown)
                g_assert_error(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN);
        else
                g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
        tell("cancelled", call->name);
        if (call->check)
                call->check(&o);
        g_clear_object(&o.statement);
        g_clear_object(&o.cursor);
        g_clear_object(&o.transaction);
        g_clear_object(&o.load);
        g_clear_object(&o.watch);
        g_clear_object(&o.live);
        g_clear_object(&o.connection);
}

int main(int argc, char **argv) {
        if (argc != 2)
                return 2;
        for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
                cancel_call(argv[1], &calls[i]);
        return 0;
}
