/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tools/cli/render: modes for programs against sqlite3's own shell, byte by byte; modes for people against what is
 * written here; and what all of them promise: bounded memory, NULL apart from empty, errors of the stream.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <locale.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../daemon/worker/sanitized.h"
#include "render.h"

#define TEXT(s) ((Value) { .type = SQLIPC_TEXT, .bytes = (s), .size = sizeof(s) - 1 })
#define BLOB(s) ((Value) { .type = SQLIPC_BLOB, .bytes = (s), .size = sizeof(s) - 1 })
#define INTEGER(i) ((Value) { .type = SQLIPC_INTEGER, .integer = (i) })
#define REAL(d) ((Value) { .type = SQLIPC_REAL, .real = (d) })
#define NONE ((Value) { .type = SQLIPC_NULL })

/* Renders n_rows rows, one behind the other in `values`. */
static char *render(RenderMode mode, RenderOptions options, const char *const *names, size_t n_columns, const Value *values,
                    size_t n_rows, bool complete) {
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

#define CHECK(mode, expected, names, values)                                                                          \
        do {                                                                                                          \
                g_autofree char *output_ = render(mode, (RenderOptions) {}, names, G_N_ELEMENTS(names), values,       \
                                                  G_N_ELEMENTS(values) / G_N_ELEMENTS(names), true);                  \
                g_assert_cmpstr(output_, ==, expected);                                                               \
        } while (0)

/* ---- Against sqlite3's shell -------------------------------------------------------------------------------------- */

static void make_database(const char *path) {
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db,
                "CREATE TABLE t(a, \"b b\", \"c\"\"q\");"
                "INSERT INTO t VALUES (1, 1.5, 'x'), (NULL, '', x''),"
                " (9223372036854775807, -9223372036854775807 - 1, 'a,b'),"
                " (0.1, 1e15, 'q\"uo\"te'), (1e300, 9e999, 'line' || char(10) || 'two'), (-9e999, -0.0, ' lead'),"
                " (4.9e-324, 1.7976931348623157e308, ''''), (char(9), char(13, 10), '\u00e9\u65e5'),"
                " (x'616263', 'back\\slash', char(127)),"
                " (x'6122', char(1, 31), 'NULL'), (100000.0, 123456789012345678.0, 0.30000000000000004);"
                "CREATE TABLE bytes(v);"
                " INSERT INTO bytes VALUES (CAST(x'ff61' AS TEXT)), (x'ff00ff'), ('a' || char(0) || 'b'), (x'00');"
                "CREATE TABLE doubles(v); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)"
                " INSERT INTO doubles SELECT (abs(random()) % 1000000007) * 1e-7 / i FROM n;",
                NULL, NULL, NULL), ==, SQLITE_OK);
        sqlite3_close(db);
}

