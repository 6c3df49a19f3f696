/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tools/cli/render: what modes for people look like, where those for programs differ from sqlite3's (what is the same
 * stands in test-cli-render-sqlite.c), and what all of them promise: bounded memory, harmless bytes, errors of the stream.
 */
#include <glib.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "../../daemon/worker/sanitized.h"
#include "render-rig.h"

/* ---- For programs ------------------------------------------------------------------------------------------------- */

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

static void test_json_harmless(void) {
        static const char *const names[] = { "v\177" };

        CHECK(RENDER_JSONL, "{\"v\\u007f\":\"\\u001b[2J\\u009b\\u202e\\udb40\\udc01\\u2028\"}\n", names,
              ((Value[]) { TEXT("\033[2J\302\233\342\200\256\363\240\200\201\342\200\250") }));
}

/* What sqlite3 cuts, or writes so that it cannot be read back. */
static void test_whole(void) {
        static const char *const names[] = { "v", "w" };
        const Value values[] = { TEXT("a\0b"), BLOB("\0\377"), REAL(0.1 + 0.2), REAL(1 / 0.0), REAL(-1 / 0.0), REAL(-0.0) };

        CHECK(RENDER_CSV, "v,w\n\"CAST(x'610062' AS TEXT)\",\"x'00ff'\"\n0.30000000000000004,1e999\n-1e999,-0.0\n", names,
              values);
        CHECK(RENDER_TSV, "v\tw\nCAST(x'610062' AS TEXT)\tx'00ff'\n0.30000000000000004\t1e999\n-1e999\t-0.0\n", names,
              values);
        CHECK(RENDER_LIST, "v|w\nCAST(x'610062' AS TEXT)|x'00ff'\n0.30000000000000004|1e999\n-1e999|-0.0\n", names,
              values);
        CHECK(RENDER_QUOTE, "CAST(x'610062' AS TEXT),X'00ff'\n0.3000000000000000444,1e999\n-1e999,-0.0\n", names, values);
        CHECK(RENDER_HTML,
              "<TR><TH>v</TH>\n<TH>w</TH>\n</TR>\n<TR><TD>CAST(x'610062' AS TEXT)</TD>\n<TD>x'00ff'</TD>\n</TR>\n",
              names, ((Value[]) { TEXT("a\0b"), BLOB("\0\377") }));
        CHECK(RENDER_INSERT, "INSERT INTO \"table\" VALUES(CAST(x'ff' AS TEXT),replace('a\\r','\\r',char(13)));\n", names,
              ((Value[]) { TEXT("\377"), TEXT("a\r") }));
        CHECK(RENDER_QUOTE, "replace('a\\r\n','\\r',char(13)),3.0*5e-324\n", names,
              ((Value[]) { TEXT("a\r\n"), REAL(1.5e-323) }));
}

static void test_tsv(void) {
        static const char *const names[] = { "a", "b" };

        CHECK(RENDER_TSV,
              "a\tb\n\t\"\"\n\"x\ty\"\t\"\"\"q\"\n\"two\nlines\"\ta \"b\"\n\"\r\"\t\"\357\273\277\"\n", names,
              ((Value[]) { NONE, TEXT(""), TEXT("x\ty"), TEXT("\"q"), TEXT("two\nlines"), TEXT("a \"b\""), TEXT("\r"),
                           TEXT("\357\273\277") }));
}

/* On a terminal, or before a pager, no mode lets anything through; elsewhere those for programs let everything. */
static void test_terminal(void) {
        static const char *const names[] = { "n\033[1m" };
        const Value values[] = { TEXT("\033[2J\302\2331m\r\b\342\200\256\007") };

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                RenderOptions options = { .terminal = true, .separator = "\033", .table_name = "\033", .null = "\033" };
                g_autofree char *output = render(mode, options, names, 1, values, 1, true);

                g_assert_true(g_utf8_validate(output, -1, NULL));
                for (const char *p = output; *p; p = g_utf8_next_char(p)) {
                        g_assert_true(*p == '\n' || g_unichar_type(g_utf8_get_char(p)) != G_UNICODE_CONTROL);
                        g_assert_cmpuint(g_utf8_get_char(p), !=, 0x202e);
                }
        }
        CHECK(RENDER_LIST, "n\033[1m\n\033[2J\302\2331m\r\b\342\200\256\007\n", names, values);
}

