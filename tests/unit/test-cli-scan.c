/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/sql/sql-scan, sql-keyword: tokens and ends of statements, compared with SQLite. */
#include <glib.h>
#include <sqlite3.h>
#include <string.h>

#include "tools/cli/sql/sql-keyword.h"
#include "tools/cli/sql/sql-scan.h"

static void test_keywords(void) {
        const char *const *mine = sql_keywords();

        for (int i = 0; i < sqlite3_keyword_count(); i++) {
                const char *word;
                int size;

                g_assert_cmpint(sqlite3_keyword_name(i, &word, &size), ==, SQLITE_OK);
                g_autofree char *copy = g_strndup(word, (size_t) size), *small = g_ascii_strdown(copy, -1);
                g_assert_true(g_strv_contains(mine, copy));
                g_assert_true(sql_is_keyword(small, (size_t) size));
        }
        g_assert_cmpuint(g_strv_length((char **) mine), ==, (guint) sqlite3_keyword_count());
        for (const char *const *reading = sql_reading_keywords(); *reading; reading++)
                g_assert_true(sql_is_keyword(*reading, strlen(*reading)));
        for (const char *const *no = (const char *const[]) { "", "ROWID", "RO", "ROWX", "a", "zzz", NULL }; *no; no++)
                g_assert_cmpint(sql_is_keyword(*no, strlen(*no)), ==, sqlite3_keyword_check(*no, (int) strlen(*no)));
}

/* A letter for each token. */
static void check_tokens_of(SqlDialect dialect, const char *sql, const char *expected) {
        static const char letters[] = "_cKnQsbN?o;\\!";
        g_autoptr(GString) found = g_string_new(NULL);
        size_t position = 0, covered = 0;
        SqlToken token;

        while (sql_scan_next(dialect, sql, strlen(sql), &position, &token)) {
                g_assert_cmpuint(token.start, ==, covered); /* nothing is left out */
                g_assert_cmpuint(token.size, >, 0);
                covered += token.size;
                g_assert_cmpuint(position, ==, covered);
                g_string_append_c(found, letters[token.type]);
                if (token.open)
                        g_string_append_c(found, '*');
        }
        g_assert_cmpuint(covered, ==, strlen(sql));
        g_assert_cmpstr(found->str, ==, expected);
}

static void check_tokens(const char *sql, const char *expected) {
        check_tokens_of(SQL_DIALECT_SQLITE, sql, expected);
}

static void test_tokens(void) {
        check_tokens("SELECT a, 'b''c' FROM \"t\";", "K_no_s_K_Q;");
        check_tokens("select[x]`y`--z\n/*w*/.5e-3", "KQQc_cN");
        check_tokens("x'00' X'' x'0", "b_b_b*");
        check_tokens("0x1F 1.5E+10 1e 12ab .5", "N_N_!_!_N");
        check_tokens("?1 ? :a @b $c::d(e) #", "?_?_?_?_?_!");
        check_tokens("a->>'$.b'->c||d<=e<>f!=g", "nosonononon" "on");
        check_tokens("1 \\g x;y\n2", "N_\\_N");
        check_tokens("'\\' \"\\\"", "s_Q");
        check_tokens("'open", "s*");
        check_tokens("\"open", "Q*");
        check_tokens("[open", "Q*");
        check_tokens("/* open *", "c*");
        check_tokens("/*/", "c*");
        check_tokens("-- open", "c");
        check_tokens("\357\273\277SELECT \303\244", "_K_n");
        check_tokens("!\001", "!!");
}

static void check_extent_of(SqlDialect dialect, const char *sql, SqlExtent expected, const char *statement) {
        size_t size = 0;
        SqlExtent extent = sql_scan_statement(dialect, sql, strlen(sql), &size);

        g_assert_cmpint(extent, ==, expected);
        g_assert_cmpuint(size, ==, strlen(statement));
        g_assert_true(g_str_has_prefix(sql, statement));
}

static void check_extent(const char *sql, SqlExtent expected, const char *statement) {
        check_extent_of(SQL_DIALECT_SQLITE, sql, expected, statement);
}