static Value value_of(sqlite3_stmt *statement, int column) {
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

static GBytes *render_query(RenderMode mode, const char *null, const char *path, const char *sql) {
        __attribute__((cleanup(renderer_freep))) Renderer *renderer = NULL;
        RenderOptions options = { .null = null };
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

static GBytes *run_shell(const char *const *arguments) {
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

static void compare(RenderMode mode, const char *flag, const char *null, const char *path, const char *sql) {
        const char *arguments[] = { "sqlite3", flag, "-header", "-nullvalue", null, path, sql, NULL };
        g_autoptr(GBytes) ours = render_query(mode, NULL, path, sql), theirs = run_shell(arguments);

        g_assert_cmpmem(g_bytes_get_data(ours, NULL), g_bytes_get_size(ours), g_bytes_get_data(theirs, NULL),
                        g_bytes_get_size(theirs));
}

static void test_sqlite3(void) {
        g_autofree char *directory = g_dir_make_tmp("sqlipc-XXXXXX", NULL), *path = NULL;
        g_autofree char *shell = g_find_program_in_path("sqlite3");

        if (!shell) {
                g_test_skip("the sqlite3 shell is not installed");
                return;
        }
        path = g_build_filename(directory, "t.sqlite", NULL);
        make_database(path);
        compare(RENDER_CSV, "-csv", "", path, "SELECT * FROM t");
        compare(RENDER_CSV, "-csv", "", path, "SELECT * FROM bytes");
        compare(RENDER_CSV, "-csv", "", path, "SELECT * FROM doubles");
        compare(RENDER_CSV, "-csv", "", path, "SELECT 1 AS \"\", NULL AS n");
        compare(RENDER_CSV, "-csv", "", path, "SELECT 1 WHERE 0");
        compare(RENDER_TSV, "-tabs", "\\N", path, "SELECT * FROM t");
        compare(RENDER_TSV, "-tabs", "\\N", path, "SELECT * FROM bytes");
        compare(RENDER_TSV, "-tabs", "\\N", path, "SELECT 1 WHERE 0");
        compare(RENDER_JSON, "-json", "", path,
                "SELECT * FROM t WHERE typeof(a) <> 'blob' AND typeof(\"c\"\"q\") <> 'blob'");
        compare(RENDER_JSON, "-json", "", path, "SELECT * FROM doubles");
        compare(RENDER_LINE, "-line", "NULL", path,
                "SELECT a, \"b b\" AS a_longer_name FROM t WHERE typeof(a) IN ('integer', 'real', 'null')");
        g_unlink(path);
        g_rmdir(directory);
}

/* ---- Where we differ on purpose ----------------------------------------------------------------------------------- */

static void test_json(void) {
        static const char *const names[] = { "v" };

        CHECK(RENDER_JSON, "[]\n", names, ((Value[]) {}));
        CHECK(RENDER_JSONL, "", names, ((Value[]) {}));
        CHECK(RENDER_JSON, "[{\"v\":1}]\n", names, ((Value[]) { INTEGER(1) }));
        CHECK(RENDER_JSON, "[{\"v\":1},\n{\"v\":null}]\n", names, ((Value[]) { INTEGER(1), NONE }));
        CHECK(RENDER_JSONL, "{\"v\":\"\"}\n{\"v\":null}\n", names, ((Value[]) { TEXT(""), NONE }));
        CHECK(RENDER_JSONL, "{\"v\":\"a\\u0000b\"}\n", names, ((Value[]) { TEXT("a\0b") }));
        CHECK(RENDER_JSONL, "{\"v\":\"a\357\277\275b\357\277\275\"}\n", names, ((Value[]) { TEXT("a\377b\303") }));
        CHECK(RENDER_JSONL, "{\"v\":{\"base64\":\"\"}}\n", names, ((Value[]) { BLOB("") }));
        CHECK(RENDER_JSONL, "{\"v\":{\"base64\":\"AP8=\"}}\n", names, ((Value[]) { BLOB("\0\377") }));

        g_autofree char *broken = render(RENDER_JSON, (RenderOptions) {}, names, 1, (Value[]) { INTEGER(1) }, 1, false);
        g_assert_cmpstr(broken, ==, "[{\"v\":1}\n"); /* not complete, so not valid */
}

/* ---- For people --------------------------------------------------------------------------------------------------- */

static void test_line(void) {
        static const char *const names[] = { "id", "a\033name" };

        CHECK(RENDER_LINE, "       id = 1\na\\x1bname = NULL\n\n       id = \na\\x1bname = two\\nlines\n", names,
              ((Value[]) { INTEGER(1), NONE, TEXT(""), TEXT("two\nlines") }));
}

static void test_table(void) {
        static const char *const names[] = { "id", "name", "blob" };

        CHECK(RENDER_TABLE, "id  name  blob\n", names, ((Value[]) {}));
        CHECK(RENDER_TABLE,
              "id  name         blob\n"
              " 1  \346\227\245\346\234\254\\x1b[2J  x'00'\n"
              "12               NULL\n",
              names, ((Value[]) { INTEGER(1), TEXT("\346\227\245\346\234\254\033[2J"), BLOB("\0"),
                           INTEGER(12), TEXT(""), NONE }));
}

static void test_table_narrow(void) {
        static const char *const names[] = { "id", "a very long name of a column" };
        g_autofree char *output = render(RENDER_TABLE, (RenderOptions) { .terminal_width = 20 }, names, 2,
                                         (Value[]) { INTEGER(1), TEXT("abcdefghijklmnopqrstuvwxyz") }, 1, true);

        g_assert_cmpstr(output, ==,
                        "id  a very long nam\342\200\246\n"
                        " 1  abcdefghijklmnop\n"
                        "    qrstuvwxyz\n");
}

/* Rows behind the first chunk keep its widths: a wider value is folded into its column. */
static void test_table_chunks(void) {
        static const char *const names[] = { "n", "text" };
        size_t n_rows = RENDER_TABLE_ROWS + 2;
        g_autofree Value *values = g_new(Value, 2 * n_rows);
        g_autofree char *output = NULL;
        g_auto(GStrv) lines = NULL;

        for (size_t i = 0; i < n_rows; i++) {
                values[2 * i] = INTEGER((int64_t) i);
                values[2 * i + 1] = TEXT("abcdef");
        }
        values[2 * n_rows - 3] = TEXT("0123456789");
        output = render(RENDER_TABLE, (RenderOptions) {}, names, 2, values, n_rows, true);
        lines = g_strsplit(output, "\n", -1);

        g_assert_cmpuint(g_strv_length(lines), ==, 1 + n_rows + 1 + 1); /* names, rows, one line more, the end */
        g_assert_cmpstr(lines[0], ==, "  n  text");
        g_assert_cmpstr(lines[1], ==, "  0  abcdef");
        g_assert_cmpstr(lines[201], ==, "200  012345");
        g_assert_cmpstr(g_strchomp(lines[202]), ==, "     6789");
        g_assert_cmpstr(lines[203], ==, "201  abcdef");
}

static void test_null_apart_from_empty(void) {
        static const char *const names[] = { "v" };

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                g_autofree char *null = render(mode, (RenderOptions) {}, names, 1, (Value[]) { NONE }, 1, true);
                g_autofree char *empty = render(mode, (RenderOptions) {}, names, 1, (Value[]) { TEXT("") }, 1, true);
                g_autofree char *blob = render(mode, (RenderOptions) {}, names, 1, (Value[]) { BLOB("") }, 1, true);

                g_assert_cmpstr(null, !=, empty);
                g_assert_cmpstr(null, !=, blob);
        }
}

static void test_null_option(void) {
        static const char *const names[] = { "v" };
        static const char *const expected[] = {
                [RENDER_TABLE] = "v\n-\n",
                [RENDER_CSV] = "v\n-\n",
                [RENDER_JSON] = "[{\"v\":null}]\n",
                [RENDER_JSONL] = "{\"v\":null}\n",
                [RENDER_LINE] = "    v = -\n",
                [RENDER_TSV] = "v\n-\n",
        };

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                RenderOptions options = { .null = "-" };
                g_autofree char *output = render(mode, options, names, 1, (Value[]) { NONE }, 1, true);

                g_assert_cmpstr(output, ==, expected[mode]);
        }
}

/* ---- Promises ----------------------------------------------------------------------------------------------------- */

static void test_names(void) {
        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++)
                g_assert_cmpint(render_mode_from_string(render_mode_to_string(mode)), ==, mode);
        g_assert_cmpint(render_mode_from_string("CSV"), ==, _RENDER_MODE_INVALID);
        g_assert_null(render_mode_to_string(_RENDER_MODE_MAX));
}

