/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A load through libsqlipc, see load.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "tools/bench/core/library.h"
#include "tools/bench/workloads/load.h"

enum { N_VALUES = 1 + DATASET_STUDY_COLUMNS };

typedef struct LibraryLoader {
        const LoadTask *task;
        sqlipc_connection *connection;
} LibraryLoader;

static void library_close(void *userdata) {
        LibraryLoader *loader = userdata;

        sqlipc_close(loader->connection);
        g_free(loader);
}

static int library_connect(const LoadTask *task, void **ret_loader) {
        sqlipc_connection *connection;
        LibraryLoader *loader;
        int r = library_open(task->options, SQLIPC_TRANSPORT_AUTO, &connection);

        if (r < 0)
                return r;
        loader = g_new(LibraryLoader, 1);
        *loader = (LibraryLoader) { .task = task, .connection = connection };
        *ret_loader = loader;
        return 0;
}

static int library_clear(void *userdata) {
        LibraryLoader *loader = userdata;
        int r = 0;

        for (int64_t row = 0; r >= 0 && row < loader->task->rows->n; row += LOAD_DELETE_ROWS) {
                sqlipc_parameter last = {
                        .struct_size = sizeof last, .type = SQLIPC_INTEGER, .integer = row + LOAD_DELETE_ROWS,
                };

                r = sqlipc_exec_with(loader->connection, LOAD_TABLE, LOAD_DELETE, &last, 1, NULL);
        }
        return r < 0 ? library_failed(loader->connection, r, LOAD_DELETE) : 0;
}

static int add_rows(sqlipc_load *load, const LoadRows *rows) {
        sqlipc_parameter values[N_VALUES] = { { .struct_size = sizeof *values, .type = SQLIPC_INTEGER } };
        int r = 0;

        for (int i = 1; i < N_VALUES; i++)
                values[i] = (sqlipc_parameter) {
                        .struct_size = sizeof *values, .type = SQLIPC_TEXT, .size = DATASET_STUDY_LENGTH,
                };
        for (int64_t row = 0; r >= 0 && row < rows->n; row++) {
                values[0].integer = row + 1;
                for (int i = 1; i < N_VALUES; i++)
                        values[i].bytes = load_rows_text(rows, row, i - 1);
                r = sqlipc_load_row(load, values, N_VALUES);
        }
        return r;
}

static int library_load(void *userdata) {
        __attribute__((cleanup(sqlipc_load_closep))) sqlipc_load *load = NULL;
        LibraryLoader *loader = userdata;
        int64_t n_changes = 0;
        int r;

        r = sqlipc_load_open(loader->connection, LOAD_TABLE, LOAD_INSERT, &load);
        if (r >= 0)
                r = add_rows(load, loader->task->rows);
        if (r >= 0)
                r = sqlipc_load_finish(load, &n_changes);
        if (r < 0)
                return library_failed(loader->connection, r, LOAD_INSERT);
        if (n_changes == loader->task->rows->n)
                return 0;
        fprintf(stderr, "sqlipc-bench: %" PRId64 " rows were loaded, and should be %" PRId64 ".\n", n_changes,
                loader->task->rows->n);
        return -EBADMSG;
}

static int library_copy(void *userdata, Copy *copy) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        static const char sql[] = "SELECT * FROM " LOAD_TABLE " ORDER BY id";
        LibraryLoader *loader = userdata;
        int r = sqlipc_query(loader->connection, LOAD_TABLE, sql, &cursor, NULL);

        if (r >= 0)
                r = library_copy_rows(cursor, copy);
        return r < 0 ? library_failed(loader->connection, r, sql) : 0;
}

const LoaderKind load_library = {
        .name = "libsqlipc", .open = library_connect, .clear = library_clear, .load = library_load, .copy = library_copy,
        .close = library_close,
};