/* A character that comes in two flushes of a sink is one. */
static void test_terminal_pieces(void) {
        static const char *const names[] = { "v" };
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *output = NULL, *expected = NULL;
        RenderOptions options = { .terminal = true, .headers = RENDER_HEADERS_OFF };
        Value value;

        for (int i = 0; i < 100000; i++)
                g_string_append(text, "\346\227\245"); /* three bytes: some flush is amidst one */
        value = (Value) { .type = SQLIPC_TEXT, .bytes = text->str, .size = text->len };
        output = render(RENDER_LIST, options, names, 1, &value, 1, true);
        expected = g_strconcat(text->str, "\n", NULL);
        g_assert_true(g_str_equal(output, expected));
        CHECK_WITH(RENDER_LIST, options, "\\xe6\\x97\n", names, ((Value[]) { TEXT("\346\227") }));
}

/* ---- For people --------------------------------------------------------------------------------------------------- */

static void test_line(void) {
        static const char *const names[] = { "id", "a\033name" };

        CHECK(RENDER_LINE,
              "       id = 1\na\\x1bname = NULL\n\n       id = \na\\x1bname = two\n            lines\\x1b[2J\n\n"
              "       id = x'00'\na\\x1bname = Inf\n",
              names, ((Value[]) { INTEGER(1), NONE, TEXT(""), TEXT("two\nlines\033[2J"), BLOB("\0"), REAL(1 / 0.0) }));
}

static void test_vertical(void) {
        static const char *const names[] = { "id", "title" };

        CHECK(RENDER_VERTICAL,
              "-[ RECORD 1 ]--\nid    | 1\ntitle | two\n      | lines\n"
              "-[ RECORD 2 ]--\nid    | NULL\ntitle |\n",
              names, ((Value[]) { INTEGER(1), TEXT("two\nlines"), NONE, TEXT("") }));
}

static void test_grids(void) {
        static const char *const names[] = { "id", "name", "blob" };
        const Value values[] = { INTEGER(1), TEXT("日本\033[2J"), BLOB("\0"), INTEGER(12), TEXT(""), NONE };

        CHECK(RENDER_TABLE,
              "+----+------+------+\n"
              "| id | name | blob |\n"
              "+----+------+------+\n"
              "+----+------+------+\n",
              names, ((Value[]) {}));
        CHECK(RENDER_BOX,
              "┌────┬─────────────┬───────┐\n"
              "│ id │    name     │ blob  │\n"
              "├────┼─────────────┼───────┤\n"
              "│ 1  │ 日本\\x1b[2J │ x'00' │\n"
              "│ 12 │             │ NULL  │\n"
              "└────┴─────────────┴───────┘\n",
              names, values);
        CHECK(RENDER_COLUMN,
              "id  name         blob \n"
              "--  -----------  -----\n"
              "1   日本\\x1b[2J  x'00'\n"
              "12               NULL \n",
              names, values);
        CHECK(RENDER_MARKDOWN,
              "| id |   name    | blob |\n"
              "|----|-----------|------|\n"
              "| 1  | a\\|b<br>c | NULL |\n",
              names, ((Value[]) { INTEGER(1), TEXT("a|b\nc"), NONE }));
}

static void test_colors(void) {
        static const char *const names[] = { "n", "t" };

        CHECK_WITH(RENDER_COLUMN, (RenderOptions) { .colors = true },
                   "\033[1mn\033[0m     \033[1mt\033[0m  \n"
                   "----  ---\n"
                   "\033[36m1\033[0m     txt\n"
                   "\033[2mNULL\033[0m  \033[35mx''\033[0m\n",
                   names, ((Value[]) { INTEGER(1), TEXT("txt"), NONE, BLOB("") }));
}

static void test_fit(void) {
        static const char *const names[] = { "id", "a very long name of a column" };
        const Value values[] = { INTEGER(1), TEXT("abcdefghijklmnopqrstuvwxyz\nshort") };
        const RenderOptions wide = { .terminal_width = 24, .vertical_when_wide = true };

        CHECK_WITH(RENDER_BOX, (RenderOptions) { .terminal_width = 24 },
                   "┌────┬─────────────────┐\n"
                   "│ id │ a very long na… │\n"
                   "├────┼─────────────────┤\n"
                   "│ 1  │ abcdefghijklmn… │\n"
                   "│    │ short           │\n"
                   "└────┴─────────────────┘\n",
                   names, values);
        CHECK_WITH(RENDER_BOX, wide,
                   "-[ RECORD 1 ]-----------------\n"
                   "id                           | 1\n"
                   "a very long name of a column | abcdefghijklmnopqrstuvwxyz\n"
                   "                             | short\n",
                   names, values);
        CHECK_WITH(RENDER_COLUMN, wide, "id  a very long name of…\n--  --------------------\n", names, ((Value[]) {}));
}