static void test_extents(void) {
        const char *trigger = "CREATE TEMP TRIGGER t AFTER INSERT ON x BEGIN SELECT ';'; SELECT 1; END;";

        check_extent("", SQL_EXTENT_EMPTY, "");
        check_extent(" -- x;\n/* ; */\t", SQL_EXTENT_EMPTY, " -- x;\n/* ; */\t");
        check_extent("/* x", SQL_EXTENT_INCOMPLETE, "/* x");
        check_extent("SELECT 1; SELECT 2;", SQL_EXTENT_COMPLETE, "SELECT 1;");
        check_extent("; SELECT 2;", SQL_EXTENT_COMPLETE, ";");
        check_extent("SELECT ';' AS \";\"", SQL_EXTENT_INCOMPLETE, "SELECT ';' AS \";\"");
        check_extent("SELECT 1 \\g x", SQL_EXTENT_COMMAND, "SELECT 1 ");
        check_extent("-- x\n.tables", SQL_EXTENT_COMMAND, "-- x\n");
        check_extent("SELECT 1\n.tables", SQL_EXTENT_INCOMPLETE, "SELECT 1\n.tables");
        check_extent("SELECT '\\g';", SQL_EXTENT_COMPLETE, "SELECT '\\g';");
        check_extent(trigger, SQL_EXTENT_COMPLETE, trigger);
        check_extent("EXPLAIN QUERY PLAN CREATE TRIGGER t BEGIN SELECT 1; END; x", SQL_EXTENT_COMPLETE,
                     "EXPLAIN QUERY PLAN CREATE TRIGGER t BEGIN SELECT 1; END;");
}

/* True if the last statement of the text is complete. */
static bool is_complete(const char *sql) {
        size_t done = 0, size = 0, all = strlen(sql);
        bool any = false;
        SqlExtent extent;

        while ((extent = sql_scan_statement(SQL_DIALECT_SQLITE, sql + done, all - done, &size)) == SQL_EXTENT_COMPLETE) {
                done += size;
                any = true;
        }
        return any && extent == SQL_EXTENT_EMPTY;
}

static const char *const pieces[] = {
        "SELECT", "create", "TRIGGER", "temp", "TEMPORARY", "BEGIN", "END", "EXPLAIN", "query", "plan", "a", "1", "x'",
        "\"", "'", "`", "[", "]", ";", ";", " ", " ", "\n", "--", "/*", "*/", "/", "-", "*", "(", ")", "\303\244",
};

static char *random_text(GRand *random) {
        GString *text = g_string_new(NULL);

        for (int n = g_rand_int_range(random, 0, 24); n > 0; n--) {
                g_string_append(text, pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(pieces))]);
                if (g_rand_boolean(random))
                        g_string_append_c(text, ' ');
        }
        return g_string_free(text, false);
}

/* Random words, quotes and comments: as sqlite3_complete() has it. */
static void test_complete(void) {
        g_autoptr(GRand) random = g_rand_new_with_seed(5);
        unsigned n_complete = 0;

        for (int i = 0; i < 200000; i++) {
                g_autofree char *text = random_text(random);

                if (is_complete(text) != (sqlite3_complete(text) != 0))
                        g_error("differs from sqlite3_complete(): %s", text);
                n_complete += is_complete(text);
        }
        g_assert_cmpuint(n_complete, >, 1000); /* not all of them were nothing */
}

static const char *const postgresql_pieces[] = {
        "CREATE", "BEGIN ATOMIC", "begin", "ATOMIC", "END", "END;", "a", "E'", "e'", "'", "'", "''", "\\'", "\\\\", "\"",
        "$$", "$$", "$a$", "$1", ";", ";", " ", "\n", "\n", "\n", "--", "/*", "/*", "*/", "*/", "(", ")", "::", "?", "??",
        "@", "<@",
};

static char *random_postgresql_text(GRand *random) {
        GString *text = g_string_new(NULL);

        for (int n = g_rand_int_range(random, 0, 24); n > 0; n--)
                g_string_append(text, postgresql_pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(postgresql_pieces))]);
        return g_string_free(text, false);
}

/* Line by line and all at once come to the same. */
static void check_growing(SqlDialect dialect, char *random_of(GRand *)) {
        g_autoptr(GRand) random = g_rand_new_with_seed(6);

        for (int i = 0; i < 50000; i++) {
                g_autofree char *text = random_of(random);
                size_t expected_size, size = 0, all = strlen(text);
                SqlExtent expected = sql_scan_statement(dialect, text, all, &expected_size), extent = SQL_EXTENT_EMPTY;
                SqlSplit split = { .dialect = dialect };

                for (size_t end = 0; end < all && extent != SQL_EXTENT_COMPLETE && extent != SQL_EXTENT_COMMAND;) {
                        const char *newline = strchr(text + end, '\n');

                        end = newline ? (size_t) (newline + 1 - text) : all;
                        extent = sql_split(&split, text, end, &size);
                }
                g_assert_cmpint(extent, ==, expected);
                g_assert_cmpuint(size, ==, expected_size);
        }
}

