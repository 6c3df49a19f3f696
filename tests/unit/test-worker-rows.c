/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker's rows: every value as SQLite has it, and limits on rows. When they are sent: test-worker-pages.c. */
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "tests/rigs/worker-rig.h"

static void test_values(void) {
        Rig rig;
        PageDecoder d;
        uint64_t number;
        int fd;

        rig_init(&rig, wide);
        fd = send_run(&rig, "SELECT i, r, s, b, n FROM t ORDER BY i", &number);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_COLUMNS);
        g_assert_cmpuint(d.n_columns, ==, 5);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        g_assert_cmpint((int64_t) load_le64(page_decoder_value(&d, 0).bytes), ==, INT64_MIN);
        g_assert_true(load_le64(page_decoder_value(&d, 1).bytes) == 0 ||
                      load_le64(page_decoder_value(&d, 1).bytes) == UINT64_C(1) << 63);
        g_assert_cmpint(page_decoder_value(&d, 2).type, ==, VALUE_TEXT);
        g_assert_cmpuint(page_decoder_value(&d, 2).size, ==, 0);
        g_assert_cmpint(page_decoder_value(&d, 3).type, ==, VALUE_BLOB);
        g_assert_cmpint(page_decoder_value(&d, 4).type, ==, VALUE_NULL);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        g_assert_cmpint((int64_t) load_le64(page_decoder_value(&d, 0).bytes), ==, INT64_MAX);
        g_assert_cmpfloat(load_le_double(page_decoder_value(&d, 1).bytes), ==, 1e308);
        g_assert_cmpmem(page_decoder_value(&d, 3).bytes, page_decoder_value(&d, 3).size, "\x00\xff", 2);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_END);
        page_decoder_done(&d);
        close(fd);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        rig_done(&rig);
}

/* An error in the middle: rows first, then the ERROR frame. */
static void test_error_after_rows(void) {
        Rig rig;
        Outcome o;

        rig_init(&rig, wide);
        o = run(&rig, "SELECT abs(i) FROM t ORDER BY i DESC");
        g_assert_true(o.in_stream);
        g_assert_cmpint(o.error, ==, ERROR_SQL);
        g_assert_cmpuint(o.n_rows, ==, 1);
        g_assert_cmpstr(o.message, ==, "integer overflow");
        rig_done(&rig);
}

static void test_rows_of_any_size(void) {
        static const size_t sizes[] = { 1, 4000, 4096, 4097, 65536, 1 << 20, 5 << 20 };
        static const uint32_t page_sizes[] = { 4096, 65536, 1 << 20 };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++)
                for (size_t k = 0; k < G_N_ELEMENTS(page_sizes); k++) {
                        g_autofree char *sql = g_strdup_printf(
                                "SELECT 1, zeroblob(%zu), 'x', hex(zeroblob(%zu)) UNION ALL SELECT 2, 3, 4, 5", sizes[i],
                                sizes[i]);
                        Outcome o;

                        rig.page_size = page_sizes[k];
                        o = run(&rig, sql);
                        g_assert_cmpint(o.error, ==, ERROR_NONE);
                        g_assert_cmpuint(o.n_rows, ==, 2);
                }
        rig_done(&rig);
}

static void test_row_limit(void) {
        Rig rig;

        rig_init(&rig, wide);
        for (size_t limit = 1000; limit <= 1000000; limit *= 1000) {
                /* one blob and its five bytes of type and end */
                g_autofree char *at = g_strdup_printf("SELECT zeroblob(%zu)", limit - 5);
                g_autofree char *over = g_strdup_printf("SELECT zeroblob(%zu)", limit - 4);

                rig.row_size_max = limit;
                g_assert_cmpuint(run(&rig, at).n_rows, ==, 1);
                g_assert_cmpint(run(&rig, over).error, ==, ERROR_ROW_TOO_LARGE);
        }
        rig_done(&rig);
}

static void test_result_limit(void) {
        Rig rig;

        rig_init(&rig, wide);
        rig.result_size_max = 1000000;
        g_assert_cmpint(run(&rig, MANY).error, ==, ERROR_LIMITS_EXCEEDED);
        rig_done(&rig);
}

#define ROWS                                                                                                          \
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT x, hex(zeroblob(%d)) FROM c"

/* As many rows as are allowed, and END; one more, and the same rows, then the error: in one page, in many, in rows larger
 * than one. */
static void test_rows_limit(void) {
        static const struct {
                unsigned max, size;
        } cases[] = { { 1, 1 }, { 3, 1 }, { 100000, 1 }, { 3, 100000 } };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                for (unsigned more = 0; more <= 1; more++) {
                        g_autofree char *sql = g_strdup_printf(ROWS, cases[i].max + more, cases[i].size);
                        rig.result_rows_max = cases[i].max;
                        Outcome o = run(&rig, sql);

                        g_assert_cmpuint(o.n_rows, ==, cases[i].max);
                        g_assert_cmpint(o.error, ==, more ? ERROR_LIMITS_EXCEEDED : ERROR_NONE);
                        g_assert_true(!more || strstr(o.message, "ResultRowsMax="));
                }
        rig_done(&rig);
}

