/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tools/cli/render/render compared with sqlite3's own shell: both write the same bytes in each mode that sqlite3 has, for
 * all values that sqlite3 does not lose. For the other values, sqlite3 reads what the modes for programs write as the same
 * value.
 */
#include <glib/gstdio.h>
#include <locale.h>
#include <string.h>

#include "tests/rigs/render-rig.h"

static char *directory, *path;

static void make_database(void) {
        sqlite3 *db;

        directory = g_dir_make_tmp("sqlipc-XXXXXX", NULL);
        path = g_build_filename(directory, "t.sqlite", NULL);
        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db,
                "CREATE TABLE t(a, \"b b\", \"c\"\"q\");"
                "INSERT INTO t VALUES (1, 1.5, 'x'), (NULL, '-', 'y'),"
                " (9223372036854775807, -9223372036854775807 - 1, 'a,b'),"
                " (0.1, 1e15, 'q\"uo\"te'), (1e300, 0.0, 'it''s'), (-1e-7, 123456789012345678, ' lead'),"
                " (100000.0, 1e14, ''''), ('é', 'back\\slash', '<a>&|;'), ('NULL', 12.34, 'a long line of text');"
                "CREATE TABLE empty(v); INSERT INTO empty VALUES (''), ('x'), (NULL);"
                "CREATE TABLE lines(id, v); INSERT INTO lines VALUES (1, 'one' || char(10) || 'two'), (2, 'three'),"
                " (3, 'a' || char(13, 10) || 'b' || char(10)), (4, char(10)), (5, 'x' || char(10, 10) || 'y');"
                "CREATE TABLE tabbed(v);"
                "INSERT INTO tabbed VALUES ('a' || char(9) || 'b'), (char(9)), ('12345678' || char(9));"
                "CREATE TABLE odd(v);"
                "INSERT INTO odd VALUES (NULL), (0), (-1), (9223372036854775807), (-9223372036854775807 - 1),"
                " (9e999), (-9e999), (-0.0), (0.1), (1.0 / 3), (1e300), (4.9e-324), (2.5e-310), (1.7976931348623157e308),"
                " (''), ('it''s'), ('\\n' || char(10)), ('\\n\\012' || char(10)), ('\\r' || char(13) || '\\015'),"
                " ('(\\n0)\\n\\012' || char(10, 13, 10)), (char(13)), ('line' || char(13, 10)), (char(10)), (x''),"
                " (x'00ff27'),"
                " ('a' || char(0) || 'b'), (char(0)), (CAST(x'ff61' AS TEXT)), (CAST(x'c3' AS TEXT)), ('é日本'),"
                " (char(27) || '[2J'),"
                " (';'), ('--'), ('/*'), (char(65279) || 'bom');"
                "CREATE TABLE doubles(v); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)"
                " INSERT INTO doubles SELECT (abs(random()) % 1000000007) * 1e-7 / i FROM n;",
                NULL, NULL, NULL), ==, SQLITE_OK);
        sqlite3_close(db);
}

/* ---- The same bytes ----------------------------------------------------------------------------------------------- */

/* One blank for several, and none at the ends of lines. */
static GBytes *squeeze(GBytes *bytes) {
        const char *text = g_bytes_get_data(bytes, NULL), *end = text + g_bytes_get_size(bytes);
        GByteArray *squeezed = g_byte_array_new();

        for (const char *p = text; p < end; p++) {
                bool first = p > text && p[-1] != '\n' && p[-1] != ' ', last = p + 1 == end || p[1] == '\n';

                while (last && *p == ' ' && squeezed->len > 0 && squeezed->data[squeezed->len - 1] == ' ')
                        g_byte_array_set_size(squeezed, squeezed->len - 1);
                if (*p != ' ' || (first && !last))
                        g_byte_array_append(squeezed, (const uint8_t *) p, 1);
        }
        return g_byte_array_free_to_bytes(squeezed);
}

/* Grids differ in the side of numbers on which the blanks are. */
static void compare_with(RenderMode mode, RenderOptions options, const char *const *arguments, const char *sql) {
        g_autoptr(GBytes) ours = render_query(mode, options, path, sql), theirs = run_program(arguments);

        g_assert_cmpuint(g_bytes_get_size(ours), ==, g_bytes_get_size(theirs));
        if (render_mode_is_grid(mode)) {
                g_autoptr(GBytes) a = squeeze(ours), b = squeeze(theirs);

                g_assert_true(g_bytes_equal(a, b));
        } else
                g_assert_true(g_bytes_equal(ours, theirs));
}

