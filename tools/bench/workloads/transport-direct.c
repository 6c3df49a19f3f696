/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * No transport: SQLite in this process, in three ways: as programs usually use it, in the fastest loop over rows
 * (baseline.h), and without a loop, in an SQL function that SQLite calls with each row. The last one is even faster, because
 * it avoids the calls of sqlite3_step() and sqlite3_column_value(), but a program cannot stop between two rows with it.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/copy-sqlite.h"
#include "tools/bench/workloads/transport.h"

static int open_direct(Transport *transport) {
        return 0;
}

static int fetch_usual(Transport *transport, const char *sql, Copy *copy) {
        return baseline_copy(transport->setup->baseline, sql, BASELINE_USUAL, copy);
}

static int fetch_fastest(Transport *transport, const char *sql, Copy *copy) {
        return baseline_copy(transport->setup->baseline, sql, BASELINE_FASTEST, copy);
}

const TransportKind transport_usual = {
        .name = "direct, usual",
        .how = "in process: sqlite3_column_type(), then _int64(), _double(), _text() or _blob(), _bytes()",
        .open = open_direct,
        .fetch = fetch_usual,
};

const TransportKind transport_fastest = {
        .name = "direct, fastest",
        .how = "in process: sqlite3_column_value() once a value, sqlite3_value_...() on it, without mutexes",
        .open = open_direct,
        .fetch = fetch_fastest,
};

/* ---- In a function ------------------------------------------------------------------------------------------------ */

typedef struct Function {
        sqlite3 *db;
        Copy *copy; /* of the current run */
} Function;

static void take_row(sqlite3_context *context, int n_values, sqlite3_value **values) {
        const Function *function = sqlite3_user_data(context);

        for (int i = 0; i < n_values; i++)
                copy_sqlite_value(function->copy, values[i]);
        function->copy->n_rows++;
}

static void return_null(sqlite3_context *context) {
        sqlite3_result_null(context);
}

static int failed(const Function *function) {
        fprintf(stderr, "sqlipc-bench: %s: %s\n", transport_function.name, sqlite3_errmsg(function->db));
        return -EIO;
}

static int open_function(Transport *transport) {
        const char *file = transport->setup->options->file;
        Function *function = transport->own = g_new0(Function, 1);

        if (sqlite3_open_v2(file, &function->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
            sqlite3_create_function(function->db, "take_row", -1, SQLITE_UTF8, function, NULL, take_row, return_null))
                return failed(function);
        return 0;
}

/* Wraps the query, so that its columns have unique names. */
static char *wrap(const char *sql, unsigned n_columns) {
        g_autoptr(GString) columns = g_string_new("c0");

        for (unsigned i = 1; i < n_columns; i++)
                g_string_append_printf(columns, ", c%u", i);
        return g_strdup_printf("WITH r(%s) AS (%s) SELECT take_row(%s) FROM r", columns->str, sql, columns->str);
}

static int fetch_function(Transport *transport, const char *sql, Copy *copy) {
        g_autofree char *wrapped = wrap(sql, transport->setup->n_columns);
        Function *function = transport->own;

        function->copy = copy;
        return sqlite3_exec(function->db, wrapped, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(function);
}

static void close_function(Transport *transport) {
        Function *function = transport->own;

        (void) sqlite3_close(function->db);
        g_clear_pointer(&transport->own, g_free);
}

const TransportKind transport_function = {
        .name = "direct, in a function",
        .how = "in process: an aggregate SQL function that is called with each row, so that no row returns to a loop",
        .open = open_function,
        .fetch = fetch_function,
        .close = close_function,
};