/* RowSizeMax= bounds the rows that go out, not what is stored, nor the schema that another program made. */
static void test_row_limit_leaves_values_alone(void) {
        g_autofree char *schema =
                g_strdup_printf("CREATE TABLE u(b /* %0*d */); INSERT INTO u VALUES(zeroblob(100000))", 5000, 0);
        Rig rig;
        Outcome o;

        rig_init(&rig, wide);
        rig.row_size_max = 1000;
        g_assert_cmpuint(run(&rig, "SELECT i FROM t").n_rows, ==, 2);
        exec_sql(rig.database, schema);
        o = run(&rig, "SELECT length(b), substr(b, 5, 10) FROM u");
        g_test_message("%s", o.message);
        g_assert_cmpint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 1);
        o = run(&rig, "SELECT b FROM u");
        g_assert_cmpint(o.error, ==, ERROR_ROW_TOO_LARGE);
        g_assert_nonnull(strstr(o.message, " 100005 bytes"));
        rig.row_size_max = 64 << 20;
        o = run(&rig, "SELECT zeroblob(length(b) * 9000) FROM u"); /* not made to be refused: there is no memory for it */
        g_assert_cmpint(o.error, ==, ERROR_ROW_TOO_LARGE);
        g_assert_cmpint(run(&rig, "SELECT zeroblob(2000000000)").error, ==, ERROR_ROW_TOO_LARGE);
        rig_done(&rig);
}

/* ---- the same as in process ---- */

static void append_value(GString *digest, int type, const void *bytes, size_t size) {
        g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_MD5, size > 0 ? bytes : (const void *) "", size);

        g_string_append_printf(digest, "%d %zu %s\n", type, size, sum);
}

/* Types and bytes of all values, as SQLite gives them here. */
static char *digest_in_process(const char *path, const char *sql) {
        GString *digest = g_string_new(NULL);
        sqlite3_stmt *stmt;
        sqlite3 *db;
        int rc;

        g_assert_cmpint(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), ==, SQLITE_OK);
        /* before it knows the schema a connection takes every database for UTF-8 */
        g_assert_cmpint(sqlite3_exec(db, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), ==, SQLITE_OK);
        while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
                for (int i = 0; i < sqlite3_column_count(stmt); i++) {
                        int type = sqlite3_column_type(stmt, i);
                        int64_t integer = sqlite3_column_int64(stmt, i);
                        double real = sqlite3_column_double(stmt, i);

                        if (type == SQLITE_INTEGER)
                                append_value(digest, type, &integer, sizeof integer);
                        else if (type == SQLITE_FLOAT)
                                append_value(digest, type, &real, sizeof real);
                        else if (type == SQLITE_NULL)
                                append_value(digest, type, NULL, 0);
                        else {
                                const void *bytes = type == SQLITE_TEXT ? sqlite3_column_text(stmt, i)
                                                                        : sqlite3_column_blob(stmt, i);

                                append_value(digest, type, bytes, (size_t) sqlite3_column_bytes(stmt, i));
                        }
                }
        g_assert_cmpint(rc, ==, SQLITE_DONE);
        sqlite3_finalize(stmt);
        sqlite3_close(db);
        return g_string_free(digest, FALSE);
}

/* The same through the worker; the pipe is small and read in small pieces, so that the run parks everywhere. */
static char *digest_of_run(Rig *rig, const char *sql, size_t piece) {
        GString *digest = g_string_new(NULL);
        PageDecoder d;
        uint64_t number;
        int fd = send_run(rig, sql, &number), r;

        (void) fcntl(fd, F_SETPIPE_SZ, 4096);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        while ((r = page_decoder_next(&d)) == PAGE_MORE || r == PAGE_COLUMNS || r == PAGE_ROW)
                if (r == PAGE_MORE) {
                        uint8_t *room;
                        size_t size;
                        ssize_t n;

                        g_assert_cmpint(page_decoder_reserve(&d, &room, &size), ==, 0);
                        wait_for(fd);
                        n = read(fd, room, size < piece ? size : piece);
                        g_assert_cmpint(n, >, 0);
                        page_decoder_commit(&d, (size_t) n);
                } else if (r == PAGE_ROW)
                        for (unsigned i = 0; i < d.n_columns; i++) {
                                PageValue v = page_decoder_value(&d, i);

                                append_value(digest, v.type, v.bytes, v.size);
                        }
        g_assert_cmpint(r, ==, PAGE_END);
        page_decoder_done(&d);
        close(fd);
        expect_number(rig, number, MESSAGE_TAKEN);
        expect_started(rig, number);
        expect_ended(rig, number, ERROR_NONE);
        return g_string_free(digest, FALSE);
}

static char *wide_select(unsigned n_columns) {
        GString *sql = g_string_new("SELECT ");

        for (unsigned i = 0; i < n_columns; i++)
                g_string_append_printf(sql, "%s%u AS \"column number %u of many\"", i > 0 ? ", " : "", i, i);
        return g_string_free(sql, FALSE);
}

