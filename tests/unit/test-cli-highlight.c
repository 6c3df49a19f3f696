/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/prompt/highlight: changes only the colours of a line. A small terminal emulator shows what was drawn. */
#include <glib.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "tools/cli/prompt/highlight.h"

enum { ROWS = 12, COLUMNS_MAX = 60 };

/* ---- A terminal --------------------------------------------------------------------------------------------------- */

typedef struct Terminal {
        size_t columns, row, column; /* .column == .columns: the next character goes to the next row */
        gunichar cells[ROWS][COLUMNS_MAX];
        char colors[ROWS][COLUMNS_MAX]; /* the last digit of the colour; 0: none */
        char color;
} Terminal;

static void put(Terminal *terminal, gunichar c) {
        size_t width = (size_t) wcwidth((wchar_t) c);

        if (terminal->column + width > terminal->columns) {
                terminal->row++;
                terminal->column = 0;
        }
        g_assert_cmpuint(terminal->row, <, ROWS);
        terminal->cells[terminal->row][terminal->column] = c;
        for (size_t i = 0; i < width; i++)
                terminal->colors[terminal->row][terminal->column + i] = terminal->color;
        terminal->column += width;
}

static const char *put_sequence(Terminal *terminal, const char *sequence) {
        char *end;
        size_t n = strtoul(sequence, &end, 10);

        if (*end == 'A') {
                g_assert_cmpuint(n, <=, terminal->row);
                terminal->row -= n;
        } else if (*end == 'C')
                terminal->column += n;
        else {
                while (*end != 'm')
                        end++;
                terminal->color = end[-1] == '0' && end[-2] == '[' ? '\0' : end[-1];
        }
        g_assert_cmpuint(terminal->column, <=, terminal->columns);
        return end + 1;
}

static void feed(Terminal *terminal, const char *text) {
        while (*text)
                if (g_str_has_prefix(text, "\033["))
                        text = put_sequence(terminal, text + 2);
                else if (*text == '\r' || *text == '\n') {
                        if (*text == '\r')
                                terminal->column = 0;
                        else
                                g_assert_cmpuint(++terminal->row, <, ROWS);
                        text++;
                } else {
                        put(terminal, g_utf8_get_char(text));
                        text = g_utf8_next_char(text);
                }
}

/* As the line editor draws it: its lines below each other, tabs as blanks. */
static void draw(Terminal *terminal, const char *prompt, const char *text, size_t size) {
        feed(terminal, prompt);
        for (size_t i = 0; i < size;) {
                g_autofree char *character = g_strndup(text + i, (size_t) (g_utf8_next_char(text + i) - (text + i)));

                if (*character == '\n')
                        feed(terminal, "\r\n");
                else if (*character == '\t')
                        for (size_t n = 8 - terminal->column % terminal->columns % 8; n > 0; n--)
                                feed(terminal, " ");
                else
                        feed(terminal, character);
                i += strlen(character);
        }
        if (terminal->column == terminal->columns) { /* it shows its cursor on the next row */
                terminal->row++;
                terminal->column = 0;
        }
}

/* ---- Proofs ------------------------------------------------------------------------------------------------------- */

static bool paint(const char *text, size_t cursor, size_t columns, Terminal *ret) {
        static const char prompt[] = "db> ";
        HighlightText wanted = {
                .text = text,
                .size = strlen(text),
                .cursor = cursor,
                .prompt_width = strlen(prompt),
                .columns = columns,
                .rows = ROWS,
        };
        g_autoptr(GString) output = g_string_new(NULL);
        Terminal plain = { .columns = columns }, at_cursor = { .columns = columns };

        if (!highlight_paint(&wanted, output)) {
                g_assert_cmpuint(output->len, ==, 0);
                return false;
        }
        draw(&plain, prompt, text, wanted.size);
        draw(&at_cursor, prompt, text, cursor);
        *ret = plain;
        ret->row = at_cursor.row;
        ret->column = at_cursor.column;
        feed(ret, output->str);
        g_assert_cmpmem(ret->cells, sizeof ret->cells, plain.cells, sizeof plain.cells);
        g_assert_cmpuint(ret->row, ==, at_cursor.row);
        g_assert_cmpuint(ret->column, ==, at_cursor.column);
        g_assert_cmpint(ret->color, ==, '\0');
        return true;
}

