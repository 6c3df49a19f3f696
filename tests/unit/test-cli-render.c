/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tools/cli/render/render: the output of modes for people, and the differences of modes for programs from sqlite3's
 * (test-cli-render-sqlite.c checks that they are equal otherwise). All modes have bounded memory, write no bytes that
 * control a terminal, and report errors of the stream.
 */
#include <glib.h>
#include <locale.h>
#include <sqlite3.h>
#include <string.h>

#include "daemon/worker/sandbox/sanitized.h"
#include "tests/rigs/render-rig.h"
#include "tools/terminal/format.h"

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

/* Values that sqlite3 cuts, or writes so that they cannot be read back. */
static void test_whole(void) {
        static const char *const names[] = { "v", "w" };
        const Value values[] = { TEXT("a\0b"), BLOB("\0\377"), REAL(0.1 + 0.2), REAL(1 / 0.0), REAL(-1 / 0.0), REAL(-0.0) };
        char quoted[200];

        CHECK(RENDER_CSV, "v,w\n\"CAST(x'610062' AS TEXT)\",\"x'00ff'\"\n0.30000000000000004,1e999\n-1e999,-0.0\n", names,
              values);
        CHECK(RENDER_TSV, "v\tw\nCAST(x'610062' AS TEXT)\tx'00ff'\n0.30000000000000004\t1e999\n-1e999\t-0.0\n", names,
              values);
        CHECK(RENDER_LIST, "v|w\nCAST(x'610062' AS TEXT)|x'00ff'\n0.30000000000000004|1e999\n-1e999|-0.0\n", names,
              values);
        sqlite3_snprintf(sizeof quoted, quoted, "CAST(x'610062' AS TEXT),X'00ff'\n%!.20g,1e999\n-1e999,-0.0\n", 0.1 + 0.2);
        CHECK(RENDER_QUOTE, quoted, names, values);
        CHECK(RENDER_HTML,
              "<TR><TH>v</TH>\n<TH>w</TH>\n</TR>\n<TR><TD>CAST(x'610062' AS TEXT)</TD>\n<TD>x'00ff'</TD>\n</TR>\n",
              names, ((Value[]) { TEXT("a\0b"), BLOB("\0\377") }));
        CHECK(RENDER_INSERT, "INSERT INTO \"table\" VALUES(CAST(x'ff' AS TEXT),replace('a\\r','\\r',char(13)));\n", names,
              ((Value[]) { TEXT("\377"), TEXT("a\r") }));
        CHECK(RENDER_QUOTE, "replace('a\\r\n','\\r',char(13)),3.0*5e-324\n", names,
              ((Value[]) { TEXT("a\r\n"), REAL(1.5e-323) }));
}

/* sqlite3 stops at a NUL. */
static void test_raw(void) {
        static const char *const names[] = { "v", "w" };
        const Value values[] = { TEXT("a\0b"), BLOB("\0\377"), NONE, TEXT("") };

        CHECK(RENDER_TCL, "\"a\\000b\" \"\\000\\377\"\n\"\" \"\"\n", names, values);
        g_autofree char *output = render(RENDER_ASCII, (RenderOptions) { .terminal = true }, names, 2, values, 2, true);
        g_assert_cmpstr(output, ==, "a\\x00b\\x1f\\x00\\xff\\x1e\\x1f\\x1e");
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
              "│  1 │ 日本\\x1b[2J │ x'00' │\n"
              "│ 12 │             │ NULL  │\n"
              "└────┴─────────────┴───────┘\n",
              names, values);
        CHECK(RENDER_COLUMN,
              "id  name         blob \n"
              "--  -----------  -----\n"
              " 1  日本\\x1b[2J  x'00'\n"
              "12               NULL \n",
              names, values);
        CHECK(RENDER_MARKDOWN,
              "| id |   name    | blob |\n"
              "|----|-----------|------|\n"
              "|  1 | a\\|b<br>c | NULL |\n",
              names, ((Value[]) { INTEGER(1), TEXT("a|b\nc"), NONE }));
}