static void test_growing(void) {
        check_growing(SQL_DIALECT_SQLITE, random_text);
        check_growing(SQL_DIALECT_POSTGRESQL, random_postgresql_text);
}

static void check_postgresql(const char *sql, const char *expected) {
        check_tokens_of(SQL_DIALECT_POSTGRESQL, sql, expected);
}

static void test_postgresql_tokens(void) {
        check_postgresql("SELECT 1::text", "K_Non");
        check_postgresql(":a @b $c $1 ?2 ?", "?_?_?_?_?_?");
        check_postgresql("a ?? 'b' ??| @?? <@b @@c @ d", "n_o_s_oo_oo_oon_oon_o_n");
        check_postgresql("$$ ; $a$ $$", "s");
        check_postgresql("$a$ $$ ; $a$", "s");
        check_postgresql("$a$ $A$", "s*");
        check_postgresql("a$$ $$b", "n_s*");
        check_postgresql("'it\\' 'c'", "s_s");
        check_postgresql("E'it\\'s;' e'\\\\' ae'\\'", "s_s_ns");
        check_postgresql("E'a' -- x\n  '\\';'", "s");
        check_postgresql("E'a' '\\'", "s_s");
        check_postgresql("U&'\\' B'1' \"a\"\"b\"", "nos_ns_Q");
        check_postgresql("/* a /* b */ ; */c", "cn");
        check_postgresql("/* a /* b */ ;", "c*");
        check_postgresql("-- a\rb", "c_n");
        check_postgresql("a[1] `", "n!N!_!");
}

static void check_postgresql_extent(const char *sql, const char *statement) {
        check_extent_of(SQL_DIALECT_POSTGRESQL, sql, SQL_EXTENT_COMPLETE, statement);
}

static void test_postgresql_extents(void) {
        const char *body = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC DELETE FROM a; SELECT CASE WHEN true THEN 1 END; "
                           "SELECT b.end; SELECT 2; END;";

        check_postgresql_extent("CREATE FUNCTION f() RETURNS int AS $$ SELECT 1; DELETE FROM t; $$ LANGUAGE sql; SELECT 2;",
                                "CREATE FUNCTION f() RETURNS int AS $$ SELECT 1; DELETE FROM t; $$ LANGUAGE sql;");
        check_postgresql_extent("SELECT E'it\\'s;'; x;", "SELECT E'it\\'s;';");
        check_postgresql_extent("SELECT 'it\\'; x';", "SELECT 'it\\';");
        check_postgresql_extent("SELECT /* /* */ ; */ 1; x;", "SELECT /* /* */ ; */ 1;");
        check_postgresql_extent(body, body);
        check_postgresql_extent("CREATE FUNCTION f() BEGIN ATOMIC END; x", "CREATE FUNCTION f() BEGIN ATOMIC END;");
        check_postgresql_extent("CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); x;",
                                "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);");
        check_postgresql_extent("CREATE TRIGGER t AFTER INSERT ON x EXECUTE FUNCTION f(); SELECT 1;",
                                "CREATE TRIGGER t AFTER INSERT ON x EXECUTE FUNCTION f();");
        check_postgresql_extent("BEGIN; SELECT 1;", "BEGIN;");
        check_extent_of(SQL_DIALECT_POSTGRESQL, "SELECT $$ ;\n\\g .x", SQL_EXTENT_INCOMPLETE, "SELECT $$ ;\n\\g .x");
        check_extent_of(SQL_DIALECT_POSTGRESQL, "SELECT E'a'\n", SQL_EXTENT_INCOMPLETE, "SELECT E'a'\n");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/scan/keywords", test_keywords);
        g_test_add_func("/scan/tokens", test_tokens);
        g_test_add_func("/scan/extents", test_extents);
        g_test_add_func("/scan/complete", test_complete);
        g_test_add_func("/scan/growing", test_growing);
        g_test_add_func("/scan/postgresql-tokens", test_postgresql_tokens);
        g_test_add_func("/scan/postgresql-extents", test_postgresql_extents);
        return g_test_run();
}