static void compare(RenderMode mode, const char *flag, const char *sql) {
        const char *arguments[] = { "sqlite3", flag, "-header", "-nullvalue", "-", path, sql, NULL };

        compare_with(mode, (RenderOptions) { .null = "-", .headers = RENDER_HEADERS_ON }, arguments, sql);
}

static void test_same(void) {
        static const struct {
                RenderMode mode;
                const char *flag;
        } modes[] = {
                { RENDER_TABLE, "-table" }, { RENDER_BOX, "-box" }, { RENDER_MARKDOWN, "-markdown" },
                { RENDER_COLUMN, "-column" }, { RENDER_CSV, "-csv" }, { RENDER_TSV, "-tabs" }, { RENDER_JSON, "-json" },
                { RENDER_LINE, "-line" }, { RENDER_LIST, "-list" }, { RENDER_HTML, "-html" }, { RENDER_QUOTE, "-quote" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                bool grid = modes[i].mode <= RENDER_COLUMN;

                compare(modes[i].mode, modes[i].flag, modes[i].mode == RENDER_MARKDOWN
                                ? "SELECT * FROM t WHERE \"c\"\"q\" NOT LIKE '%|%'" : "SELECT * FROM t");
                compare(modes[i].mode, modes[i].flag, "SELECT 1 AS \"the only one\"");
                if (modes[i].mode != RENDER_TSV) /* which quotes '' */
                        compare(modes[i].mode, modes[i].flag, "SELECT * FROM empty");
                if (!grid && modes[i].mode != RENDER_JSON)
                        compare(modes[i].mode, modes[i].flag, "SELECT 1 WHERE 0");
                if (modes[i].mode != RENDER_MARKDOWN && modes[i].mode != RENDER_TSV && modes[i].mode != RENDER_LINE)
                        compare(modes[i].mode, modes[i].flag, "SELECT * FROM lines WHERE id IN (1, 2, 4, 5)");
                if (modes[i].mode != RENDER_TSV)
                        compare(modes[i].mode, modes[i].flag, "SELECT * FROM tabbed");
        }
        compare(RENDER_BOX, "-box", "SELECT * FROM lines");
        compare(RENDER_CSV, "-csv", "SELECT * FROM lines");
        compare(RENDER_LIST, "-list", "SELECT * FROM lines");
        compare(RENDER_JSON, "-json", "SELECT * FROM doubles");
        compare(RENDER_QUOTE, "-quote", "SELECT * FROM doubles");
        compare(RENDER_TABLE, "-table", "SELECT * FROM doubles");
        compare(RENDER_CSV, "-csv", "SELECT 1 AS \"\", NULL AS n");
}

static void test_same_options(void) {
        static const int widths[] = { 4, -7, 0, 3 };
        const char *const sql = "SELECT a, \"b b\", \"c\"\"q\", 'four' AS the_name FROM t";
        const char *const box[] = { "sqlite3", path, ".nullvalue -", ".mode box", ".width 4 -7 0 3", sql, NULL };
        const char *const column[] = { "sqlite3", path, ".nullvalue -", ".mode column", ".width 4 -7 0 3", sql, NULL };
        const char *const plain[] = { "sqlite3", path, ".nullvalue -", ".mode column", ".headers off", sql, NULL };
        const char *const list[] = { "sqlite3", "-separator", "::", path, sql, NULL };
        const char *const insert[] = { "sqlite3", path, ".headers on", ".mode insert order", sql, NULL };
        const char *const insert_plain[] = { "sqlite3", path, ".mode insert plain_name", "SELECT * FROM lines", NULL };
        const char *const insert_default[] = { "sqlite3", path, ".mode insert", "SELECT * FROM doubles", NULL };
        RenderOptions options = { .null = "-", .widths = widths, .n_widths = G_N_ELEMENTS(widths) };

        compare_with(RENDER_BOX, options, box, sql);
        compare_with(RENDER_COLUMN, options, column, sql);
        compare_with(RENDER_COLUMN, (RenderOptions) { .null = "-", .headers = RENDER_HEADERS_OFF }, plain, sql);
        compare_with(RENDER_LIST, (RenderOptions) { .separator = "::", .headers = RENDER_HEADERS_OFF }, list, sql);
        compare_with(RENDER_INSERT, (RenderOptions) { .table_name = "order", .headers = RENDER_HEADERS_ON }, insert, sql);
        compare_with(RENDER_INSERT, (RenderOptions) { .table_name = "plain_name" }, insert_plain, "SELECT * FROM lines");
        compare_with(RENDER_INSERT, (RenderOptions) {}, insert_default, "SELECT * FROM doubles");
}

/* qbox writes literals, regardless of the text for NULL, and continues a long line below. */
static void test_same_qbox(void) {
        static const char *const queries[] = {
                "SELECT * FROM t", "SELECT 1 AS \"the only one\"", "SELECT * FROM lines", "SELECT * FROM tabbed",
                "SELECT * FROM empty", "SELECT * FROM doubles", "SELECT x'00ff27' AS b, x'' AS none, NULL AS n",
                "SELECT hex(zeroblob(100)) AS a, '''' || hex(zeroblob(28)) || '''' AS b, hex(zeroblob(29)) AS c, 1 AS d",
                "SELECT zeroblob(100) AS a, hex(zeroblob(29)) || char(10) || hex(zeroblob(31)) AS b",
                ("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 50)"
                 " SELECT replace(hex(zeroblob(9000)), '000', '''') AS quotes, i FROM n WHERE i % 25 = 0"),
        };
        static const int widths[] = { 4, -7 };
        const char *const narrow[] = { "sqlite3", path, ".mode qbox", ".width 4 -7", "SELECT * FROM t", NULL };

        for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
                const char *const arguments[] = { "sqlite3", path, ".nullvalue -", ".mode qbox", queries[i], NULL };

                compare_with(RENDER_QBOX, (RenderOptions) { .null = "-" }, arguments, queries[i]);
        }
        compare_with(RENDER_QBOX, (RenderOptions) { .widths = widths, .n_widths = G_N_ELEMENTS(widths) }, narrow,
                     "SELECT * FROM t");
}

