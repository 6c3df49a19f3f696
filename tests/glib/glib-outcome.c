/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cancelled writes from C, with the asynchronous functions, for test_glib.py: glib-outcome ADDRESS.
 *
 * Each line of the input is "CALL MOMENT SQL". The program says "ready", begins the call, says "waiting", cancels it, and
 * says how it ended: "done" and the number of rows, "cancelled", "unknown", or the error. It waits for a line of the test
 * before the call, before the cancellation and at the end. If the outcome of a commit or a load is unknown, it then asks
 * again, and says how that ended. The moments:
 *
 *      before   the call is cancelled before it begins
 *      late     the main loop does not run between the call and the cancellation
 *      never    the main loop runs until the test says so, and the call is not cancelled
 *      NUMBER   the cancellation comes after so many microseconds, without a question
 *      other    the main loop runs until the test says so
 */
#include <glib-unix.h>
#include <sqlipc-glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define DB "written"

/* What a call needs. */
typedef struct Objects {
        SqlipcConnection *connection;
        SqlipcStatement *statement;
        SqlipcCursor *cursor;
        SqlipcTransaction *transaction;
        SqlipcLoad *load;
        guint n_rows; /* that the program got */
} Objects;

typedef struct Call {
        const char *name;
        void (*start)(Objects *o, const char *sql, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data);
        gboolean (*finish)(Objects *o, GAsyncResult *result, GError **error);
        gboolean (*again)(Objects *o, GError **error); /* asks for the outcome; may be NULL */
        gboolean (*prepare)(Objects *o, const char *sql, GError **error); /* may be NULL */
} Call;

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

static gboolean read_rows(Objects *o, GError **error) {
        for (;;) {
                g_autoptr(SqlipcRow) row = sqlipc_glib_cursor_next(o->cursor, NULL, error);

                if (!row)
                        return !*error;
                o->n_rows++;
        }
}

static void start_execute(Objects *o, const char *sql, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_connection_execute_async(o->connection, DB, sql, NULL, cancellable, callback, data);
}

static gboolean finish_execute(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_connection_execute_finish(o->connection, result, NULL, NULL, error);
}

static void start_query(Objects *o, const char *sql, GCancellable *cancellable,
                        GAsyncReadyCallback callback, gpointer data) {
        sqlipc_glib_connection_query_async(o->connection, DB, sql, NULL, cancellable, callback, data);
}

static gboolean finish_query(Objects *o, GAsyncResult *result, GError **error) {
        o->cursor = sqlipc_glib_connection_query_finish(o->connection, result, error);
        return o->cursor && read_rows(o, error);
}

static gboolean prepare_statement(Objects *o, const char *sql, GError **error) {
        o->statement = sqlipc_glib_connection_prepare(o->connection, DB, sql, NULL, error);
        return o->statement != NULL;
}

static void start_statement(Objects *o, const char *sql, GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer data) {
        (void) sql;
        sqlipc_glib_statement_query_async(o->statement, cancellable, callback, data);
}

static gboolean finish_statement(Objects *o, GAsyncResult *result, GError **error) {
        o->cursor = sqlipc_glib_statement_query_finish(o->statement, result, error);
        return o->cursor && read_rows(o, error);
}

/* The first row is taken. */
static gboolean prepare_cursor(Objects *o, const char *sql, GError **error) {
        g_autoptr(SqlipcRow) row = NULL;

        o->cursor = sqlipc_glib_connection_query(o->connection, DB, sql, NULL, NULL, error);
        row = o->cursor ? sqlipc_glib_cursor_next(o->cursor, NULL, error) : NULL;
        o->n_rows = 1;
        return row != NULL;
}

static void start_next(Objects *o, const char *sql, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
        (void) sql;
        sqlipc_glib_cursor_next_async(o->cursor, cancellable, callback, data);
}

static gboolean finish_next(Objects *o, GAsyncResult *result, GError **error) {
        g_autoptr(SqlipcRow) row = sqlipc_glib_cursor_next_finish(o->cursor, result, error);

        if (row)
                o->n_rows++;
        return !*error && read_rows(o, error);
}

static void start_next_rows(Objects *o, const char *sql, GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer data) {
        (void) sql;
        sqlipc_glib_cursor_next_rows_async(o->cursor, 10, cancellable, callback, data);
}

static gboolean finish_next_rows(Objects *o, GAsyncResult *result, GError **error) {
        g_autoptr(SqlipcRows) rows = sqlipc_glib_cursor_next_rows_finish(o->cursor, result, error);

        if (rows)
                o->n_rows += sqlipc_glib_rows_get_n_rows(rows);
        return !*error && read_rows(o, error);
}

/* ---- Transaction and Load ----------------------------------------------------------------------------------------- */

static gboolean prepare_commit(Objects *o, const char *sql, GError **error) {
        o->transaction = sqlipc_glib_connection_begin(o->connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, NULL, error);
        return o->transaction &&
               sqlipc_glib_connection_execute(o->connection, DB, sql, NULL, NULL, NULL, NULL, error);
}

static void start_commit(Objects *o, const char *sql, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer data) {
        (void) sql;
        sqlipc_glib_transaction_commit_async(o->transaction, cancellable, callback, data);
}

static gboolean finish_commit(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_transaction_commit_finish(o->transaction, result, error);
}

static gboolean again_commit(Objects *o, GError **error) {
        return sqlipc_glib_transaction_commit(o->transaction, NULL, error);
}

