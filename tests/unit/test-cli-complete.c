/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/sql/complete-sql: which completions fit a cursor in SQL. "|" marks the cursor. */
#include <glib.h>
#include <string.h>

#include "tools/cli/sql/complete-sql.h"

static char *joined(GPtrArray *names) {
        GString *all = g_string_new(NULL);

        for (guint i = 0; i < names->len; i++)
                g_string_append_printf(all, "%s%s", i > 0 ? " " : "", (char *) names->pdata[i]);
        return g_string_free(all, false);
}

static SqlPlace find(const char *marked) {
        const char *mark = strchr(marked, '|');
        g_autofree char *before = g_strndup(marked, (size_t) (mark - marked)), *text = g_strconcat(before, mark + 1, NULL);
        SqlPlace place;

        sql_place_find(SQL_DIALECT_SQLITE, text, strlen(before), &place);
        g_assert_cmpuint(place.start, <=, strlen(before));
        return place;
}

/* Letters: c columns, n names, t tables, f functions, k keywords, b beginnings, p PRAGMAs, a all columns. */
static void check(const char *marked, const char *wants, const char *word, const char *tables, const char *names) {
        static const char letters[] = "cntfkbpa";
        SqlPlace place = find(marked);
        g_autofree char *my_tables = joined(place.tables), *my_names = joined(place.names);
        g_autoptr(GString) found = g_string_new(NULL);

        for (size_t i = 0; letters[i]; i++)
                if (place.wants & (1u << i))
                        g_string_append_c(found, letters[i]);
        g_test_message("%s: %s", marked, found->str);
        g_assert_cmpstr(found->str, ==, wants);
        g_assert_cmpstr(place.word, ==, word);
        if (tables)
                g_assert_cmpstr(my_tables, ==, tables);
        if (names)
                g_assert_cmpstr(my_names, ==, names);
        sql_place_done(&place);
}

static void test_kinds(void) {
        check("|", "b", "", NULL, NULL);
        check("SEL|", "b", "SEL", NULL, NULL);
        check("SELECT 1; sel|", "b", "sel", NULL, NULL);
        check("EXPLAIN QUERY PLAN |", "b", "", NULL, NULL);
        check("SELECT |", "ntfka", "", "", "");
        check("SELECT a|", "ntfka", "a", "", "");
        check("SELECT * FROM |", "nt", "", "", "");
        check("SELECT * FROM (|", "ntb", "", "", "");
        check("SELECT a F|", "k", "F", NULL, NULL);
        check("SELECT count(*) F|", "k", "F", NULL, NULL);
        check("SELECT 1 GRO|", "k", "GRO", NULL, NULL);
        check("SELECT a AS |", "", "", NULL, NULL);
        check("SELECT 'te|xt'", "", "", NULL, NULL);
        check("SELECT /* te|xt */", "", "", NULL, NULL);
        check("SELECT 1 -- te|xt", "", "", NULL, NULL);
        check("SELECT 12|", "", "", NULL, NULL);
        check("SELECT :na|", "", "", NULL, NULL);
        check("SELECT \"na|", "nta", "na", "", "");
        check("SELECT a FROM t ORDER |", "cn", "", "t", "t");
}

static void test_pragmas(void) {
        check("PRAGMA |", "p", "", "", "");
        check("pragma main.jour|", "p", "jour", "", "");
        check("pragma table_info(|", "t", "", "", "");
        check("PRAGMA table_info = Ge|", "t", "Ge", "", "");
        check("PRAGMA table_info(a) |", "", "", "", "");
}