static void test_colors(void) {
        static const char *const names[] = { "n", "t" };

        CHECK_WITH(RENDER_COLUMN, (RenderOptions) { .colors = true },
                   "   \033[1mn\033[0m  \033[1mt\033[0m  \n"
                   "----  ---\n"
                   "   \033[36m1\033[0m  txt\n"
                   "\033[2mNULL\033[0m  \033[35mx''\033[0m\n",
                   names, ((Value[]) { INTEGER(1), TEXT("txt"), NONE, BLOB("") }));
}

/* Numbers are flushed right, and NULL in a column that has only numbers; so is its name if names are not centred. */
static void test_alignment(void) {
        static const char *const names[] = { "n", "mixed", "given" };
        static const int widths[] = { 0, 0, 6 };
        const Value values[] = {
                INTEGER(100), TEXT("text"), REAL(1.5), NONE, INTEGER(-7), TEXT("x"), REAL(-2.5), NONE, NONE,
        };

        CHECK_WITH(RENDER_COLUMN, ((RenderOptions) { .widths = widths, .n_widths = 3 }),
                   "   n  mixed  given \n"
                   "----  -----  ------\n"
                   " 100  text      1.5\n"
                   "NULL     -7  x     \n"
                   "-2.5  NULL   NULL  \n",
                   names, values);
        CHECK(RENDER_TABLE,
              "+------+-------+-------+\n"
              "|  n   | mixed | given |\n"
              "+------+-------+-------+\n"
              "|  100 | text  |   1.5 |\n"
              "| NULL |    -7 | x     |\n"
              "| -2.5 | NULL  | NULL  |\n"
              "+------+-------+-------+\n",
              names, values);
}

static void test_fit(void) {
        static const char *const names[] = { "id", "a very long name of a column" };
        static const char *const box = "┌────┬─────────────────┐\n"
                                       "│ id │ a very long na… │\n"
                                       "├────┼─────────────────┤\n"
                                       "│  1 │ abcdefghijklmn… │\n"
                                       "│    │ short           │\n"
                                       "└────┴─────────────────┘\n";
        const Value values[] = { INTEGER(1), TEXT("abcdefghijklmnopqrstuvwxyz\nshort") };
        RenderOptions wide = { .terminal = true, .terminal_width = 24 };

        CHECK_WITH(RENDER_BOX, wide, box, names, values);
        wide.vertical_when_wide = true;
        CHECK_WITH(RENDER_BOX, wide, box, names, values);
        CHECK_WITH(RENDER_COLUMN, wide, "id  a very long name of…\n--  --------------------\n", names, ((Value[]) {}));
}

/* The size of a value that was cut is told as long as there is room. */
static void test_fit_of_size(void) {
        static const char *const names[] = { "v" };
        g_autofree char *text = g_strnfill(3000, 'x');
        const Value values[] = { { .type = SQLIPC_TEXT, .bytes = text, .size = 3000 } };

        RenderOptions options = { .terminal = true, .terminal_width = 20, .headers = RENDER_HEADERS_OFF };

        CHECK_WITH(RENDER_COLUMN, options, "xxxxxx… (3000 bytes)\n", names, values);
        options.terminal_width--;
        CHECK_WITH(RENDER_COLUMN, options, "xxxxxxxxxxxxxxxxxx…\n", names, values);
}

