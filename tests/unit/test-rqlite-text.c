/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine for rqlite: SQL and JSON in both directions, URLs, and plans of windows. No server. */
#include <errno.h>
#include <glib.h>
#include <sqlite3.h>
#include <string.h>

#include "daemon/worker/rqlite/node-list.h"
#include "daemon/worker/rqlite/response.h"
#include "daemon/worker/rqlite/rqlite-engine.h"
#include "daemon/worker/rqlite/server-error.h"
#include "daemon/worker/rqlite/sql-tokens.h"
#include "daemon/worker/rqlite/typed-rows.h"
#include "daemon/worker/rqlite/window-plan.h"

/* ---- text ---- */

static void test_utf8(void) {
        static const struct {
                const char *bytes;
                bool is;
        } cases[] = {
                {"", true},
                {"plain", true},
                {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", true},
                {"\xef\xbf\xbf", true},
                {"\x80", false},
                {"\xc3", false},
                {"\xc0\xaf", false},
                {"\xe0\x80\xaf", false},
                {"\xed\xa0\x80", false},
                {"\xf4\x90\x80\x80", false},
                {"\xf5\x80\x80\x80", false},
                {"\xff", false},
                {"a\xe2\x82", false},
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                g_assert_true(text_is_utf8(cases[i].bytes, strlen(cases[i].bytes)) == cases[i].is);
}

static void test_json_text(void) {
        static const double numbers[] = { 1, -0.0, 0.1, 1e300, 5e-324, 123456789012345680, -2.5e-7 };
        TextBuffer t = { .size_max = 200 };

        text_buffer_add_json_string(&t, "a\"\\\n\0\x1f\x7f\xc3\xa9", 9);
        g_assert_cmpstr(t.bytes, ==, "\"a\\\"\\\\\\u000a\\u0000\\u001f\x7f\xc3\xa9\"");
        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
                text_buffer_cut(&t, 0);
                text_buffer_add_json_double(&t, numbers[i]);
                g_assert_nonnull(strpbrk(t.bytes, ".e"));
                g_assert_true(g_ascii_strtod(t.bytes, NULL) == numbers[i]);
        }
        text_buffer_cut(&t, 0);
        text_buffer_add_sql_string(&t, "it's", 4);
        text_buffer_add_sql_name(&t, "a\"b");
        text_buffer_add_hex(&t, (const uint8_t *) "\x00\xab", 2);
        g_assert_cmpstr(t.bytes, ==, "'it''s'\"a\"\"b\"00AB");
        for (int i = 0; i < 300; i++)
                text_buffer_puts(&t, "x");
        g_assert_cmpint(t.state, ==, TEXT_TOO_LARGE);
        g_assert_cmpuint(t.size, ==, 200);
        text_buffer_done(&t);
}

/* The kinds of the tokens, and the tokens, with a bar after each. */
static char *tokens_of(const char *sql) {
        const char *end = sql + strlen(sql);
        GString *text = g_string_new(NULL);

        for (SqlToken t = sql_token(sql, end); t.kind != SQL_TOKEN_END; t = sql_token(t.text + t.size, end))
                g_string_append_printf(text, "%c%.*s|", " swpo"[t.kind], (int) t.size, t.text);
        return g_string_free(text, FALSE);
}

static void test_tokens(void) {
        static const char *const cases[][2] = {
                { "a ?1", "wa|s |p?1|" },
                { "'?''?'?", "o'?''?'|p?|" },
                { "\"?\"[?]`?`?", "o\"?\"|o[?]|o`?`|p?|" },
                { "--?\n?/*?*/?/*?", "s--?\n|p?|s/*?*/|p?|s/*?|" },
                { "x'3f'?x?", "ox'3f'|p?|wx|p?|" },
                { "1e+5-0xe+?.5?", "o1e+5|o-|o0xe|o+|p?|o.5|p?|" },
                { "a$b:c@d,$e::f(g)?", "wa$b|p:c|p@d|o,|p$e::f(g)|p?|" },
                { "->>?<>?", "o-|o>|o>|p?|o<|o>|p?|" },
                { "'not closed ?", "o'not closed ?|" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                g_autofree char *got = tokens_of(cases[i][0]);

                g_assert_cmpstr(got, ==, cases[i][1]);
        }
}

static void test_verbs(void) {
        static const struct {
                const char *sql;
                SqlVerb verb;
        } cases[] = {
                { "SELECT 1", SQL_VERB_SELECT },
                { " /* x */ values (1)", SQL_VERB_SELECT },
                { "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", SQL_VERB_INSERT },
                { "WITH a AS (DELETE) SELECT 1", SQL_VERB_SELECT },
                { "replace INTO t VALUES(1)", SQL_VERB_INSERT },
                { "UPDATE t SET a = (SELECT 1)", SQL_VERB_CHANGE },
                { "EXPLAIN SELECT 1", SQL_VERB_OTHER },
                { "PRAGMA table_info(x)", SQL_VERB_OTHER },
                { "CREATE TABLE t AS SELECT 1", SQL_VERB_OTHER },
                { ";; DELETE FROM t", SQL_VERB_CHANGE },
                { "", SQL_VERB_OTHER },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                g_assert_cmpint(sql_verb(cases[i].sql, strlen(cases[i].sql)), ==, cases[i].verb);
}

static void test_compounds(void) {
        static const struct {
                const char *sql;
                int offset; /* -1: it is none */
        } cases[] = {
                { "SELECT 1", -1 },
                { "SELECT 1 UNION SELECT 2", 0 },
                { "/**/ VALUES (1) EXCEPT SELECT 2", 5 },
                { "WITH a AS (SELECT 1 UNION SELECT 2) SELECT * FROM a", -1 },
                { "WITH a AS (SELECT 1) SELECT * FROM a INTERSECT VALUES (1)", 21 },
                { "SELECT (SELECT 1 UNION SELECT 2), 'UNION'", -1 },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                size_t offset;
                bool is = sql_compound(cases[i].sql, strlen(cases[i].sql), &offset);

                g_assert_cmpint(is ? (int) offset : -1, ==, cases[i].offset);
        }
}

/* ---- answers ---- */

/* The reports of a parser to its handler. */
typedef struct Told {
        GString *text;
        unsigned stop_after; /* rows; 0: never */
} Told;

static bool on_row(void *userdata, unsigned item, const JsonValue *values, size_t n) {
        Told *told = userdata;

        g_string_append_printf(told->text, "%u(", item);
        for (size_t i = 0; i < n; i++) {
                g_string_append_c(told->text, "n10#sb"[values[i].kind]);
                g_string_append_len(told->text, values[i].bytes, (gssize) values[i].size);
                g_assert_cmpint(values[i].bytes[values[i].size], ==, 0);
                g_string_append_c(told->text, i + 1 < n ? ',' : ')');
        }
        return told->stop_after == 0 || --told->stop_after > 0;
}

static bool on_item(void *userdata, const ResponseItem *item) {
        Told *told = userdata;

        g_string_append_printf(told->text, "[%u%s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %s]", item->index,
                               item->has_columns ? "c" : "", item->n_changes, item->last_rowid, item->error ?: "");
        return true;
}

/* In pieces of `piece` bytes. NULL: it is no answer. */
static char *parse(const char *json, size_t piece, unsigned stop_after) {
        Told told = { .text = g_string_new(NULL), .stop_after = stop_after };
        const ResponseHandler handler = { .row = on_row, .item = on_item, .userdata = &told };
        size_t size = strlen(json);
        ResponseParser *p;
        bool ok = true;

        g_assert_cmpint(response_parser_new(&handler, 1000, &p), ==, 0);
        for (size_t i = 0; ok && i < size; i += piece)
                ok = response_parser_feed(p, json + i, MIN(piece, size - i));
        ok = ok && response_parser_end(p);
        if (response_parser_stopped(p))
                g_string_append(told.text, "stopped");
        if (response_parser_error(p))
                g_string_append_printf(told.text, "error %s", response_parser_error(p));
        if (response_parser_raft_index(p))
                g_string_append_printf(told.text, "index %u", (unsigned) response_parser_raft_index(p));
        ok = ok || response_parser_stopped(p);
        (void) response_parser_free(p);
        return g_string_free(told.text, !ok);
}

static void test_answers(void) {
        static const char *const cases[][2] = {
                {"{\"results\":[]}", ""},
                {"{\"results\":[{}]}", "[0 0 0 ]"},
                {"{\"results\":[{\"last_insert_id\":9223372036854775807,\"rows_affected\":2}],\"raft_index\":7}",
                 "[0 2 9223372036854775807 ]index 7"},
                {"{\"results\":[{\"columns\":[\"a\"],\"types\":[\"\"],\"values\":[[1],[9007199254740993],[-0],[1e+21]]}]}",
                 "0(#1)0(#9007199254740993)0(#-0)0(#1e+21)[0c 0 0 ]"},
                {"{\"results\":[{\"columns\":[\"a\",\"b\"],\"values\":[[null,true],[[1,2,255],\"\\u0000\\ud83d\\ude00\\\"\"]"
                 "]},"
                 "{\"error\":\"bad\"}]}",
                 "0(n,1)0(b\x01\x02\xff,s"},
                {"{\"time\":1.5,\"more\":{\"results\":[1,{}]},\"results\":[{\"x\":[[{}]],\"columns\":[],\"time\":0.1}],"
                 "\"error\":\"top\"}",
                 "[0c 0 0 ]error top"},
                {"{\"results\":null,\"error\":\"not leader\"}", "error not leader"},
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                for (size_t piece = 1; piece < 40; piece += 19) {
                        g_autofree char *got = parse(cases[i][0], piece, 0);

                        g_assert_nonnull(got);
                        if (i == 4) /* it has a NUL */
                                g_assert_true(g_str_has_prefix(got, cases[i][1]));
                        else
                                g_assert_cmpstr(got, ==, cases[i][1]);
                }
}

static void test_bad_answers(void) {
        static const char *const cases[] = {
                "",
                "{",
                "[]",
                "1",
                "null",
                "\"x\"",
                "{\"results\":[}",
                "{\"results\":[]}x",
                "{\"results\":{}}",
                "{\"results\":[1]}",
                "{\"results\":[[]]}",
                "{\"results\":[{\"values\":[1]}]}",
                "{\"results\":[{\"values\":[{}]}]}",
                "{\"results\":\"x\"}",
                "{\"results\":[{\"values\":[[{}]]}]}",
                "{\"results\":[{\"values\":[[[[1]]]]}]}",
                "{\"results\":[{\"values\":[[[256]]]}]}",
                "{\"results\":[{\"values\":[[[-1]]]}]}",
                "{\"results\":[{\"values\":[[[1.5]]]}]}",
                "{\"results\":[{\"values\":[[[\"x\"]]]}]}",
                "{\"results\":[{\"rows_affected\":\"x\"}]}",
                "{\"results\":[{\"rows_affected\":1.5}]}",
                "{\"results\":[{\"last_insert_id\":9223372036854775808}]}",
                "{\"results\":[{\"values\":[[NaN]]}]}",
                "{\"results\":[{\"values\":[[01]]}]}",
                "{\"results\":[{\"values\":[[\"\xff\"]]}]}",
                "{\"results\":[{\"error\":1}]}",
                "{\"results\":[{\"columns\":1}]}",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                g_autofree char *got = parse(cases[i], 1000, 0);

                if (got)
                        g_error("%s is taken for an answer: %s", cases[i], got);
        }
}

static void test_stopped_and_large(void) {
        g_autofree char *got = parse("{\"results\":[{\"values\":[[1],[2],[3]]}]}", 5, 2), *large = NULL;
        GString *text = g_string_new("{\"results\":[{\"values\":[[\"");

        g_assert_cmpstr(got, ==, "0(#1)0(#2)stopped");
        for (int i = 0; i < 1001; i++)
                g_string_append_c(text, 'x');
        g_string_append(text, "\"]]}]}");
        large = parse(text->str, 100, 0);
        g_assert_null(large);
        g_string_free(text, TRUE);
}

static void test_numbers_in_json(void) {
        static const char status[] =
                "{\"a\":{\"store\":{\"db_applied_index\":1}},\"store\":{\"x\":[{\"db_applied_index\":2}],"
                "\"db_applied_index\":33,\"raft\":{\"db_applied_index\":4}}}";
        uint64_t n = 0;

        g_assert_true(response_find_number(status, strlen(status), "store.db_applied_index", &n));
        g_assert_cmpuint(n, ==, 33);
        g_assert_true(response_find_number("44", 2, "store.db_applied_index", &n));
        g_assert_cmpuint(n, ==, 44);
        g_assert_false(response_find_number("{}", 2, "store.db_applied_index", &n));
        g_assert_false(response_find_number("-1", 2, "store.db_applied_index", &n));
        g_assert_false(response_find_number("{\"store\":1}", 11, "store.db_applied_index", &n));
        g_assert_false(response_find_number("x", 1, "store.db_applied_index", &n));
}

static void test_typed_values(void) {
        static const struct {
                JsonValue json;
                ValueType type;
        } good[] = {
                { { JSON_STRING, "i-5", 3 }, VALUE_INTEGER }, { { JSON_STRING, "t", 1 }, VALUE_TEXT },
                { { JSON_BYTES, "tab", 3 }, VALUE_TEXT },     { { JSON_STRING, "b00FF", 5 }, VALUE_BLOB },
                { { JSON_STRING, "f+", 2 }, VALUE_REAL },     { { JSON_NUMBER, "1", 1 }, VALUE_REAL },
                { { JSON_NULL, "", 0 }, VALUE_NULL },
        };
        static const JsonValue bad[] = {
                { JSON_STRING, "", 0 },    { JSON_STRING, "x", 1 },   { JSON_STRING, "i", 1 },  { JSON_STRING, "i5x", 3 },
                { JSON_STRING, "b0", 2 },  { JSON_STRING, "bxx", 3 }, { JSON_STRING, "f", 1 },  { JSON_STRING, "f++", 3 },
                { JSON_TRUE, "", 0 },      { JSON_STRING, "i9223372036854775808", 20 },
        };
        TypedRows rows = {};
        PageValue values[G_N_ELEMENTS(good)];

        for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
                g_assert_true(typed_rows_add_typed(&rows, &good[i].json));
        g_assert_true(typed_rows_take(&rows, G_N_ELEMENTS(good)));
        typed_rows_values(&rows, G_N_ELEMENTS(good), values);
        for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
                g_assert_cmpint(values[i].type, ==, good[i].type);
        g_assert_cmpuint(values[3].size, ==, 2);
        g_assert_cmpint(values[3].bytes[1], ==, 0xff);
        g_assert_false(typed_rows_take(&rows, G_N_ELEMENTS(good)));
        for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
                g_assert_false(typed_rows_add_typed(&rows, &bad[i]));
        typed_rows_done(&rows);
}

/* ---- nodes ---- */

static void test_nodes(void) {
        unsigned order[NODE_LIST_N_MAX];
        SqlError error = SQL_ERROR_INIT;
        NodeList list;

        g_assert_true(node_list_parse(" http://a:4001\thttps://me@b/  http://[::1]:4003/prefix/ ", &list, &error));
        g_assert_cmpuint(list.n, ==, 3);
        g_assert_cmpstr(list.nodes[0].url, ==, "http://a:4001");
        g_assert_cmpstr(list.nodes[1].url, ==, "https://b:443");
        g_assert_cmpstr(list.nodes[1].user, ==, "me");
        g_assert_cmpstr(list.nodes[2].url, ==, "http://[::1]:4003/prefix");
        g_assert_cmpint(node_list_find(&list, "http://A:4001/db/query?redirect"), ==, 0);
        g_assert_cmpint(node_list_find(&list, "https://b:443/db/query"), ==, 1);
        g_assert_cmpint(node_list_find(&list, "http://b:443/db/query"), ==, -1);
        g_assert_cmpint(node_list_find(&list, "http://evil:4001/"), ==, -1);
        g_assert_cmpint(node_list_find(&list, "http://a:4001@evil/"), ==, -1);
        g_assert_cmpint(node_list_find(&list, "file:///etc/passwd"), ==, -1);
        list.nodes[2].down_usec = 100;
        node_list_order(&list, 2, 50, order);
        g_assert_true(order[0] == 0 && order[1] == 1 && order[2] == 2);
        node_list_order(&list, 2, 100, order);
        g_assert_true(order[0] == 2 && order[1] == 0 && order[2] == 1);
        node_list_done(&list);
}

static void test_bad_nodes(void) {
        static const struct {
                const char *connection;
                ErrorNumber error;
        } cases[] = {
                {"", ERROR_CANNOT_OPEN},
                {"   ", ERROR_CANNOT_OPEN},
                {"a:4001", ERROR_CANNOT_OPEN},
                {"ftp://a", ERROR_CANNOT_OPEN},
                {"http://", ERROR_CANNOT_OPEN},
                {"http://a?x=1", ERROR_CANNOT_OPEN},
                {"http://a#x", ERROR_CANNOT_OPEN},
                {"http://a:99999", ERROR_CANNOT_OPEN},
                {"http://u:hidden@a", ERROR_LOGIN_FAILED},
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                SqlError error = SQL_ERROR_INIT;
                NodeList list;

                g_assert_false(node_list_parse(cases[i].connection, &list, &error));
                g_assert_cmpint(error.error, ==, cases[i].error);
                g_assert_null(strstr(error.message, "hidden"));
                sql_error_done(&error);
        }
}

/* ---- windows ---- */

static const Setup setup = {
        .path = "",
        .sql_size_max = 10000,
        .expression_depth_max = 100,
        .compound_selects_max = 10,
        .vdbe_ops_max = 100000,
        .variables_max = 100,
        .writes = true,
        .foreign_keys = true,
};

static ShadowSchema *make_shadow(void) {
        static const char *const objects[][2] = {
                { "t", "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)" },
                { "u", "CREATE TABLE u(_rowid_, x)" },
                { "w", "CREATE TABLE w(k PRIMARY KEY, x) WITHOUT ROWID" },
                { "v", "CREATE VIEW v AS SELECT * FROM t" },
                { "s", "CREATE TABLE s(a, b)" },
                { "i", "CREATE INDEX i ON s(a)" },
                { "child", "CREATE TABLE child(of REFERENCES not_there(id), more REFERENCES t(a))" },
                { "gone", "CREATE VIRTUAL TABLE gone USING no_such_module(x)" },
        };
        SqlError error = SQL_ERROR_INIT;
        ShadowSchema *shadow;

        g_assert_true(shadow_schema_new(&setup, 1, &shadow, &error));
        for (size_t i = 0; i < G_N_ELEMENTS(objects); i++)
                g_assert_true(shadow_schema_add(shadow, objects[i][0], objects[i][1], &error));
        return shadow;
}

static void test_window_plans(void) {
        static const struct {
                const char *sql, *table, *key;
        } cases[] = {
                { "SELECT * FROM t", "t", "_rowid_" },
                { "SELECT a, upper(b) FROM T AS x WHERE x.b LIKE 'a%' OR id BETWEEN 1 AND 5", "t", "_rowid_" },
                { "SELECT a FROM t WHERE id > 100", "t", "_rowid_" },
                { "SELECT a FROM t ORDER BY id", "t", "_rowid_" },
                { "SELECT CASE WHEN a THEN b END FROM t WHERE a IS NOT NULL", "t", "_rowid_" },
                { "SELECT * FROM (SELECT a, b FROM t WHERE a > 3) WHERE b < 4", "t", "_rowid_" },
                { "WITH c AS (SELECT a FROM t) SELECT * FROM c", "t", "_rowid_" },
                { "SELECT x FROM u", "u", "rowid" },
                { "SELECT b FROM s", "s", "_rowid_" },
                { "SELECT a FROM s", NULL, NULL },  /* reads only the index */
                { "SELECT x FROM w", NULL, NULL },
                { "SELECT * FROM v", NULL, NULL },  /* the view names main.t */
                { "SELECT * FROM main.t", NULL, NULL },
                { "SELECT rowid FROM s", NULL, NULL },
                { "SELECT * FROM t LIMIT 5", NULL, NULL },
                { "SELECT * FROM t LIMIT -1 OFFSET 3", NULL, NULL },
                { "SELECT * FROM t ORDER BY id DESC", NULL, NULL },
                { "SELECT * FROM t ORDER BY a", NULL, NULL },
                { "SELECT DISTINCT a FROM t", NULL, NULL },
                { "SELECT count(*) FROM t", NULL, NULL },
                { "SELECT max(a) FROM t", NULL, NULL },
                { "SELECT a FROM t GROUP BY a", NULL, NULL },
                { "SELECT row_number() OVER () FROM t", NULL, NULL },
                { "SELECT * FROM t, u", NULL, NULL },
                { "SELECT a FROM t UNION ALL SELECT x FROM u", NULL, NULL },
                { "SELECT (SELECT count(*) FROM u) FROM t", NULL, NULL },
                { "SELECT * FROM t WHERE a IN (SELECT x FROM u)", NULL, NULL },
                { "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM t AS o WHERE o.id > t.id)", NULL, NULL },
                { "SELECT * FROM t WHERE id = 5", NULL, NULL },
                { "SELECT * FROM s WHERE a = 5", NULL, NULL },
                { "SELECT 1", NULL, NULL },
                { "VALUES (1), (2)", NULL, NULL },
                { "WITH t AS (SELECT 1) SELECT * FROM t", NULL, NULL },
                { "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 5) SELECT * FROM c", NULL, NULL },
        };
        ShadowSchema *shadow = make_shadow();

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                const StatementText text = { .sql = cases[i].sql, .sql_size = strlen(cases[i].sql) };
                WindowPlan plan;

                window_plan_make(shadow, &text, &plan);
                if (g_strcmp0(plan.table, cases[i].table) != 0)
                        g_error("%s: windows of %s", cases[i].sql, plan.table ?: "nothing");
                if (plan.table)
                        g_assert_cmpstr(plan.key, ==, cases[i].key);
                window_plan_done(&plan);
        }
        (void) shadow_schema_unref(shadow);
}

static void test_shadow(void) {
        ShadowSchema *shadow = make_shadow();
        SqlError error = SQL_ERROR_INIT;
        CompiledStatement compiled;

        g_assert_true(shadow_schema_is_primary_key(shadow, "t.id"));
        g_assert_false(shadow_schema_is_primary_key(shadow, "t.a"));
        g_assert_true(shadow_schema_is_primary_key(shadow, "w.k"));
        g_assert_false(shadow_schema_is_primary_key(shadow, "w.k, w.x"));
        g_assert_false(shadow_schema_is_primary_key(shadow, "nothing"));

        /* a foreign key without a parent is the server's matter; other errors are not hidden */
        g_assert_true(shadow_schema_compile(shadow, "INSERT INTO child VALUES (1, 2)", 31, &compiled, &error));
        g_assert_cmpint(error.error, ==, ERROR_NONE);
        (void) sqlite3_finalize(compiled.stmt);
        g_assert_false(shadow_schema_compile(shadow, "INSERT INTO child(x) VALUES (1)", 31, &compiled, &error));
        g_assert_nonnull(strstr(error.message, "no column named x"));
        sql_error_done(&error);
        g_assert_false(shadow_schema_compile(shadow, "SELECT * FROM gone", 18, &compiled, &error));
        g_assert_cmpint(error.error, ==, ERROR_MISSING_MODULE);
        sql_error_done(&error);
        g_assert_false(shadow_schema_compile(shadow, "SELECT * FROM other", 19, &compiled, &error));
        g_assert_cmpint(error.error, ==, ERROR_SQL);
        sql_error_done(&error);
        (void) shadow_schema_unref(shadow);
}

/* The server may be hostile. */
static void test_bad_schema(void) {
        static const char *const bad[] = {
                "CREATE TABLE x AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i FROM c",
                "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c",
                "CREATE TABLE x(a); CREATE TABLE y(a)",
                "ATTACH '/etc/passwd' AS x",
                "PRAGMA writable_schema = ON",
                "CREATE TABLE x(",
                "",
        };
        ShadowSchema *shadow = make_shadow();
        SqlError error = SQL_ERROR_INIT;

        for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
                size_t n = shadow->missing.n;
                g_autofree char *name = g_strdup_printf("bad%u", (unsigned) i);

                g_assert_true(shadow_schema_add(shadow, name, bad[i], &error));
                g_assert_cmpuint(shadow->missing.n, ==, n + 1);
        }
        (void) shadow_schema_unref(shadow);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rqlite/text/utf8", test_utf8);
        g_test_add_func("/rqlite/text/json-text", test_json_text);
        g_test_add_func("/rqlite/text/tokens", test_tokens);
        g_test_add_func("/rqlite/text/verbs", test_verbs);
        g_test_add_func("/rqlite/text/compounds", test_compounds);
        g_test_add_func("/rqlite/text/answers", test_answers);
        g_test_add_func("/rqlite/text/bad-answers", test_bad_answers);
        g_test_add_func("/rqlite/text/stopped-and-large", test_stopped_and_large);
        g_test_add_func("/rqlite/text/numbers-in-json", test_numbers_in_json);
        g_test_add_func("/rqlite/text/typed-values", test_typed_values);
        g_test_add_func("/rqlite/text/nodes", test_nodes);
        g_test_add_func("/rqlite/text/bad-nodes", test_bad_nodes);
        g_test_add_func("/rqlite/text/window-plans", test_window_plans);
        g_test_add_func("/rqlite/text/shadow", test_shadow);
        g_test_add_func("/rqlite/text/bad-schema", test_bad_schema);
        return g_test_run();
}