/* Rows behind those that decided keep the widths, but for numbers, which are not cut; a flush decides earlier. */
static void test_sample(void) {
        static const char *const names[] = { "n", "text" };
        const Value row[] = { INTEGER(1), TEXT("abc") }, wider[] = { INTEGER(12), TEXT("0123456789\nx") };
        const RenderMode mode = RENDER_TABLE;

        for (size_t n_rows = 1; n_rows <= RENDER_TABLE_ROWS; n_rows += RENDER_TABLE_ROWS - 1) {
                __attribute__((cleanup(renderer_freep))) Renderer *renderer = NULL;
                char *output = NULL;
                size_t size;
                RenderOptions options = { .output = open_memstream(&output, &size) };

                g_assert_cmpint(renderer_new(mode, &options, names, 2, &renderer), ==, 0);
                g_assert_cmpint(renderer_flush(renderer), ==, 0);
                for (size_t i = 0; i < n_rows; i++)
                        g_assert_cmpint(renderer_row(renderer, row), ==, 0);
                g_assert_cmpint(renderer_flush(renderer), ==, 0);
                g_assert_nonnull(strstr(output, "| 1 | abc  |\n")); /* although more may come */
                g_assert_cmpint(renderer_row(renderer, wider), ==, 0);
                g_assert_cmpint(renderer_finish(renderer, true), ==, 0);
                g_assert_true(g_str_has_suffix(output, "| 1 | abc  |\n| 12 | 012… |\n|   | x    |\n+---+------+\n"));
                fclose(options.output);
                free(output);
        }
}

static void test_long_values(void) {
        static const char *const names[] = { "v" };
        g_autofree char *text = g_strnfill(RENDER_TABLE_VALUE_MAX + 1, 'x');
        g_autofree char *line = g_strdup_printf("    v = %s\n", text);
        g_autofree char *vertical = g_strdup_printf("-[ RECORD 1 ]--\nv | %.2000s… (2001 bytes)\n", text);
        g_autofree char *column = g_strdup_printf("%.2000s… (2001 bytes)\n", text);
        const Value values[] = { { .type = SQLIPC_TEXT, .bytes = text, .size = strlen(text) } };

        CHECK(RENDER_LINE, line, names, values);
        CHECK(RENDER_VERTICAL, vertical, names, values);
        CHECK_WITH(RENDER_COLUMN, (RenderOptions) { .headers = RENDER_HEADERS_OFF }, column, names, values);
}

/* Columns of a line, by the C library's count, where each character has one that all terminals share. */
static size_t columns_of(const char *line, size_t size) {
        size_t columns = 0;

        for (const char *p = line; p < line + size; p = g_utf8_next_char(p)) {
                gunichar c = g_utf8_get_char(p);

                g_assert_cmpint(wcwidth((wchar_t) c), >=, 0);
                g_assert_cmpuint(c, !=, 0xfe0f);
                g_assert_true(c < 0x1f3fb || c > 0x1f3ff);
                columns += (size_t) wcwidth((wchar_t) c);
        }
        return columns;
}

static void test_borders(void) {
        static const char *const names[] = { "日本", "b" };
        static const int widths[] = { 1, 2, 5 };
        const Value values[] = {
                TEXT("e\314\201"), TEXT("日本語"),
                TEXT("\360\237\221\250\342\200\215\360\237\221\251\342\200\215\360\237\221\247"),
                TEXT("\342\235\244\357\270\217"),
                TEXT("\360\237\221\215\360\237\217\275"), TEXT("\360\237\207\251\360\237\207\252"),
                TEXT("\340\244\225\340\245\215\342\200\215\340\244\267"), TEXT("\314\201"),
                TEXT("\xff\xfe"), TEXT("\315\270"),
                TEXT("a\tb"), TEXT("\t日"), BLOB("\033"), NONE, TEXT("\342\200\213\302\255"), TEXT("\355\237\277"),
        };

        for (size_t i = 0; i <= G_N_ELEMENTS(widths); i++) {
                RenderOptions options = { .terminal_width = i == 0 ? 20 : 0, .widths = i > 0 ? widths + i - 1 : NULL,
                                          .n_widths = i > 0 };
                g_autofree char *output = render(RENDER_BOX, options, names, 2, values, G_N_ELEMENTS(values) / 2, true);
                size_t columns = columns_of(output, strcspn(output, "\n"));

                for (const char *line = output; *line; line += strcspn(line, "\n") + 1)
                        g_assert_cmpuint(columns_of(line, strcspn(line, "\n")), ==, columns);
        }
}

/* More columns than any terminal has. */
static void test_many_columns(void) {
        enum { N = 10000 };
        g_autofree const char **names = g_new(const char *, N);
        g_autofree Value *values = g_new(Value, N);

        for (size_t i = 0; i < N; i++) {
                names[i] = "a name of some length";
                values[i] = INTEGER((int64_t) i);
        }
        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                g_autofree char *output = render(mode, (RenderOptions) { .terminal_width = 80 }, names, N, values, 1, true);

                g_assert_nonnull(strstr(output, "9999"));
        }
}

