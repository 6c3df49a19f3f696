/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of ipcq-cli around rows: amounts, query plans, how much of the screen is used. */
#include <glib.h>
#include <locale.h>
#include <string.h>

#include "tools/cli/output/screen.h"
#include "tools/cli/render/human.h"
#include "tools/cli/render/plan.h"

static void is(char *text, const char *expected) {
        g_assert_cmpstr(text, ==, expected);
        g_free(text);
}

/* ---- Amounts ------------------------------------------------------------------------------------------------------ */

static void test_rows(void) {
        is(human_rows(0), "0 rows");
        is(human_rows(1), "1 row");
        is(human_rows(999), "999 rows");
        is(human_rows(1000), "1,000 rows");
        is(human_rows(12345678), "12,345,678 rows");
        is(human_rows(UINT64_MAX), "18,446,744,073,709,551,615 rows");
}

static void test_sizes(void) {
        is(human_size(0), "0 B");
        is(human_size(999), "999 B");
        is(human_size(1000), "1.0 kB");
        is(human_size(999949), "999.9 kB");
        is(human_size(999950), "1.0 MB");
        is(human_size(34500000), "34.5 MB");
        is(human_size(UINT64_MAX), "18.4 EB");
}

static void test_configured_sizes(void) {
        is(human_configured_size(0), "0");
        is(human_configured_size(1000), "1000");
        is(human_configured_size(1024), "1K");
        is(human_configured_size(1025), "1025");
        is(human_configured_size((uint64_t) 64 << 20), "64M");
        is(human_configured_size((uint64_t) 1536 << 20), "1536M");
        is(human_configured_size((uint64_t) 1 << 40), "1T");
        is(human_configured_size((uint64_t) 1024 << 40), "1024T");
}

static void test_times(void) {
        is(human_time(0), "0.0 ms");
        is(human_time(1250), "1.2 ms");
        is(human_time(999949), "999.9 ms");
        is(human_time(999950), "1.00 s");
        is(human_time(59994999), "59.99 s");
        is(human_time(59995000), "1:00 min");
        is(human_time(125400000), "2:05 min");
        is(human_time((uint64_t) 3 * 60 * 60 * 1000000), "180:00 min");
}

static void test_progress(void) {
        const uint64_t three = 3200000;

        is(human_progress(12345, 38400000, three, 80), "12,345 rows, 38.4 MB, 12.0 MB/s, 0:03");
        is(human_progress(0, 0, three, 80), "0 rows, 0:03");
        is(human_progress(1, 10, 0, 80), "1 row, 10 B, 0 B/s, 0:00");
        is(human_progress(12345, 38400000, 61 * three / 3, 28), "12,345 rows, 38.4 MB, 1:05");
        is(human_progress(12345, 38400000, three, 12), "12,345 rows");
        is(human_progress(12345, 38400000, three, 3), "");
}

/* ---- Plans -------------------------------------------------------------------------------------------------------- */

static void test_explain(void) {
        g_assert_cmpint(explain_of(SQL_DIALECT_SQLITE, "SELECT 1"), ==, EXPLAIN_NOT);
        g_assert_cmpint(explain_of(SQL_DIALECT_SQLITE, ""), ==, EXPLAIN_NOT);
        g_assert_cmpint(explain_of(SQL_DIALECT_SQLITE, "'EXPLAIN'"), ==, EXPLAIN_NOT);
        g_assert_cmpint(explain_of(SQL_DIALECT_SQLITE, "explain select 1"), ==, EXPLAIN_CODE);
        g_assert_cmpint(explain_of(SQL_DIALECT_SQLITE, "-- a\n /* b */ EXPLAIN -- c\n QUERY /* d */ PLAN SELECT 1"), ==,
                        EXPLAIN_PLAN);
        g_assert_cmpint(explain_of(SQL_DIALECT_SQLITE, "EXPLAIN"), ==, EXPLAIN_CODE);
}