/* ascii and tcl write what sqlite3 writes, whatever the value is. Only at a NUL sqlite3 stops. */
static void test_same_raw(void) {
        static const char *const modes[] = { [RENDER_ASCII] = ".mode ascii", [RENDER_TCL] = ".mode tcl" };
        static const char *const queries[] = {
                "SELECT * FROM t", "SELECT * FROM lines", "SELECT * FROM tabbed", "SELECT * FROM doubles",
                "SELECT 1 WHERE 0",
                "SELECT v, 1 AS \"a \"\"b\"\"\" FROM odd WHERE NOT instr(CAST(v AS BLOB), x'00')",
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 255)"
                " SELECT CAST(char(i) || 'x' AS BLOB), char(i), bytes.b FROM n,"
                " (SELECT x'8090a0b0c0d0e0f0ff7f' AS b) AS bytes",
        };

        for (RenderMode mode = RENDER_ASCII; mode <= RENDER_TCL; mode++)
                for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
                        const char *const plain[] = { "sqlite3", path, modes[mode], queries[i], NULL };
                        const char *const named[] = {
                                "sqlite3", path, modes[mode], ".headers on", ".nullvalue -", queries[i], NULL,
                        };

                        compare_with(mode, (RenderOptions) {}, plain, queries[i]);
                        compare_with(mode, (RenderOptions) { .null = "-", .headers = RENDER_HEADERS_ON }, named, queries[i]);
                }
}

/* ---- The same values ---------------------------------------------------------------------------------------------- */

/* Has the shell read a script into a new database beside the first, and tells what it then finds in both. */
static void check_script(const char *script, size_t size, const char *comparison) {
        g_autofree char *copy = g_build_filename(directory, "copy.sqlite", NULL);
        g_autofree char *file = g_build_filename(directory, "script.sql", NULL);
        g_autofree char *read = g_strdup_printf(".read '%s'", file), *attach = g_strdup_printf("ATTACH '%s' AS o", path);
        const char *arguments[] = { "sqlite3", "-bail", copy, read, attach, comparison, NULL };
        g_autoptr(GBytes) answer = NULL;

        g_assert_true(g_file_set_contents(file, script, (gssize) size, NULL));
        answer = run_program(arguments);
        g_assert_cmpmem(g_bytes_get_data(answer, NULL), g_bytes_get_size(answer), "", 0);
        g_unlink(copy);
        g_unlink(file);
}

/* Values that are not in both tables, bit by bit. */
#define DIFFERENT                                                                                                     \
        "SELECT min(quote(v)) FROM (SELECT v FROM odd UNION ALL SELECT v FROM o.odd) GROUP BY typeof(v), "            \
        "CASE typeof(v) WHEN 'real' THEN ieee754_to_blob(v) ELSE CAST(v AS BLOB) END HAVING count(*) <> 2"

static void test_insert_reads_back(void) {
        RenderOptions options = { .table_name = "odd" };
        g_autoptr(GBytes) rows = render_query(RENDER_INSERT, options, path, "SELECT * FROM odd");
        g_autoptr(GString) script = g_string_new("CREATE TABLE odd(v);\n");

        g_string_append_len(script, g_bytes_get_data(rows, NULL), (gssize) g_bytes_get_size(rows));
        check_script(script->str, script->len, DIFFERENT);
        check_script("CREATE TABLE odd(v);\n", 21, "SELECT 1 WHERE (SELECT count(*) FROM o.odd) < 30");
}