static void test_null_apart_from_empty(void) {
        static const char *const names[] = { "v" };

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                g_autofree char *null = render(mode, (RenderOptions) {}, names, 1, (Value[]) { NONE }, 1, true);
                g_autofree char *empty = render(mode, (RenderOptions) {}, names, 1, (Value[]) { TEXT("") }, 1, true);
                g_autofree char *blob = render(mode, (RenderOptions) {}, names, 1, (Value[]) { BLOB("") }, 1, true);

                g_assert_cmpstr(null, !=, blob);
                if (mode != RENDER_LIST && mode != RENDER_HTML) /* sqlite3's, which scripts expect */
                        g_assert_cmpstr(null, !=, empty);
        }
}

static void test_null_option(void) {
        static const char *const names[] = { "v" };
        static const char *const expected[] = {
                [RENDER_TABLE] = "+---+\n| v |\n+---+\n| - |\n+---+\n",
                [RENDER_BOX] = "┌───┐\n│ v │\n├───┤\n│ - │\n└───┘\n",
                [RENDER_MARKDOWN] = "| v |\n|---|\n| - |\n",
                [RENDER_COLUMN] = "v\n-\n-\n",
                [RENDER_CSV] = "v\n-\n",
                [RENDER_TSV] = "v\n-\n",
                [RENDER_JSON] = "[{\"v\":null}]\n",
                [RENDER_JSONL] = "{\"v\":null}\n",
                [RENDER_LINE] = "    v = -\n",
                [RENDER_LIST] = "v\n-\n",
                [RENDER_HTML] = "<TR><TH>v</TH>\n</TR>\n<TR><TD>-</TD>\n</TR>\n",
                [RENDER_INSERT] = "INSERT INTO \"table\" VALUES(NULL);\n",
                [RENDER_QUOTE] = "NULL\n",
                [RENDER_VERTICAL] = "-[ RECORD 1 ]--\nv | -\n",
        };

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                RenderOptions options = { .null = "-" };
                g_autofree char *output = render(mode, options, names, 1, (Value[]) { NONE }, 1, true);

                g_assert_cmpstr(output, ==, expected[mode]);
        }
}

/* ---- Promises ----------------------------------------------------------------------------------------------------- */

static void test_names(void) {
        g_assert_cmpint(render_mode_from_string("tabs"), ==, RENDER_TSV);
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

/* 10,000 rows of a KiB each, and then a value of 16 MiB: holding them would take as much. */
static void test_constant_memory(void) {
        static const char *const names[] = { "v" };
        g_autofree char *text = g_strnfill(16 << 20, '"');

        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++) {
                __attribute__((cleanup(renderer_freep))) Renderer *renderer = NULL;
                RenderOptions options = { .output = fopen("/dev/null", "we"), .terminal = mode % 2 };
                Value value = { .type = SQLIPC_TEXT, .bytes = text, .size = 1024 };
                size_t before = resident_kib();

                g_assert_cmpint(renderer_new(mode, &options, names, 1, &renderer), ==, 0);
                for (int i = 0; i < 10000; i++)
                        g_assert_cmpint(renderer_row(renderer, &value), ==, 0);
                value.size = 16 << 20;
                g_assert_cmpint(renderer_row(renderer, &value), ==, 0);
                value.type = SQLIPC_BLOB;
                g_assert_cmpint(renderer_row(renderer, &value), ==, 0);
                g_assert_cmpint(renderer_finish(renderer, true), ==, 0);
                g_assert_cmpuint(resident_kib(), <, before + 2 * 1024);
                fclose(options.output);
        }
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/render/json", test_json);
        g_test_add_func("/render/json-harmless", test_json_harmless);
        g_test_add_func("/render/whole", test_whole);
        g_test_add_func("/render/tsv", test_tsv);
        g_test_add_func("/render/terminal", test_terminal);
        g_test_add_func("/render/terminal-pieces", test_terminal_pieces);
        g_test_add_func("/render/line", test_line);
        g_test_add_func("/render/vertical", test_vertical);
        g_test_add_func("/render/grids", test_grids);
        g_test_add_func("/render/colors", test_colors);
        g_test_add_func("/render/fit", test_fit);
        g_test_add_func("/render/sample", test_sample);
        g_test_add_func("/render/long-values", test_long_values);
        g_test_add_func("/render/borders", test_borders);
        g_test_add_func("/render/many-columns", test_many_columns);
        g_test_add_func("/render/null-apart-from-empty", test_null_apart_from_empty);
        g_test_add_func("/render/null-option", test_null_option);
        g_test_add_func("/render/names", test_names);
        g_test_add_func("/render/output-full", test_output_full);
        if (!SANITIZED) /* the address sanitizer keeps what is freed */
                g_test_add_func("/render/constant-memory", test_constant_memory);
        return g_test_run();
}