static void test_tables(void) {
        check("SELECT | FROM Track", "cn", "", "Track", "Track");
        check("SELECT na| FROM Track t, \"two words\" AS w", "cnfk", "na", "Track two words", "t w");
        check("SELECT na|\nFROM a\nJOIN b x ON a.i = x.i\nWHERE 1", "cnfk", "na", "a b", "a x");
        check("SELECT na| FROM a JOIN b ON f(a.i, 1), c", "cnfk", "na", "a b c", "a b c");
        check("SELECT na| FROM (SELECT x, y FROM inner_one) WHERE z IN (1, 2)", "cnfk", "na", "inner_one", "inner_one x y");
        check("SELECT na| FROM main.Track", "cnfk", "na", "Track", "Track");
        check("SELECT 1 FROM old; SELECT na| FROM new; SELECT 2 FROM other", "cnfk", "na", "new", "new");
        check("SELECT * FROM a, |", "nt", "", NULL, NULL);
        check("SELECT * FROM a JOIN Tr|", "nt", "Tr", NULL, NULL);
        check("SELECT * FROM a WHERE x, |", "cn", "", "a", "a");
        check("SELECT * FROM main.Tr|", "t", "Tr", NULL, NULL);
        check("WITH one AS (SELECT 1), two(x, y) AS MATERIALIZED (SELECT 2) SELECT * FROM |", "nt", "", NULL, "one two");
        check("SELECT na| FROM [odd]]", "cnfk", "na", "odd", "odd");
        check("SELECT na| FROM \"a\"\"b\" `c`", "cnfk", "na", "a\"b", "c");
}

static void test_made_names(void) {
        check("WITH c(one, two) AS (SELECT 1, 2) SELECT t| FROM c", "cnfk", "t", "c", "c one two");
        check("SELECT a AS x, CAST(f(b) AS INTEGER) FROM t ORDER BY |", "cn", "", "t", "t x");
        check("SELECT | FROM (SELECT a AS y FROM t) AS s", "cn", "", "t", "t y s");
        check("SELECT a AS x FROM |", "nt", "", "", "");
        check("SELECT a| FROM t AS u", "cnfk", "a", "t", "u");
        check("WITH c(x) AS (SELECT 1), d(y, z) AS (SELECT 2, 3) SELECT | FROM d", "cn", "", "d", "d c x y z");
        check("WITH c AS (SELECT a + 1 w, t.b FROM t) SELECT | FROM c", "cn", "", "t c", "t c w b");
}

/* The columns of a name that stands for a query. */
static void test_queries(void) {
        check("WITH c(x, y) AS (SELECT a, b FROM t) SELECT c.| FROM c", "n", "", "", "x y");
        check("WITH c AS (SELECT a, t.b, f(a, 1) AS x, a + 1, -a y FROM t) SELECT c.| FROM c", "n", "", "", "a b x y");
        check("WITH b(q) AS (SELECT 1), c(x) AS (SELECT 2) SELECT d.| FROM b JOIN c AS d", "n", "", "", "x");
        check("WITH c AS (SELECT DISTINCT a FROM t UNION SELECT b FROM t) SELECT C.a| FROM c", "n", "a", "", "a");
        check("SELECT s.| FROM (SELECT a, b AS x FROM t) s", "n", "", "", "a x");
        check("SELECT s.| FROM r JOIN (SELECT a, \"two words\" FROM t WHERE b) AS s", "n", "", "", "a two words");
        check("SELECT s.| FROM (SELECT *, a AS x FROM t JOIN u) s", "cn", "", "t u", "x");
        check("SELECT s.| FROM (SELECT v.*, (SELECT z FROM no) FROM t, u v) s", "c", "", "u", "");
        check("SELECT s.| FROM (SELECT * FROM (SELECT a FROM t) r) s", "n", "", "", "a");
        check("WITH c AS (SELECT * FROM t), d AS (SELECT *, 1 AS x FROM c) SELECT d.| FROM d", "cn", "", "t", "x");
        check("WITH c AS (WITH d AS (SELECT a FROM t) SELECT b FROM d) SELECT c.| FROM c", "n", "", "", "b");
        check("WITH RECURSIVE c AS (SELECT * FROM c, c AS d) SELECT c.| FROM c", "", "", "", "");
        check("WITH c AS (SELECT 1) SELECT c.| FROM c", "", "", "", "");
        check("SELECT s.| FROM (SELECT a, (b", "c", "", "s", "");
}

