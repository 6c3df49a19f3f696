/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows for the renderers of ipcq-cli, written by hand or read from a database, and the output of sqlite3's shell for the
 * same rows. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_RENDER_RIG_H
#define SQLIPC_TESTS_RIGS_RENDER_RIG_H

#include <glib.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/render/render.h"

#define TEXT(s) ((Value) { .type = SQLIPC_TEXT, .bytes = (s), .size = sizeof(s) - 1 })
#define BLOB(s) ((Value) { .type = SQLIPC_BLOB, .bytes = (s), .size = sizeof(s) - 1 })
#define INTEGER(i) ((Value) { .type = SQLIPC_INTEGER, .integer = (i) })
#define REAL(d) ((Value) { .type = SQLIPC_REAL, .real = (d) })
#define NONE ((Value) { .type = SQLIPC_NULL })

/* Renders n_rows rows, one behind the other in `values`. To be freed. */
static inline char *render(RenderMode mode, RenderOptions options, const char *const *names, size_t n_columns,
                           const Value *values, size_t n_rows, bool complete) {
        __attribute__((cleanup(renderer_freep))) Renderer *renderer = NULL;
        char *output = NULL, *copy;
        size_t size;

        options.output = open_memstream(&output, &size);
        g_assert_cmpint(renderer_new(mode, &options, names, n_columns, &renderer), ==, 0);
        for (size_t i = 0; i < n_rows; i++)
                g_assert_cmpint(renderer_row(renderer, values + i * n_columns), ==, 0);
        g_assert_cmpint(renderer_finish(renderer, complete), ==, 0);
        fclose(options.output);
        copy = g_strdup(output);
        free(output);
        return copy;
}

/* Demands that a complete result looks like this. */
#define CHECK_WITH(mode, options, expected, names, values)                                                            \
        do {                                                                                                          \
                g_autofree char *output_ = render(mode, options, names, G_N_ELEMENTS(names), values,                  \
                                                  G_N_ELEMENTS(values) / G_N_ELEMENTS(names), true);                  \
                g_assert_cmpstr(output_, ==, expected);                                                               \
        } while (0)

#define CHECK(mode, expected, names, values) CHECK_WITH(mode, (RenderOptions) {}, expected, names, values)

static inline Value value_of(sqlite3_stmt *statement, int column) {
        Value value = { .type = (sqlipc_type) sqlite3_column_type(statement, column) };

        if (value.type == SQLIPC_INTEGER)
                value.integer = sqlite3_column_int64(statement, column);
        else if (value.type == SQLIPC_REAL)
                value.real = sqlite3_column_double(statement, column);
        else if (value.type != SQLIPC_NULL) {
                value.bytes = sqlite3_column_blob(statement, column) ?: "";
                value.size = (size_t) sqlite3_column_bytes(statement, column);
        }
        return value;
}

/* Renders what a query on a file gives, of up to 8 columns. */
static inline GBytes *render_query(RenderMode mode, RenderOptions options, const char *path, const char *sql) {
        __attribute__((cleanup(renderer_freep))) Renderer *renderer = NULL;
        const char *names[8];
        char *output = NULL;
        sqlite3_stmt *statement;
        size_t size;
        sqlite3 *db;
        int n;

        options.output = open_memstream(&output, &size);
        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), ==, SQLITE_OK);
        n = sqlite3_column_count(statement);
        g_assert_cmpint(n, <=, 8);
        for (int i = 0; i < n; i++)
                names[i] = sqlite3_column_name(statement, i);
        g_assert_cmpint(renderer_new(mode, &options, names, (size_t) n, &renderer), ==, 0);
        while (sqlite3_step(statement) == SQLITE_ROW) {
                Value values[8];

                for (int i = 0; i < n; i++)
                        values[i] = value_of(statement, i);
                g_assert_cmpint(renderer_row(renderer, values), ==, 0);
        }
        g_assert_cmpint(renderer_finish(renderer, true), ==, 0);
        sqlite3_finalize(statement);
        sqlite3_close(db);
        fclose(options.output);
        return g_bytes_new_with_free_func(output, size, free, output);
}

/* The output of a program, which must succeed. */
static inline GBytes *run_program(const char *const *arguments) {
        g_autoptr(GByteArray) output = g_byte_array_new();
        g_autoptr(GError) error = NULL;
        uint8_t buffer[4096];
        int fd, status;
        ssize_t n;
        GPid pid;

        g_spawn_async_with_pipes(NULL, (char **) arguments, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL,
                                 NULL, &pid, NULL, &fd, NULL, &error);
        g_assert_no_error(error);
        while ((n = read(fd, buffer, sizeof buffer)) > 0)
                g_byte_array_append(output, buffer, (guint) n);
        close(fd);
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
        return g_byte_array_free_to_bytes(g_steal_pointer(&output));
}

#endif
