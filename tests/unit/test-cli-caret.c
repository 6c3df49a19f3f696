/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/sql/sql-caret, sql-mistake, nearest: the place of an error, and the name that the user may have meant. */
#include <glib.h>
#include <locale.h>
#include <string.h>

#include "tools/cli/sql/sql-caret.h"
#include "tools/cli/sql/sql-mistake.h"
#include "tools/terminal/format.h"
#include "tools/terminal/nearest.h"

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

/* For any length both lines fit, and the caret points at the place. */
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

static void check_name(const char *message, const char *sql, MistakeKind kind, const char *name, int offset) {
        g_autofree char *found = NULL;

        g_assert_cmpint(sql_mistake_read(message, &found), ==, kind);
        g_assert_cmpstr(found, ==, name);
        if (kind != MISTAKE_NONE)
                g_assert_cmpint(sql_mistake_find(kind, found, sql), ==, offset);
}

static void test_names(void) {
        check_name("no such table: Gnre", "SELECT Gnre.a FROM Gnre", MISTAKE_TABLE, "Gnre", 19);
        check_name("no such table: main.gnre", "SELECT 1 FROM main . \"Gnre\"", MISTAKE_TABLE, "gnre", 21);
        check_name("no such table: b", "SELECT 'b' /* b */ FROM a, b", MISTAKE_TABLE, "b", 27);
        check_name("no such column: a.nme", "SELECT a.nme FROM a", MISTAKE_COLUMN, "nme", 9);
        check_name("no such function: conut", "SELECT conut(1)", MISTAKE_FUNCTION, "conut", 7);
        check_name("no such table: elsewhere", "SELECT 1", MISTAKE_TABLE, "elsewhere", -1);
        check_name("near \"x\": syntax error", "x", MISTAKE_NONE, NULL, -1);
}

static void test_commands(void) {
        g_assert_cmpstr(sql_mistake_command("show tables"), ==, ".tables lists tables");
        g_assert_cmpstr(sql_mistake_command("-- all\nSHOW  /* my */ databases;"), ==, ".databases lists databases");
        g_assert_cmpstr(sql_mistake_command("desc Genre"), ==, ".describe NAME shows columns");
        g_assert_cmpstr(sql_mistake_command("DESCRIBE"), ==, ".describe NAME shows columns");
        g_assert_cmpstr(sql_mistake_command("use chinook"), ==, ".open NAME opens another database");
        g_assert_null(sql_mistake_command("SELECT 1 FORM t"));
        g_assert_null(sql_mistake_command("users"));
        g_assert_null(sql_mistake_command(""));
}

static void test_nearest(void) {
        static const char *const names[] = { "Genre", "Artist", "Track" };
        static const struct {
                const char *word, *meant;
        } cases[] = { { "gnere", "Genre" }, { "tracks", "Track" }, { "ARTIST", "Artist" }, { "Invoice", NULL } };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                Nearest nearest = nearest_begin(cases[i].word);

                for (size_t j = 0; j < G_N_ELEMENTS(names); j++)
                        nearest_consider(&nearest, names[j], names[j]);
                g_assert_cmpstr(nearest.name, ==, cases[i].meant);
                g_free(nearest.name);
        }
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/caret/lines", test_lines);
        g_test_add_func("/caret/narrow", test_narrow);
        g_test_add_func("/mistake/names", test_names);
        g_test_add_func("/mistake/commands", test_commands);
        g_test_add_func("/mistake/nearest", test_nearest);
        return g_test_run();
}