static gboolean prepare_load(Objects *o, const char *sql, GError **error) {
        o->load = sqlipc_glib_connection_load(o->connection, DB, sql, error);
        return o->load && sqlipc_glib_load_add_rows(o->load, g_variant_new_parsed("[('x',)]"), NULL, error);
}

static void start_complete(Objects *o, const char *sql, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer data) {
        (void) sql;
        sqlipc_glib_load_complete_async(o->load, cancellable, callback, data);
}

static gboolean finish_complete(Objects *o, GAsyncResult *result, GError **error) {
        return sqlipc_glib_load_complete_finish(o->load, result, NULL, error);
}

static gboolean again_complete(Objects *o, GError **error) {
        return sqlipc_glib_load_complete(o->load, NULL, NULL, error);
}

static gboolean prepare_inside(Objects *o, const char *sql, GError **error) {
        (void) sql;
        o->transaction = sqlipc_glib_connection_begin(o->connection, DB, SQLIPC_GLIB_TRANSACTION_MODE_WRITE, NULL, error);
        return o->transaction != NULL;
}

static const Call calls[] = {
        { "execute", start_execute, finish_execute, NULL, NULL },
        { "query", start_query, finish_query, NULL, NULL },
        { "statement", start_statement, finish_statement, NULL, prepare_statement },
        { "next", start_next, finish_next, NULL, prepare_cursor },
        { "next_rows", start_next_rows, finish_next_rows, NULL, prepare_cursor },
        { "inside", start_query, finish_query, NULL, prepare_inside }, /* a transaction */
        { "commit", start_commit, finish_commit, again_commit, prepare_commit },
        { "complete", start_complete, finish_complete, again_complete, prepare_load },
};

/* ---- The conversation --------------------------------------------------------------------------------------------- */

static gboolean on_input(gint fd, GIOCondition condition, gpointer data) {
        (void) fd;
        (void) condition;
        *(gboolean *) data = TRUE;
        return G_SOURCE_REMOVE;
}

static char *read_line(void) {
        char line[2000];

        return fgets(line, sizeof line, stdin) ? g_strstrip(g_strdup(line)) : NULL;
}

/* Waits for the next line of the test. `loop`: the main loop runs meanwhile. */
static void say(bool loop, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void say(bool loop, const char *format, ...) {
        gboolean here = !loop;
        va_list arguments;

        va_start(arguments, format);
        (void) vprintf(format, arguments);
        va_end(arguments);
        (void) fputc('\n', stdout);
        (void) fflush(stdout);
        if (loop)
                (void) g_unix_fd_add(0, G_IO_IN | G_IO_HUP, on_input, &here);
        while (!here)
                (void) g_main_context_iteration(NULL, TRUE);
        g_free(read_line());
}

static void say_result(const Objects *o, gboolean done, const GError *error) {
        if (done)
                say(true, "done %u", o->n_rows);
        else if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
                say(true, "cancelled");
        else if (g_error_matches(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN) &&
                 g_str_equal(sqlipc_glib_error_get_name(error), "org.sqlipc1.Error.OutcomeUnknown"))
                say(true, "unknown");
        else
                say(true, "%s %d: %s", g_quark_to_string(error->domain), error->code, error->message);
}

static void on_result(GObject *source, GAsyncResult *result, gpointer data) {
        (void) source;
        *(GAsyncResult **) data = g_object_ref(result);
}

static void wait_until(const char *moment) {
        gint64 until = g_get_monotonic_time() + atoi(moment);

        if (g_ascii_isdigit(*moment))
                while (g_get_monotonic_time() < until)
                        (void) g_main_context_iteration(NULL, FALSE);
        else
                say(!g_str_equal(moment, "late"), "waiting");
}

static void cancel_call(const char *address, const Call *call, const char *moment, const char *sql) {
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        g_autoptr(GAsyncResult) result = NULL;
        g_autoptr(GError) error = NULL;
        Objects o = { .connection = sqlipc_glib_connection_new_for_address(address, &error) };
        gboolean done;

        g_assert_no_error(error);
        if (g_str_equal(moment, "late")) { /* a call is not sent before the answer to the connection's Hello is read */
                g_autoptr(GVariant) list = sqlipc_glib_connection_list_databases(o.connection, NULL, &error);

                g_assert_nonnull(list);
        }
        if (call->prepare)
                (void) call->prepare(&o, sql, &error);
        g_assert_no_error(error);
        say(true, "ready");
        if (g_str_equal(moment, "before"))
                g_cancellable_cancel(cancellable);
        call->start(&o, sql, cancellable, on_result, &result);
        wait_until(moment);
        if (!g_str_equal(moment, "never"))
                g_cancellable_cancel(cancellable);
        while (!result)
                (void) g_main_context_iteration(NULL, TRUE);
        done = call->finish(&o, result, &error);
        say_result(&o, done, error);
        if (call->again && g_error_matches(error, SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN)) {
                g_clear_error(&error);
                done = call->again(&o, &error);
                say_result(&o, done, error);
        }
        g_clear_object(&o.cursor);
        g_clear_object(&o.statement);
        g_clear_object(&o.transaction);
        g_clear_object(&o.load);
        g_clear_object(&o.connection);
}

int main(int argc, char **argv) {
        char *line;

        if (argc != 2)
                return 2;
        while ((line = read_line())) {
                g_auto(GStrv) words = g_strsplit(line, " ", 3);

                for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
                        if (g_str_equal(words[0], calls[i].name))
                                cancel_call(argv[1], &calls[i], words[1], words[2]);
                g_free(line);
        }
        return 0;
}