static void test_same_text(void) {
        static const char *const pieces[] = {
                "SELECT ", "'", "\"", "x", "\346\274\242", "\303\251", "12", "--", "/*", "*/", "\n", "\t",
                ".", "xxxxxxxxxxx", " ",
        };
        g_autoptr(GRand) random = g_rand_new_with_seed(8);
        unsigned n_painted = 0;

        for (int i = 0; i < 100000; i++) {
                g_autoptr(GString) text = g_string_new(NULL);
                size_t columns = (size_t) g_rand_int_range(random, 5, COLUMNS_MAX);
                Terminal terminal;

                for (int n = g_rand_int_range(random, 0, 14); n > 0; n--)
                        g_string_append(text, pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(pieces))]);
                const char *cursor = g_utf8_offset_to_pointer(
                        text->str, g_rand_int_range(random, 0, (gint32) g_utf8_strlen(text->str, -1) + 1));
                n_painted += paint(text->str, (size_t) (cursor - text->str), columns, &terminal);
        }
        g_assert_cmpuint(n_painted, >, 50000); /* certain enough, often enough */
}

/* The colours of the first row behind the prompt: digits, "." for none. */
static void check_colors(const char *text, const char *expected) {
        g_autoptr(GString) found = g_string_new(NULL);
        Terminal terminal;

        g_assert_true(paint(text, strlen(text), COLUMNS_MAX, &terminal));
        for (size_t i = 0; i < strlen(expected); i++)
                g_string_append_c(found, terminal.colors[0][4 + i] ?: '.');
        g_assert_cmpstr(found->str, ==, expected);
}

static void test_colors(void) {
        check_colors("SELECT 'a', 12 -- x", "444444.222..55.0000");
        check_colors("a \"b\" :c 'open", "..333.66.11111");
        check_colors(".mode csv", "66666....");
        check_colors("SELECT 1; .mode", "444444.5..66666");
        check_colors("SELECT 1 \\g out", "444444.5.66....");
        check_colors("/* c */ .x", "0000000.66");
}

/* Lines before that end within something. */
static void test_open(void) {
        HighlightText text = { .text = "in' 12", .size = 6, .open = "'", .started = true, .columns = 40, .rows = ROWS };
        g_autoptr(GString) output = g_string_new(NULL);
        Terminal terminal = { .columns = 40 };

        g_assert_true(highlight_paint(&text, output));
        feed(&terminal, output->str);
        g_assert_cmpmem(terminal.colors[0], 6, "222\00055", 6);
}

static void check_uncertain(const char *text, size_t columns) {
        Terminal terminal;

        g_assert_false(paint(text, 0, columns, &terminal));
}

static void test_uncertain(void) {
        g_autofree char *long_text = g_strnfill(20 * ROWS, 'x');

        check_uncertain("a\001", 40);
        check_uncertain("a\033[31m", 40);
        check_uncertain("e\314\201", 40); /* a combining accent */
        check_uncertain("a\377", 40);
        check_uncertain(long_text, 20); /* more rows than there are */
        check_uncertain("a", 4);        /* the prompt fills the row */
        check_uncertain("\n\n\n\n\n\n\n\n\n\n\n\n\n", 40);
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/highlight/same-text", test_same_text);
        g_test_add_func("/highlight/colors", test_colors);
        g_test_add_func("/highlight/open", test_open);
        g_test_add_func("/highlight/uncertain", test_uncertain);
        return g_test_run();
}