static void test_output_full(void) {
        static const char *const names[] = { "v" };

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                __attribute__((cleanup(renderer_freep))) Renderer *renderer = NULL;
                RenderOptions options = { .output = fopen("/dev/full", "we") };
                int r = 0;

                g_assert_nonnull(options.output);
                g_assert_cmpint(renderer_new(mode, &options, names, 1, &renderer), ==, 0);
                for (int i = 0; r >= 0 && i < 100000; i++)
                        r = renderer_row(renderer, (Value[]) { TEXT("a row that fills the stream's buffer") });
                g_assert_cmpint(r, ==, -ENOSPC);
                g_assert_cmpint(renderer_row(renderer, (Value[]) { NONE }), ==, -ENOSPC);
                g_assert_cmpint(renderer_finish(renderer, true), ==, -ENOSPC);
                fclose(options.output);
        }
}

static size_t resident_kib(void) {
        g_autofree char *status = NULL;
        const char *line;

        g_assert_true(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
        line = strstr(status, "RssAnon:");
        g_assert_nonnull(line);
        return (size_t) g_ascii_strtoull(line + strlen("RssAnon:") + strspn(line + strlen("RssAnon:"), " \t"), NULL, 10);
}

/* 40,000 rows of a KiB each: holding them would take 40 MiB. */
static void test_constant_memory(void) {
        static const char *const names[] = { "v" };
        g_autofree char *text = g_strnfill(1024, 'x');

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                __attribute__((cleanup(renderer_freep))) Renderer *renderer = NULL;
                RenderOptions options = { .output = fopen("/dev/null", "we") };
                Value value = { .type = SQLIPC_TEXT, .bytes = text, .size = 1024 };
                size_t before = 0;

                g_assert_cmpint(renderer_new(mode, &options, names, 1, &renderer), ==, 0);
                for (int i = 0; i < 40000; i++) {
                        if (i == 1000)
                                before = resident_kib();
                        g_assert_cmpint(renderer_row(renderer, &value), ==, 0);
                }
                g_assert_cmpuint(resident_kib(), <, before + 12 * 1024);
                g_assert_cmpint(renderer_finish(renderer, true), ==, 0);
                fclose(options.output);
        }
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/render/sqlite3", test_sqlite3);
        g_test_add_func("/render/json", test_json);
        g_test_add_func("/render/line", test_line);
        g_test_add_func("/render/table", test_table);
        g_test_add_func("/render/table-narrow", test_table_narrow);
        g_test_add_func("/render/table-chunks", test_table_chunks);
        g_test_add_func("/render/null-apart-from-empty", test_null_apart_from_empty);
        g_test_add_func("/render/null-option", test_null_option);
        g_test_add_func("/render/names", test_names);
        g_test_add_func("/render/output-full", test_output_full);
        if (!SANITIZED) /* the address sanitizer keeps what is freed */
                g_test_add_func("/render/constant-memory", test_constant_memory);
        return g_test_run();
}