/* Columns that have shrunk until they could not be read any more: a line for each value. The limit is exact. */
static void test_vertical_when_wide(void) {
        static const char *const names[] = { "text", "number" };
        const Value values[] = { TEXT("abcdefghijklmnopqrstuvwxyz"), INTEGER(1234567890) };
        RenderOptions options = { .terminal = true, .vertical_when_wide = true, .terminal_width = 27 };

        CHECK_WITH(RENDER_TABLE, options,
                   "+------------+------------+\n"
                   "|    text    |   number   |\n"
                   "+------------+------------+\n"
                   "| abcdefghi… | 1234567890 |\n"
                   "+------------+------------+\n",
                   names, values);
        options.terminal_width--;
        CHECK_WITH(RENDER_TABLE, options,
                   "-[ RECORD 1 ]--\ntext   | abcdefghijklmnopqrstuvwxyz\nnumber | 1234567890\n", names, values);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------- */

typedef struct Stream {
        Renderer *renderer;
        FILE *file;
        char *output; /* as of the last flush of the file */
        size_t size;
} Stream;

static void stream_open(Stream *stream, RenderMode mode, const char *const *names, size_t n_columns) {
        RenderOptions options = {};

        stream->file = options.output = open_memstream(&stream->output, &stream->size);
        g_assert_cmpint(renderer_new(mode, &options, names, n_columns, &stream->renderer), ==, 0);
}

static void stream_add(Stream *stream, const Value *row, size_t n) {
        for (size_t i = 0; i < n; i++)
                g_assert_cmpint(renderer_row(stream->renderer, row), ==, 0);
}

static char *stream_close(Stream *stream) {
        char *copy;

        g_assert_cmpint(renderer_finish(stream->renderer, true), ==, 0);
        renderer_free(stream->renderer);
        fclose(stream->file);
        copy = g_strdup(stream->output);
        free(stream->output);
        return copy;
}

/* Every line of a grid is as wide as the borders above and below it, and a "+---+" is only where a block begins or ends.
 * Returns the blocks. */
static size_t count_blocks(const char *output) {
        const char *end = output + strlen(output), *next;
        size_t n_rules = 0, width = 0;

        for (const char *line = output; line < end; line = next + 1) { /* sanitizers measure the whole text in strchr() */
                next = memchr(line, '\n', (size_t) (end - line));
                g_assert_nonnull(next);
                if (*line == '+' && n_rules++ % 3 == 0)
                        width = (size_t) (next - line);
                g_assert_cmpuint((size_t) (next - line), ==, width);
        }
        g_assert_cmpuint(n_rules % 3, ==, 0);
        return n_rules / 3;
}

/* All rows up to the bound are measured together, however late the widest comes. The row that reaches the bound is the last
 * of its block; a wider one behind it begins another, with names. */
static void test_blocks(void) {
        static const char *const names[] = { "n", "text" };
        enum { ROW_SIZE = 1 + 1 + 1 + 1 + 1 + 1 }; /* "1", "a", for each a type and a NUL */
        const Value row[] = { INTEGER(1), TEXT("a") }, wide[] = { INTEGER(1000), TEXT("0123456789") };
        const size_t n_rows = RENDER_GRID_BYTES / ROW_SIZE; /* one less than the bound */

        for (size_t past = 0; past <= 2; past++) {
                Stream stream;
                g_autofree char *output = NULL;

                stream_open(&stream, RENDER_TABLE, names, 2);
                stream_add(&stream, row, n_rows + past);
                stream_add(&stream, wide, 1);
                stream_add(&stream, row, 1);
                output = stream_close(&stream);
                g_assert_cmpuint(count_blocks(output), ==, past == 0 ? 1 : 2);
                g_assert_true(g_str_has_prefix(output, past == 0 ? "+------+-----" : "+---+------+\n| n |"));
                g_assert_true(g_str_has_suffix(
                        output, "| 1000 | 0123456789 |\n|    1 | a          |\n+------+------------+\n"));
        }
}

/* Widths grow only, so a narrow block needs no names of its own. */
static void test_blocks_that_fit(void) {
        static const char *const names[] = { "n" };
        Stream stream;
        g_autofree char *output = NULL;

        stream_open(&stream, RENDER_TABLE, names, 1);
        stream_add(&stream, (Value[]) { INTEGER(1000) }, 1);
        g_assert_cmpint(renderer_flush(stream.renderer), ==, 0);
        g_assert_cmpstr(stream.output, ==, "+------+\n|  n   |\n+------+\n| 1000 |\n"); /* although more may come */
        stream_add(&stream, (Value[]) { INTEGER(1) }, 1);
        g_assert_cmpint(renderer_flush(stream.renderer), ==, 0);
        stream_add(&stream, (Value[]) { TEXT("two\nlines") }, 1);
        output = stream_close(&stream);
        g_assert_cmpstr(output, ==,
                        "+------+\n|  n   |\n+------+\n| 1000 |\n|    1 |\n+------+\n"
                        "+-------+\n|   n   |\n+-------+\n| two   |\n| lines |\n+-------+\n");
}

/* Modes without a border at the end have an empty line between blocks. */
static void test_blocks_without_border(void) {
        static const char *const expected[] = {
                [RENDER_MARKDOWN] = "| n |\n|---|\n| 1 |\n\n| n  |\n|----|\n| 12 |\n",
                [RENDER_COLUMN] = "n\n-\n1\n\n n\n--\n12\n",
        };
        static const char *const names[] = { "n" };

        for (RenderMode mode = RENDER_MARKDOWN; mode <= RENDER_COLUMN; mode++) {
                Stream stream;
                g_autofree char *output = NULL;

                stream_open(&stream, mode, names, 1);
                stream_add(&stream, (Value[]) { INTEGER(1) }, 1);
                g_assert_cmpint(renderer_flush(stream.renderer), ==, 0);
                stream_add(&stream, (Value[]) { INTEGER(12) }, 1);
                output = stream_close(&stream);
                g_assert_cmpstr(output, ==, expected[mode]);
        }
}

/* A row that is too large for memory is a block of its own, and whole. */
static void test_large_row(void) {
        static const char *const names[] = { "n", "text" };
        enum { SIZE = 3 * 1000 * 1000 };
        g_autofree char *text = g_strnfill(SIZE, 'x'), *output = NULL, *line = g_strdup_printf("\n| 1 | %s |\n", text);
        Stream stream;
        const Value row[] = { INTEGER(1), TEXT("a") };

        stream_open(&stream, RENDER_TABLE, names, 2);
        stream_add(&stream, row, 1);
        stream_add(&stream, (Value[]) { INTEGER(1), { .type = SQLIPC_TEXT, .bytes = text, .size = SIZE } }, 1);
        stream_add(&stream, row, 1);
        output = stream_close(&stream);
        g_assert_cmpuint(count_blocks(output), ==, 2);
        g_assert_nonnull(strstr(output, line));
        g_assert_true(g_str_has_prefix(
                output, "+---+------+\n| n | text |\n+---+------+\n| 1 | a    |\n+---+------+\n+---+-"));
}

/* ---- Long values -------------------------------------------------------------------------------------------------- */

/* Cut on a terminal, with their size; whole elsewhere. Where is not seen from a value: the pieces that it is shown in. */
static void test_long_values(void) {
        static const char *const names[] = { "v" };
        g_autofree char *text = g_strnfill(20000, 'x'), *zeros = g_strnfill(2 * 20000, '0'), *bytes = g_malloc0(20000);
        g_autofree char *cut = g_strdup_printf("%.2000s… (20000 bytes)", text), *blob = g_strdup_printf("x'%s'", zeros);
        g_autofree char *cut_blob = g_strdup_printf("x'%.64s…' (20000 bytes)", zeros);
        const struct {
                Value value;
                const char *cut, *whole;
        } cases[] = {
                { { .type = SQLIPC_TEXT, .bytes = text, .size = 20000 }, cut, text },
                { { .type = SQLIPC_BLOB, .bytes = bytes, .size = 20000 }, cut_blob, blob },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                for (int terminal = 0; terminal <= 1; terminal++) {
                        RenderOptions options = { .headers = RENDER_HEADERS_OFF, .terminal = terminal };
                        const char *shown = terminal ? cases[i].cut : cases[i].whole;
                        g_autofree char *column = g_strdup_printf("%s\n", shown);
                        g_autofree char *markdown = g_strdup_printf("| %s |\n", shown);
                        g_autofree char *vertical = g_strdup_printf("-[ RECORD 1 ]--\nv | %s\n", shown);
                        g_autofree char *line = g_strdup_printf("    v = %s\n", i == 0 ? text : shown);

                        CHECK_WITH(RENDER_COLUMN, options, column, names, ((Value[]) { cases[i].value }));
                        CHECK_WITH(RENDER_MARKDOWN, options, markdown, names, ((Value[]) { cases[i].value }));
                        CHECK_WITH(RENDER_VERTICAL, options, vertical, names, ((Value[]) { cases[i].value }));
                        CHECK_WITH(RENDER_LINE, options, line, names, ((Value[]) { cases[i].value }));
                }
}

/* So are names, and texts for which .width has no room. */
static void test_nothing_is_cut(void) {
        static const int widths[] = { 1 };
        g_autofree char *name = g_strnfill(3000, 'n'), *dashes = g_strnfill(3000, '-');
        g_autofree char *column = g_strdup_printf("%s\n%s\n%-3000s\n", name, dashes, "a");
        const RenderOptions narrow = { .widths = widths, .n_widths = 1, .headers = RENDER_HEADERS_OFF };

        CHECK(RENDER_COLUMN, column, (const char *const[]) { name }, ((Value[]) { TEXT("a") }));
        CHECK_WITH(RENDER_COLUMN, narrow, "日\n本\na \n", (const char *const[]) { "v" }, ((Value[]) { TEXT("日本a") }));
        CHECK_WITH(RENDER_MARKDOWN, narrow, "| 日本a |\n", (const char *const[]) { "v" }, ((Value[]) { TEXT("日本a") }));
}

/* A value looks the same however the pieces fall in which it is shown. */
static void test_pieces(void) {
        static const char *const names[] = { "v" };
        static const char *const texts[] = { "👩🏽\u200d🚀", "e\u0301", "🇩🇪", "a\tb", "\r\n日" };
        static const size_t lines[] = { 1, 1, 1, 1, 5001 };

        for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
                for (size_t shift = 0; shift < 4; shift++) {
                        g_autoptr(GString) text = g_string_new(&"xxxx"[shift]);
                        g_autofree char *output = NULL;
                        g_auto(GStrv) rows = NULL;
                        Value value;

                        for (size_t n = 0; n < 5000; n++)
                                g_string_append(text, texts[i]);
                        value = (Value) { .type = SQLIPC_TEXT, .bytes = text->str, .size = text->len };
                        output = render(RENDER_TABLE, (RenderOptions) {}, names, 1, &value, 1, true);
                        rows = g_strsplit(output, "\n", -1);
                        g_assert_cmpuint(g_strv_length(rows), ==, 5 + lines[i]);
                        for (char **row = rows; **row; row++)
                                g_assert_cmpuint(format_shown_width(*row, strlen(*row)), ==, strlen(rows[0]));
                }
}

/* Each quote is doubled, wherever the pieces fall, also in text that loses a CR for each of its lines. */
static void test_quoted(void) {
        static const char *const names[] = { "v" };
        const RenderOptions terminal = { .terminal = true, .headers = RENDER_HEADERS_OFF };
        g_autofree char *long_text = g_strnfill(3000, 'x'), *output = NULL;

        for (size_t shift = 0; shift < 4; shift++) {
                g_autoptr(GString) text = g_string_new(&"xxxx"[shift]);
                g_autofree char *lines = NULL;
                g_auto(GStrv) halves = NULL;
                Value value;

                for (size_t n = 0; n < 9000; n++)
                        g_string_append(text, "\r\n");
                g_string_append(text, "'");
                value = (Value) { .type = SQLIPC_TEXT, .bytes = text->str, .size = text->len };
                lines = render(RENDER_QBOX, (RenderOptions) {}, names, 1, &value, 1, true);
                halves = g_strsplit(lines, "''", -1);
                g_assert_cmpuint(g_strv_length(halves), ==, 2);
                g_assert_true(g_str_has_prefix(halves[1], "'"));
        }
        output = render(RENDER_QBOX, terminal, names, 1,
                        (Value[]) { { .type = SQLIPC_TEXT, .bytes = long_text, .size = 3000 } }, 1, true);
        g_assert_nonnull(strstr(output, "…' (3000 bytes)"));
        g_clear_pointer(&output, g_free);
        output = render(RENDER_QBOX, (RenderOptions) { .terminal_width = 40, .vertical_when_wide = true },
                        (const char *const[]) { "a", "b", "c", "d" }, 4,
                        (Value[]) { TEXT(""), TEXT("it's a long text"), TEXT("another text"), TEXT("one more text") }, 1,
                        true);
        g_assert_true(g_str_has_prefix(output, "-[ RECORD 1 ]--\na | ''\nb | 'it''s a long text'\n"));
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
                size_t columns = format_shown_width(output, strcspn(output, "\n"));

                g_assert_nonnull(strstr(output, "👨\u200d👩\u200d👧"));
                for (const char *line = output; *line; line += strcspn(line, "\n") + 1)
                        g_assert_cmpuint(format_shown_width(line, strcspn(line, "\n")), ==, columns);
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

                if (mode != RENDER_ASCII && mode != RENDER_TCL) /* there a BLOB is its bytes, as in sqlite3 */
                        g_assert_cmpstr(null, !=, blob);
                if (mode != RENDER_LIST && mode != RENDER_HTML && mode != RENDER_ASCII && mode != RENDER_TCL) /* sqlite3's */
                        g_assert_cmpstr(null, !=, empty);
        }
}

static void test_null_option(void) {
        static const char *const names[] = { "v" };
        static const char *const expected[] = {
                [RENDER_TABLE] = "+---+\n| v |\n+---+\n| - |\n+---+\n",
                [RENDER_BOX] = "┌───┐\n│ v │\n├───┤\n│ - │\n└───┘\n",
                [RENDER_QBOX] = "┌──────┐\n│  v   │\n├──────┤\n│ NULL │\n└──────┘\n",
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
                [RENDER_ASCII] = "-\x1e",
                [RENDER_TCL] = "\"-\"\n",
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

/* 10,000 rows of a KiB each, and then a value of 16 MiB: holding them would take as much. A grid holds RENDER_GRID_BYTES, in
 * a buffer of twice the size, and the allocator may keep the smaller one that this grew from. */
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
                g_assert_cmpuint(resident_kib(), <, before + 2 * 1024 + 3 * RENDER_GRID_BYTES / 1024);
                fclose(options.output);
        }
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/render/json", test_json);
        g_test_add_func("/render/json-harmless", test_json_harmless);
        g_test_add_func("/render/whole", test_whole);
        g_test_add_func("/render/raw", test_raw);
        g_test_add_func("/render/tsv", test_tsv);
        g_test_add_func("/render/terminal", test_terminal);
        g_test_add_func("/render/terminal-pieces", test_terminal_pieces);
        g_test_add_func("/render/line", test_line);
        g_test_add_func("/render/vertical", test_vertical);
        g_test_add_func("/render/grids", test_grids);
        g_test_add_func("/render/colors", test_colors);
        g_test_add_func("/render/fit", test_fit);
        g_test_add_func("/render/fit-of-size", test_fit_of_size);
        g_test_add_func("/render/alignment", test_alignment);
        g_test_add_func("/render/vertical-when-wide", test_vertical_when_wide);
        g_test_add_func("/render/blocks", test_blocks);
        g_test_add_func("/render/blocks-that-fit", test_blocks_that_fit);
        g_test_add_func("/render/blocks-without-border", test_blocks_without_border);
        g_test_add_func("/render/large-row", test_large_row);
        g_test_add_func("/render/nothing-is-cut", test_nothing_is_cut);
        g_test_add_func("/render/pieces", test_pieces);
        g_test_add_func("/render/quoted", test_quoted);
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