static void test_qualified(void) {
        check("SELECT t.| FROM Track t", "c", "", "Track", NULL);
        check("SELECT t.na|\nFROM a,\nTrack AS t", "c", "na", "Track", NULL);
        check("SELECT T.na| FROM Track t", "c", "na", "Track", NULL);
        check("SELECT Track.| FROM Track", "c", "", "Track", NULL);
        check("SELECT unknown.|", "c", "", "unknown", NULL);
        check("SELECT main.|", "t", "", NULL, NULL);
        check("SELECT main.Track.na|", "c", "na", "Track", NULL);
        check("SELECT t.\"na| FROM Track t", "c", "na", "Track", NULL);
}

static void test_case(void) {
        static const struct {
                const char *marked;
                bool small;
        } cases[] = {
                { "sel|", true }, { "Sel|", false }, { "select |", true }, { "SELECT |", false }, { "select 1 FR|", false },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                SqlPlace place = find(cases[i].marked);

                g_assert_cmpint(place.small, ==, cases[i].small);
                sql_place_done(&place);
        }
}

static void check_quoted(const char *marked, const char *name, const char *expected) {
        SqlPlace place = find(marked);
        g_autofree char *quoted = sql_place_quote(&place, name);

        g_assert_cmpstr(quoted, ==, expected);
        sql_place_done(&place);
}

static void test_quotes(void) {
        check_quoted("SELECT * FROM |", "Track", "Track");
        check_quoted("SELECT * FROM |", "two words", "\"two words\"");
        check_quoted("SELECT * FROM |", "select", "\"select\"");
        check_quoted("SELECT * FROM |", "1st", "\"1st\"");
        check_quoted("SELECT * FROM |", "a\"b", "\"a\"\"b\"");
        check_quoted("SELECT * FROM |", "", "\"\"");
        check_quoted("SELECT * FROM \"tr|", "Track", "\"Track\"");
        check_quoted("SELECT * FROM [tr|", "Track", "[Track]");
        check_quoted("SELECT * FROM [tr|", "a]b", "\"a]b\"");
        check_quoted("SELECT * FROM `tr|", "a`b", "`a``b`");
}

static void test_matches(void) {
        SqlPlace place = find("SELECT * FROM \"two w|");

        g_assert_true(sql_place_matches(&place, "Two Words"));
        g_assert_false(sql_place_matches(&place, "two"));
        sql_place_done(&place);
}

/* Any text, with the cursor at any place. */
static void test_anything(void) {
        static const char *const pieces[] = {
                "SELECT ", "FROM ", "WITH ", "JOIN ", "AS ", "a", "1", "\303\244", ".", ",", "(", ")", "\"", "'", "[", ";",
                "/*", "--", "\n", "\\", " ", "*",
        };
        g_autoptr(GRand) random = g_rand_new_with_seed(7);

        for (int i = 0; i < 100000; i++) {
                g_autoptr(GString) text = g_string_new(NULL);
                SqlPlace place;

                for (int n = g_rand_int_range(random, 0, 16); n > 0; n--)
                        g_string_append(text, pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(pieces))]);
                size_t cursor = (size_t) g_rand_int_range(random, 0, (gint32) text->len + 1);
                sql_place_find(SQL_DIALECT_SQLITE, text->str, cursor, &place);
                g_assert_cmpuint(place.start, <=, cursor);
                g_assert_cmpuint(strlen(place.word), <=, cursor - place.start);
                sql_place_done(&place);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/complete/kinds", test_kinds);
        g_test_add_func("/complete/pragmas", test_pragmas);
        g_test_add_func("/complete/tables", test_tables);
        g_test_add_func("/complete/made-names", test_made_names);
        g_test_add_func("/complete/queries", test_queries);
        g_test_add_func("/complete/qualified", test_qualified);
        g_test_add_func("/complete/case", test_case);
        g_test_add_func("/complete/quotes", test_quotes);
        g_test_add_func("/complete/matches", test_matches);
        g_test_add_func("/complete/anything", test_anything);
        return g_test_run();
}