/* Each row of quote is what INSERT takes. */
static void test_quote_reads_back(void) {
        RenderOptions options = { .headers = RENDER_HEADERS_OFF };
        g_autoptr(GString) script = g_string_new("CREATE TABLE odd(v);\n");
        sqlite3_stmt *statement;
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_prepare_v2(db, "SELECT rowid FROM odd", -1, &statement, NULL), ==, SQLITE_OK);
        while (sqlite3_step(statement) == SQLITE_ROW) {
                int id = sqlite3_column_int(statement, 0);
                g_autofree char *sql = g_strdup_printf("SELECT v FROM odd WHERE rowid = %d", id);
                g_autoptr(GBytes) row = render_query(RENDER_QUOTE, options, path, sql);

                g_string_append(script, "INSERT INTO odd VALUES (");
                g_string_append_len(script, g_bytes_get_data(row, NULL), (gssize) g_bytes_get_size(row));
                g_string_append(script, ");\n");
        }
        sqlite3_finalize(statement);
        sqlite3_close(db);
        check_script(script->str, script->len, DIFFERENT);
}

/* Text without NUL and numbers come back through .import with the types of the columns; what .import has no form for comes
 * back as its literal. */
static void check_import(RenderMode mode, const char *how) {
        g_autofree char *file = g_build_filename(directory, "rows", NULL);
        g_autofree char *copy = g_build_filename(directory, "copy.sqlite", NULL);
        g_autofree char *import = g_strdup_printf(".import %s --skip 1 '%s' typed", how, file);
        g_autofree char *attach = g_strdup_printf("ATTACH '%s' AS o", path);
        const char *const rows = "SELECT rowid AS id, CASE typeof(v) WHEN 'integer' THEN v END AS i, "
                "CASE WHEN typeof(v) = 'real' AND (v = 0 OR abs(v) > 1e-280) THEN v END AS r, "
                "CASE typeof(v) WHEN 'text' THEN v END AS t, CASE typeof(v) WHEN 'blob' THEN v END AS b FROM odd";
        const char *arguments[] = {
                "sqlite3", copy, "CREATE TABLE typed(id INTEGER, i INTEGER, r REAL, t TEXT, b TEXT)",
                mode == RENDER_TSV ? ".mode tabs" : ".mode csv", import, attach,
                "SELECT id, quote(v), i, r, quote(t), b FROM typed JOIN o.odd ON id = odd.rowid WHERE CASE typeof(v)"
                " WHEN 'integer' THEN i <> v WHEN 'real' THEN r <> v AND abs(v) > 1e-280"
                " WHEN 'text' THEN CASE WHEN instr(CAST(v AS BLOB), x'00')"
                "  THEN t <> 'CAST(x''' || lower(hex(v)) || ''' AS TEXT)' ELSE t IS NOT v END"
                " WHEN 'blob' THEN b <> 'x''' || lower(hex(v)) || '''' ELSE i || r || t || b <> '' END",
                "SELECT 'rows' WHERE (SELECT count(*) FROM typed) <> (SELECT count(*) FROM o.odd)", NULL,
        };
        g_autoptr(GBytes) ours = render_query(mode, (RenderOptions) {}, path, rows), answer = NULL;

        g_assert_true(g_file_set_contents(file, g_bytes_get_data(ours, NULL), (gssize) g_bytes_get_size(ours), NULL));
        answer = run_program(arguments);
        g_assert_cmpmem(g_bytes_get_data(answer, NULL), g_bytes_get_size(answer), "", 0);
        g_unlink(copy);
        g_unlink(file);
}

static void test_import(void) {
        check_import(RENDER_CSV, "--csv");
        check_import(RENDER_TSV, "");
}

int main(int argc, char **argv) {
        g_autofree char *shell = g_find_program_in_path("sqlite3");
        int r;

        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        if (!shell) {
                g_print("1..0 # SKIP the sqlite3 shell is not installed\n");
                return 0;
        }
        make_database();
        g_test_add_func("/render-sqlite/same", test_same);
        g_test_add_func("/render-sqlite/same-options", test_same_options);
        g_test_add_func("/render-sqlite/same-qbox", test_same_qbox);
        g_test_add_func("/render-sqlite/same-raw", test_same_raw);
        g_test_add_func("/render-sqlite/insert-reads-back", test_insert_reads_back);
        g_test_add_func("/render-sqlite/quote-reads-back", test_quote_reads_back);
        g_test_add_func("/render-sqlite/import", test_import);
        r = g_test_run();
        g_unlink(path);
        g_rmdir(directory);
        g_free(path);
        g_free(directory);
        return r;
}
