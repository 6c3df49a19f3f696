/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/sql-caret: the line of an error and the caret below it. */
#include <glib.h>
#include <locale.h>
#include <string.h>

#include "format.h"
#include "sql-caret.h"

static void check(const char *sql, const char *place, size_t width, const char *expected) {
        const char *found = strstr(sql, place);
        g_autofree char *caret = NULL;

        g_assert_nonnull(found);
        caret = sql_caret(sql, (size_t) (found - sql), width);
        g_assert_cmpstr(caret, ==, expected);
}

static void test_lines(void) {
        check("SELECT nope", "nope", 0, "  SELECT nope\n         ^\n");
        check("SELECT 1", "SELECT", 0, "  SELECT 1\n  ^\n");
        check("SELECT a,\n  nope,\n  c", "nope", 0, "    nope,\n    ^\n");
        check("\tnope", "nope", 0, "          nope\n          ^\n");
        check("ab\tnope\tx", "x", 0, "  ab      nope    x\n                  ^\n");
        check("'\346\227\245\346\234\254', nope", "nope", 0, "  '\346\227\245\346\234\254', nope\n          ^\n");
        check("'\033[31m', nope", "nope", 0, "  '\\x1b[31m', nope\n              ^\n");
        g_autofree char *end = sql_caret("SELECT", 6, 0);
        g_assert_cmpstr(end, ==, "  SELECT\n        ^\n");
        g_autofree char *inside = sql_caret("\303\251", 1, 0);
        g_assert_cmpstr(inside, ==, "  \303\251\n  ^\n");
        g_assert_null(sql_caret("SELECT", 7, 0));
}

/* Whatever the length, both lines fit, and the caret points at the place. */
static void test_narrow(void) {
        for (size_t before = 0; before < 200; before += 7)
                for (size_t after = 0; after < 200; after += 11) {
                        g_autofree char *front = g_strnfill(before, 'f'), *back = g_strnfill(after, 'b');
                        g_autofree char *sql = g_strconcat(front, "!", back, NULL), *caret = sql_caret(sql, before, 60);
                        g_auto(GStrv) lines = g_strsplit(caret, "\n", -1);

                        g_assert_cmpuint(g_strv_length(lines), ==, 3);
                        g_assert_cmpuint(strlen(lines[0]), <=, 60);
                        g_assert_cmpint(lines[0][strlen(lines[1]) - 1], ==, '!');
                        g_assert_cmpint(lines[1][strlen(lines[1]) - 1], ==, '^');
                }
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/caret/lines", test_lines);
        g_test_add_func("/caret/narrow", test_narrow);
        return g_test_run();
}