static char *tree(const int rows[][2], size_t n) {
        GString *text = g_string_new(NULL);
        Plan *plan = plan_new();

        for (size_t i = 0; i < n; i++) {
                g_autofree char *detail = g_strdup_printf("%d", rows[i][0]);

                plan_add(plan, rows[i][0], rows[i][1], detail, strlen(detail));
        }
        plan_append(plan, text);
        plan_free(plan);
        return g_string_free(text, FALSE);
}

static void test_tree(void) {
        static const int rows[][2] = { { 1, 0 }, { 2, 1 }, { 5, 2 }, { 7, 1 }, { 9, 0 }, { 12, 9 } };
        static const int circles[][2] = { { 1, 1 }, { 2, 3 }, { 3, 2 }, { 4, 0 }, { 4, 4 }, { 4, 4 } };

        is(tree(rows, 6),
           "QUERY PLAN\n"
           "|--1\n"
           "|  |--2\n"
           "|  |  `--5\n"
           "|  `--7\n"
           "`--9\n"
           "   `--12\n");
        is(tree(rows, 0), "");
        is(tree(circles, 6),
           "QUERY PLAN\n"
           "`--4\n"
           "   |--4\n"
           "   |  `--4\n"
           "   `--4\n");
}

/* Deeper than any tree is drawn, and a text that would drive the terminal. */
static void test_odd_plans(void) {
        g_autoptr(GString) text = g_string_new(NULL);
        Plan *plan = plan_new();

        plan_add(plan, 1, 0, "\033[31mred\0rest", 13);
        for (int i = 1; i < 100; i++)
                plan_add(plan, i + 1, i, "deep", 4);
        plan_append(plan, text);
        plan_free(plan);
        g_assert_true(g_str_has_prefix(text->str, "QUERY PLAN\n`--\\x1b[31mred\\x00rest\n   `--deep\n"));
        g_assert_cmpuint(text->len, <, 40 * 110);
}

/* ---- The screen --------------------------------------------------------------------------------------------------- */

static void takes(size_t rows, size_t columns, const char *text, size_t lines, size_t column) {
        Screen whole = { .rows = rows, .columns = columns }, pieces = whole;
        bool fits = screen_take(&whole, text, strlen(text)), still = true;

        for (const char *p = text; *p; p++)
                still = screen_take(&pieces, p, 1);
        g_assert_cmpuint(whole.n_lines, ==, lines);
        g_assert_cmpuint(whole.column, ==, column);
        g_assert_true(fits == (lines < rows));
        g_assert_true(fits == still);
        g_assert_cmpuint(pieces.n_lines, ==, lines);
}

static void test_screen(void) {
        takes(5, 10, "", 0, 0);
        takes(5, 10, "a\nb\n", 2, 0);
        takes(5, 10, "0123456789\n", 1, 0);  /* just as wide: no line more */
        takes(5, 10, "0123456789x\n", 2, 0);
        takes(5, 10, "\033[1m\303\274\303\274\303\274\033[0m", 0, 3);
        takes(5, 10, "\tx", 0, 9);
        takes(5, 10, "\n\n\n\n", 4, 0);
        takes(5, 10, "\n\n\n\n\nx", 5, 0);   /* full: what follows is not looked at */
        takes(2, 10, "0123456789012345678901234567890123456789", 2, 1);
}

int main(int argc, char **argv) {
        setlocale(LC_CTYPE, "C.UTF-8");
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/below/rows", test_rows);
        g_test_add_func("/below/sizes", test_sizes);
        g_test_add_func("/below/configured-sizes", test_configured_sizes);
        g_test_add_func("/below/times", test_times);
        g_test_add_func("/below/progress", test_progress);
        g_test_add_func("/below/explain", test_explain);
        g_test_add_func("/below/tree", test_tree);
        g_test_add_func("/below/odd-plans", test_odd_plans);
        g_test_add_func("/below/screen", test_screen);
        return g_test_run();
}