static void check_same(Rig *rig, const char *sql) {
        static const uint32_t page_sizes[] = { 4096, 65536, 1 << 20 };
        g_autofree char *expected = digest_in_process(rig->database, sql);

        for (size_t i = 0; i < G_N_ELEMENTS(page_sizes); i++) {
                g_autofree char *got = NULL;

                rig->page_size = page_sizes[i];
                got = digest_of_run(rig, sql, i == 0 ? 1021 : 65536);
                g_assert_cmpstr(got, ==, expected);
        }
}

/* Databases in both encodings, tables of all kinds, rows of all sizes: type by type and byte by byte as SQLite gives
 * them. */
static void test_same_as_in_process(void) {
        static const char *const encodings[] = { "UTF-8", "UTF-16le", "UTF-16be" };
        static const char *const queries[] = {
                "SELECT * FROM k",
                "SELECT * FROM w ORDER BY s DESC",
                "SELECT * FROM k RIGHT JOIN w ON k.i = w.i",
                "SELECT * FROM k FULL JOIN w USING(i)",
                "SELECT rowid, * FROM f WHERE f MATCH 'word'",
                "SELECT * FROM r WHERE x0 < 50",
                "SELECT key, value, type FROM json_each('[1, 2.5, null, \"x\", {\"a\": []}]')",
                "SELECT 9e999, -9e999, 9e999 - 9e999, '', x'', NULL, zeroblob(0), 'a' || char(0) || 'b'",
                "SELECT char(0xfffe, 0xd7ff)",
                "SELECT CAST(x'ff00fe41' AS TEXT), replace(hex(zeroblob(3000)), '0', 'ü')",
                "SELECT s, hex(b), zeroblob(i * 1000), b, s || s FROM k",
                "SELECT s, sum(i) OVER (ORDER BY i), group_concat(s) OVER (ROWS 3 PRECEDING) FROM k",
                "PRAGMA table_info(k)",
                "EXPLAIN QUERY PLAN SELECT * FROM k ORDER BY s",
        };
        g_autofree char *many_columns = wide_select(2000);

        for (size_t i = 0; i < G_N_ELEMENTS(encodings); i++) {
                g_autofree char *encoding = g_strdup_printf("PRAGMA encoding = '%s'", encodings[i]);
                g_autofree char *sql = g_strconcat(
                        encoding,
                        "; CREATE TABLE k(i INTEGER PRIMARY KEY, s TEXT, b BLOB);"
                        "CREATE TABLE w(s TEXT PRIMARY KEY, i) WITHOUT ROWID;"
                        "CREATE VIRTUAL TABLE f USING fts5(text); CREATE VIRTUAL TABLE r USING rtree(id, x0, x1);"
                        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300) "
                        "INSERT INTO k "
                        "SELECT x, 'ä' || x, CASE x % 7 WHEN 0 THEN zeroblob(x * 40) WHEN 1 THEN NULL ELSE x / 3.0 END "
                        "FROM c;"
                        "INSERT INTO w SELECT s, i + 150 FROM k; INSERT INTO f SELECT 'word ' || s FROM k;"
                        "INSERT INTO r SELECT i, i, i + 1 FROM k;",
                        NULL);
                Rig rig;

                rig_init_folder(&rig);
                exec_sql(rig.database, sql);
                rig_start(&rig, wide);
                for (size_t k = 0; k < G_N_ELEMENTS(queries); k++)
                        check_same(&rig, queries[k]);
                check_same(&rig, many_columns);
                rig_done(&rig);
        }
}

/* Services of the system that a query may need besides the database, under the filter: time zones, random numbers,
 * temporary files. */
static void test_system_calls(void) {
        static const char *const queries[] = {
                "SELECT date('now', 'localtime'), datetime('now', 'utc'), strftime('%s', 'now')",
                "SELECT random(), randomblob(100)",
                "SELECT * FROM t, (SELECT randomblob(1000) AS x FROM (WITH RECURSIVE c(x) AS "
                "(SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000) SELECT x FROM c) ORDER BY 1) LIMIT 5000",
                "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000) "
                "SELECT count(DISTINCT hex(randomblob(40))) FROM c",
                "WITH m(x) AS MATERIALIZED (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9000) "
                "SELECT randomblob(500) FROM c) SELECT count(*) FROM m a JOIN m b USING(x)",
                "PRAGMA integrity_check",
        };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
                Outcome o = run(&rig, queries[i]);

                g_assert_cmpstr(o.message, ==, "");
                g_assert_cmpuint(o.n_rows, >, 0);
        }
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/worker/values", test_values);
        g_test_add_func("/worker/error-after-rows", test_error_after_rows);
        g_test_add_func("/worker/rows-of-any-size", test_rows_of_any_size);
        g_test_add_func("/worker/row-limit", test_row_limit);
        g_test_add_func("/worker/result-limit", test_result_limit);
        g_test_add_func("/worker/rows-limit", test_rows_limit);
        g_test_add_func("/worker/row-limit-leaves-values-alone", test_row_limit_leaves_values_alone);
        g_test_add_func("/worker/same-as-in-process", test_same_as_in_process);
        g_test_add_func("/worker/system-calls", test_system_calls);
        return g_test_run();
}
