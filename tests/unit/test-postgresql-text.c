/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pure parts of the engine for PostgreSQL: placeholders, commands, COPY, values, snapshots. No server. */
#include <errno.h>
#include <math.h>

#include "daemon/worker/postgresql/pg-copy.h"
#include "daemon/worker/postgresql/pg-number.h"
#include "daemon/worker/postgresql/pg-snapshot.h"
#include "daemon/worker/postgresql/pg-text.h"
#include "daemon/worker/postgresql/pg-value.h"
#include "tests/unit/test.h"

/* ---- SQL ---- */

static void test_placeholders(void) {
        static const struct {
                const char *from, *to;
                unsigned n_names, n_numbers;
        } vectors[] = {
                { "SELECT ?", "SELECT $1", 1, 1 },
                { "SELECT ?,?", "SELECT $1,$2", 2, 2 },
                { "SELECT a=?+?-?", "SELECT a=$1+$2-$3", 3, 3 },
                { "SELECT ?2, ?", "SELECT $1, $2", 3, 2 },
                { "SELECT ?3, ?1, ?3", "SELECT $1, $2, $1", 3, 2 },
                { "SELECT $2, $1", "SELECT $1, $2", 2, 2 },
                { "SELECT :a, @b, $c, :a, :_ä1", "SELECT $1, $2, $3, $1, $4", 4, 4 },
                { "SELECT :a, ?, :b", "SELECT $1, $2, $3", 3, 3 },
                { "SELECT x::int, :x::int", "SELECT x::int, $1::int", 1, 1 },
                { "SELECT '?', \"?\", 'it''s ?', \"a\"\"?\" -- ?\n, ?",
                  "SELECT '?', \"?\", 'it''s ?', \"a\"\"?\" -- ?\n, $1", 1, 1 },
                { "SELECT /* ? /* ? */ ? */ ?", "SELECT /* ? /* ? */ ? */ $1", 1, 1 },
                { "SELECT '\\', ?", "SELECT '\\', $1", 1, 1 },
                { "SELECT E'\\'?', ?", "SELECT E'\\'?', $1", 1, 1 },
                { "SELECT e'a' \n 'b\\'?', ?", "SELECT e'a' \n 'b\\'?', $1", 1, 1 },
                { "SELECT e'a' -- \n 'b\\'?', ?", "SELECT e'a' -- \n 'b\\'?', $1", 1, 1 },
                { "SELECT e'a', 'b\\', ?", "SELECT e'a', 'b\\', $1", 1, 1 },
                { "SELECT U&'\\0041?', type'?', ?", "SELECT U&'\\0041?', type'?', $1", 1, 1 },
                { "SELECT $$?$$, $a$ $$ ? $a$, ?", "SELECT $$?$$, $a$ $$ ? $a$, $1", 1, 1 },
                { "SELECT a$b$c, ?", "SELECT a$b$c, $1", 1, 1 },
                { "SELECT j ?? 'a', j ??| x, j @?? p, ?", "SELECT j ? 'a', j ?| x, j @? p, $1", 1, 1 },
                { "SELECT a @> b, a <@b, a @@ c, @ -1, x=@y", "SELECT a @> b, a <@b, a @@ c, @ -1, x=$1", 1, 1 },
                { "SELECT a[1:2], a[1 : :n]", "SELECT a[1:2], a[1 : $1]", 1, 1 },
                { "SELECT f(x := 1, y => ?)", "SELECT f(x := 1, y => $1)", 1, 1 },
                { "SELECT 'unterminated ?", "SELECT 'unterminated ?", 0, 0 },
                { "SELECT $x$ unterminated ?", "SELECT $x$ unterminated ?", 0, 0 },
                { "SELECT /* unterminated ?", "SELECT /* unterminated ?", 0, 0 },
                { "SELECT \"unterminated ?", "SELECT \"unterminated ?", 0, 0 },
                { "SELECT E'\\", "SELECT E'\\", 0, 0 },
                { "SELECT 1; -- ?", "SELECT 1; -- ?", 0, 0 },
                { "SELECT $?$ x", "SELECT $ $1$ x", 1, 1 }, /* it is no dollar quote for the server, either */
                { "SELECT a?,1:x,2$1", "SELECT a $1,1 $2,2 $1", 2, 2 },
        };

        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                SqlError error = SQL_ERROR_INIT;
                PgText text;

                CHECK(pg_text_read(vectors[i].from, strlen(vectors[i].from), 100, &text, &error));
                CHECK_STRING(text.sql, vectors[i].to);
                CHECK_INT(text.n_names, vectors[i].n_names);
                CHECK_INT(text.n_numbers, vectors[i].n_numbers);
                pg_text_done(&text);
        }
}

static void test_refused(void) {
        static const struct {
                const char *sql;
                ErrorNumber error;
        } vectors[] = {
                { "", ERROR_EMPTY_STATEMENT },
                { " ; ;; -- x", ERROR_EMPTY_STATEMENT },
                { "/* SELECT 1", ERROR_EMPTY_STATEMENT },
                { "SELECT 1; SELECT 2", ERROR_SEVERAL_STATEMENTS },
                { "SELECT ';' ; x", ERROR_SEVERAL_STATEMENTS },
                { "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END; SELECT 1",
                  ERROR_SEVERAL_STATEMENTS },
                { "SELECT ?0", ERROR_LIMITS_EXCEEDED },
                { "SELECT ?101", ERROR_LIMITS_EXCEEDED },
                { "SELECT $101", ERROR_LIMITS_EXCEEDED },
                { "SELECT ?100, ?", ERROR_LIMITS_EXCEEDED },
                { "SELECT ?99999999999999999999", ERROR_LIMITS_EXCEEDED },
        };

        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                SqlError error = SQL_ERROR_INIT;
                PgText text;

                CHECK(!pg_text_read(vectors[i].sql, strlen(vectors[i].sql), 100, &text, &error));
                CHECK_INT(error.error, vectors[i].error);
                sql_error_done(&error);
        }
}

static void test_commands(void) {
        static const struct {
                const char *sql;
                PgCommand command;
        } vectors[] = {
                { "select 1", PG_COMMAND_READ },
                { "((SELECT 1) UNION SELECT 2)", PG_COMMAND_READ },
                { "/* x */ insert into t values(1)", PG_COMMAND_ROWS },
                { "WITH a AS (SELECT 1) SELECT * FROM a FOR UPDATE", PG_COMMAND_READ },
                { "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", PG_COMMAND_ROWS },
                { "WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a", PG_COMMAND_ROWS },
                { "WITH a AS (SELECT 'INSERT') SELECT \"delete\" FROM a", PG_COMMAND_READ },
                { "TRUNCATE t", PG_COMMAND_CALL },
                { "DROP TABLE t", PG_COMMAND_SCHEMA },
                { "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END",
                  PG_COMMAND_SCHEMA },
                { "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)", PG_COMMAND_SCHEMA },
                { "ROLLBACK", PG_COMMAND_REFUSED },
                { "ROLLBACK /* TO */ -- TO\n WORK", PG_COMMAND_REFUSED },
                { "ROLLBACK WORK TO SAVEPOINT x", PG_COMMAND_SAVEPOINT },
                { "savepoint x", PG_COMMAND_SAVEPOINT },
                { "copy t to stdout", PG_COMMAND_REFUSED },
                { "nonsense", PG_COMMAND_UNKNOWN },
                { "1", PG_COMMAND_UNKNOWN },
                { "show all", PG_COMMAND_READ },
                { "TABLE t", PG_COMMAND_READ },
                { "(VALUES (1))", PG_COMMAND_READ },
                /* EXPLAIN */
                { "EXPLAIN DELETE FROM t", PG_COMMAND_READ },
                { "EXPLAIN VERBOSE CREATE TABLE x AS SELECT 1", PG_COMMAND_READ },
                { "EXPLAIN (COSTS off, FORMAT json) SELECT 1 INTO x", PG_COMMAND_READ },
                { "EXPLAIN (SELECT 1)", PG_COMMAND_READ },
                { "EXPLAIN (VALUES (1))", PG_COMMAND_READ },
                { "EXPLAIN ((SELECT 1) UNION SELECT \"analyze\" FROM t)", PG_COMMAND_READ },
                { "EXPLAIN ANALYZE SELECT 1", PG_COMMAND_READ },
                { "EXPLAIN (ANALYZE) ((SELECT 1))", PG_COMMAND_READ },
                { "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1", PG_COMMAND_SCHEMA },
                { "explain /* select */ analyse -- select\n verbose create table x as select 1", PG_COMMAND_SCHEMA },
                { "EXPLAIN (ANALYZE) CREATE MATERIALIZED VIEW x AS SELECT 1", PG_COMMAND_SCHEMA },
                { "EXPLAIN (ANALYZE 'true', COSTS) CREATE TABLE x AS SELECT 1", PG_COMMAND_SCHEMA },
                { "EXPLAIN (\"analyze\" on) CREATE TABLE x AS SELECT 1", PG_COMMAND_SCHEMA },
                { "EXPLAIN (U&\"\\0061nalyze\") CREATE TABLE x AS SELECT 1", PG_COMMAND_SCHEMA },
                { "EXPLAIN (COSTS off, analyse) SELECT 1 INTO x", PG_COMMAND_SCHEMA },
                { "EXPLAIN ANALYZE (SELECT 1 INTO x)", PG_COMMAND_SCHEMA },
                { "EXPLAIN (ANALYZE) ((SELECT 1 INTO x))", PG_COMMAND_SCHEMA },
                { "EXPLAIN ANALYZE INSERT INTO t VALUES(1)", PG_COMMAND_ROWS },
                { "EXPLAIN (ANALYZE) WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a", PG_COMMAND_ROWS },
                { "EXPLAIN ANALYZE WITH a AS (SELECT 1) SELECT * INTO x FROM a", PG_COMMAND_SCHEMA },
                { "EXPLAIN ANALYZE REFRESH MATERIALIZED VIEW v", PG_COMMAND_CALL },
                { "EXPLAIN ANALYZE nonsense", PG_COMMAND_UNKNOWN },
                { "EXPLAIN EXECUTE s1", PG_COMMAND_REFUSED },
                { "EXPLAIN ANALYZE DECLARE c CURSOR FOR SELECT 1", PG_COMMAND_REFUSED },
                /* INTO */
                { "SELECT * INTO x FROM t", PG_COMMAND_SCHEMA },
                { "((SELECT 1 INTO TEMP x))", PG_COMMAND_SCHEMA },
                { "SELECT 1 INTO x UNION SELECT 2", PG_COMMAND_SCHEMA },
                { "SELECT 1INTO x", PG_COMMAND_SCHEMA },
                { "SELECT 1.INTO x", PG_COMMAND_SCHEMA },
                { "SELECT 1e-5INTO x", PG_COMMAND_SCHEMA },
                { "SELECT 1E'\\' INTO x --'", PG_COMMAND_READ },
                { "SELECT 1E'\\'' INTO x --'", PG_COMMAND_SCHEMA },
                { "SELECT ?INTO x", PG_COMMAND_SCHEMA },
                { "SELECT 1 AS as INTO x", PG_COMMAND_SCHEMA },
                { "SELECT t.as INTO x FROM t", PG_COMMAND_SCHEMA },
                { "SELECT 1 AS \"as\" INTO x", PG_COMMAND_SCHEMA },
                { "SELECT 1 AS U&\"a\" INTO x", PG_COMMAND_SCHEMA },
                { "SELECT 1 AS /* a name */ into", PG_COMMAND_READ },
                { "SELECT t.into, t . into FROM t", PG_COMMAND_READ },
                { "SELECT ' INTO ', \"INTO\", $$ INTO $$, E'\\' INTO ' -- INTO", PG_COMMAND_READ },
                { "SELECT (1) insert INTO x", PG_COMMAND_SCHEMA },
                { "SELECT insert INTO x FROM t", PG_COMMAND_SCHEMA },
                { "WITH a AS (SELECT 1) SELECT * INTO x FROM a", PG_COMMAND_SCHEMA },
                { "WITH a AS (SELECT 1) SELECT (1) insert INTO x", PG_COMMAND_SCHEMA },
                { "WITH a AS (SELECT 1) (SELECT (1) insert INTO x)", PG_COMMAND_SCHEMA },
                { "WITH a AS (DELETE FROM t RETURNING 1) SELECT * INTO x FROM a", PG_COMMAND_SCHEMA },
                { "WITH a AS (INSERT INTO t VALUES(1) RETURNING 1) SELECT * FROM a", PG_COMMAND_ROWS },
                { "WITH a AS (WITH b AS (SELECT 1) INSERT INTO t SELECT * FROM b RETURNING 1) SELECT * FROM a",
                  PG_COMMAND_ROWS },
                { "WITH RECURSIVE a AS (SELECT 1) SEARCH DEPTH FIRST BY x SET y DELETE FROM t", PG_COMMAND_ROWS },
                { "WITH RECURSIVE a AS (SELECT 1) CYCLE x SET y USING z "
                  "MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE",
                  PG_COMMAND_ROWS },
                { "WITH update AS (SELECT 1), delete AS (SELECT 2) SELECT * FROM update", PG_COMMAND_READ },
                { "INSERT INTO t SELECT 1", PG_COMMAND_ROWS },
                /* functions with effect */
                { "SELECT s.PG_NOTIFY /* ( */ ('a', 'b')", PG_COMMAND_CALL },
                { "SELECT \"pg_notify\"('a', 'b')", PG_COMMAND_CALL },
                { "SELECT U&\"pg_notif\\0079\"('a', 'b')", PG_COMMAND_CALL },
                { "SELECT u&\"pg_notif!0079\" UESCAPE '!' ('a', 'b')", PG_COMMAND_CALL },
                { "SELECT U&\"a\" FROM (VALUES (1)) AS x(U&\"a\")", PG_COMMAND_READ },
                { "SELECT pg_notify, 'pg_notify(1)' FROM t", PG_COMMAND_READ },
                { "MERGE /* x */ INTO t USING u ON true WHEN NOT MATCHED THEN INSERT VALUES(1)", PG_COMMAND_ROWS },
        };

        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                SqlError error = SQL_ERROR_INIT;
                PgText text;

                CHECK(pg_text_read(vectors[i].sql, strlen(vectors[i].sql), 100, &text, &error));
                CHECK_INT(text.command, vectors[i].command);
                pg_text_done(&text);
        }
}

/* The names of functions about which the server is asked. */
static void test_calls(void) {
        static const struct {
                const char *sql, *calls;
        } vectors[] = {
                { "SELECT f(1)", "{\"f\"}" },
                { "SELECT a, 'f(1)', $$f(1)$$, E'f(1)' -- f(1)\n", NULL },
                { "SELECT Other.ENQUEUE /* ( */ -- (\n ('x'), enqueue(2), f(g(1)), Ä()",
                  "{\"enqueue\",\"f\",\"g\",\"Ä\"}" },
                { "SELECT \"Odd \"\"\\ Name\"(1), \"x\"\"\"\"f\"(1), \"f\"(1), \"\"(1)",
                  "{\"Odd \\\"\\\\ Name\",\"x\\\"\\\"f\",\"f\"}" },
                { "SELECT count(*), COALESCE(sum(a), 0) FROM t WHERE a IN (1, 2) AND (b OR NOT (c)) GROUP BY (d)", NULL },
                { "SELECT \"join\"(), \"when\" (1), s.\"Round\"(2), \"round\"(3), ROUND(4) FROM a JOIN (SELECT 1) AS t",
                  "{\"join\",\"when\",\"Round\",\"round\"}" },
                { "SELECT CAST(a AS varchar(10)), ARRAY(SELECT 1) FROM (VALUES (1)) AS t", NULL },
                { "WITH q(n) AS (SELECT f(1)) SELECT * FROM q", "{\"q\",\"f\"}" },
                { "SELECT ?(1), :f(1), 5(1), f.(1), f,(1)", NULL },
                { "EXPLAIN SELECT f(1)", NULL },
                { "EXPLAIN (ANALYZE) SELECT f(1)", "{\"f\"}" },
                { "INSERT INTO t(a) SELECT f(1)", NULL },
                { "WITH q AS (SELECT f(1)) INSERT INTO t SELECT * FROM q", NULL },
                { "SELECT pg_notify('a', f(1))", NULL },
                { "VALUES (f(1))", "{\"f\"}" },
                { "(", NULL },
                { "SELECT \"", NULL },
        };
        PgText text;

        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                SqlError error = SQL_ERROR_INIT;

                CHECK(pg_text_read(vectors[i].sql, strlen(vectors[i].sql), 100, &text, &error));
                if (vectors[i].calls)
                        CHECK_STRING(text.calls, vectors[i].calls);
                else
                        CHECK(!text.calls);
                pg_text_done(&text);
        }
}

/* A long list is bounded by the SQL, and ends with the last name. */
static void test_many_calls(void) {
        size_t n = 3000, size = 0;
        char *sql = malloc(n * 16);
        SqlError error = SQL_ERROR_INIT;
        PgText text;

        size += (size_t) sprintf(sql, "SELECT 1");
        for (size_t i = 0; i < n; i++)
                size += (size_t) sprintf(sql + size, ",f%zu()", i % 2500);
        CHECK(pg_text_read(sql, size, 100, &text, &error));
        CHECK(strncmp(text.calls, "{\"f0\",\"f1\",", 11) == 0);
        CHECK_STRING(text.calls + strlen(text.calls) - 8, ",\"f499\"}");
        CHECK(strstr(text.calls, ",\"f2499\","));
        pg_text_done(&text);
        free(sql);
}

/* The server's positions count characters of its SQL, and ours bytes of the client's. */
static void test_offsets(void) {
        static const char sql[] = "SELECT 'ä', :name, ?12, j ?? x, wrong";
        SqlError error = SQL_ERROR_INIT;
        PgText text;

        CHECK(pg_text_read(sql, strlen(sql), 100, &text, &error));
        CHECK_STRING(text.sql, "SELECT 'ä', $1, $2, j ? x, wrong");
        CHECK_INT(pg_text_offset(&text, 0), -1);
        CHECK_INT(pg_text_offset(&text, 1), 0);
        CHECK_INT(pg_text_offset(&text, 13), strstr(sql, ":name") - sql);
        CHECK_INT(pg_text_offset(&text, 28), strstr(sql, "wrong") - sql);
        CHECK_INT(pg_text_offset(&text, 10000), (int) strlen(sql));
        CHECK_INT(pg_text_find(&text, "name"), 0);
        CHECK_INT(pg_text_find(&text, ":name"), 0);
        CHECK_INT(pg_text_find(&text, "@name"), -ENOENT);
        CHECK_INT(pg_text_find(&text, "?12"), 11);
        pg_text_done(&text);
        CHECK(pg_text_read("SELECT :a, @a", 13, 100, &text, &error));
        CHECK_INT(pg_text_find(&text, "a"), -ENOTUNIQ);
        pg_text_done(&text);
}

/* Every piece of SQL is read without an access past its end. */
static void test_every_cut(void) {
        static const char sql[] = "SELECT f(\"g\"\"\\h\"(1)), U&\"i\" UESCAPE '!' ("
                                  "WITH a AS (SELECT E'\\'x' 'y', $t$ $$ $t$, $1::int, :b, @c, ?3, ?? /* /* */ */ -- z\n, "
                                  "\"q\"\"\") "
                                  "CREATE x BEGIN ATOMIC CASE END; END; $x$ ? U&'\\' \xff\xc3";

        for (size_t size = 0; size < sizeof sql; size++)
                for (size_t from = 0; from < size; from += 3) {
                        SqlError error = SQL_ERROR_INIT;
                        char *copy = strndup(sql + from, size - from);
                        PgText text;

                        if (pg_text_read(copy, strlen(copy), 100, &text, &error)) {
                                for (long position = 0; position < 200; position += 7)
                                        CHECK(pg_text_offset(&text, position) <= (int) strlen(copy));
                                pg_text_done(&text);
                        }
                        sql_error_done(&error);
                        free(copy);
                }
}

/* ---- COPY ---- */

static void test_copy(void) {
        static const struct {
                const char *sql, *table, *columns;
        } vectors[] = {
                { "INSERT INTO t(a) VALUES(?)", "t", "(a)" },
                { "insert into s.\"T\" ( a , \"b\" ) values ( ?, ? ) ; ", "s.\"T\"", "( a , \"b\" )" },
                { "INSERT INTO t(a, b) VALUES(:x, :y)", "t", "(a, b)" },
                { "INSERT INTO t VALUES(?)", NULL, NULL },
                { "INSERT INTO t(a, b) VALUES(?, 1)", NULL, NULL },
                { "INSERT INTO t(a, b) VALUES(?2, ?1)", NULL, NULL },
                { "INSERT INTO t(a, b) VALUES(?1, ?1)", NULL, NULL },
                { "INSERT INTO t(a) VALUES(?), (?)", NULL, NULL },
                { "INSERT INTO t(a) VALUES(?) ON CONFLICT DO NOTHING", NULL, NULL },
                { "INSERT INTO t(a) VALUES(?) RETURNING a", NULL, NULL },
                { "INSERT INTO t AS u(a) VALUES(?)", NULL, NULL },
                { "INSERT INTO t(a[1]) VALUES(?)", NULL, NULL },
                { "INSERT INTO t(a) OVERRIDING SYSTEM VALUE VALUES(?)", NULL, NULL },
                { "INSERT INTO t(a) VALUES(?::int)", NULL, NULL },
                { "UPDATE t SET a = ?", NULL, NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                SqlError error = SQL_ERROR_INIT;
                PgText text;
                PgCopy copy;

                CHECK(pg_text_read(vectors[i].sql, strlen(vectors[i].sql), 100, &text, &error));
                CHECK_INT(pg_copy_find(&text, &copy), vectors[i].table != NULL);
                if (vectors[i].table) {
                        CHECK(copy.table_size == strlen(vectors[i].table));
                        CHECK(memcmp(copy.table, vectors[i].table, copy.table_size) == 0);
                        CHECK(copy.columns_size == strlen(vectors[i].columns));
                        CHECK(memcmp(copy.columns, vectors[i].columns, copy.columns_size) == 0);
                }
                pg_text_done(&text);
        }
        CHECK_INT(pg_copy_line("COPY album, line 12, column id: \"x\""), 12);
        CHECK_INT(pg_copy_line("SQL statement, line 12"), 0);
        CHECK_INT(pg_copy_line(NULL), 0);
}

static void test_copy_values(void) {
        uint8_t number[8], real[8];
        PageValue values[] = {
                { VALUE_INTEGER, number, 8 },
                { VALUE_REAL, real, 8 },
                { VALUE_TEXT, (const uint8_t *) "a\tb\\c\nd\re", 9 },
                { VALUE_BLOB, (const uint8_t *) "\x00\xff", 2 },
                { VALUE_NULL, NULL, 0 },
        };
        static const PgKind kinds[] = { PG_KIND_INT8, PG_KIND_FLOAT8, PG_KIND_TEXT, PG_KIND_BYTEA, PG_KIND_TEXT };
        PgCopyData data = {};

        store_le64(number, (uint64_t) INT64_MIN);
        store_le_double(real, 0.1);
        for (size_t i = 0; i < N_ELEMENTS(values); i++)
                CHECK(pg_copy_add(&data, kinds[i], &values[i], i + 1 == N_ELEMENTS(values)));
        CHECK(pg_copy_add(&data, PG_KIND_INT4, &values[4], true));
        data.bytes[data.size - 1] = 0;
        CHECK_STRING(data.bytes, "-9223372036854775808\t0.1\ta\\tb\\\\c\\nd\\re\t\\\\x00ff\t\\N\n\\N");
        free(data.bytes);
}

/* ---- values ---- */

static char *show(const PgValue *v) {
        static char text[400];

        switch (v->type) {
        case VALUE_INTEGER:
                (void) snprintf(text, sizeof text, "i:%lld", (long long) v->integer);
                break;
        case VALUE_REAL:
                (void) snprintf(text, sizeof text, "r:%.17g", v->real);
                break;
        default:
                (void) snprintf(text, sizeof text, "t:%.*s", (int) v->size, (const char *) v->bytes);
        }
        return text;
}

/* `hex`: the binary form. */
static void expect_binary(PgKind kind, const char *hex, const char *value) {
        uint8_t bytes[200];
        PgScratch scratch = {};
        size_t n = 0;
        PgValue v;

        for (const char *at = hex; *at; at++) {
                unsigned byte;

                if (*at == ' ')
                        continue;
                CHECK_INT(sscanf(at++, "%2x", &byte), 1);
                bytes[n++] = (uint8_t) byte;
        }
        bytes[n] = 0;
        if (value) {
                CHECK_INT(pg_value_decode(kind, true, bytes, n, &scratch, &v), 0);
                CHECK_STRING(show(&v), value);
        } else
                CHECK_INT(pg_value_decode(kind, true, bytes, n, &scratch, &v), -EBADMSG);
        pg_scratch_done(&scratch);
}

static void test_binary_values(void) {
        expect_binary(PG_KIND_BOOL, "01", "i:1");
        expect_binary(PG_KIND_BOOL, "0100", NULL);
        expect_binary(PG_KIND_INT2, "8000", "i:-32768");
        expect_binary(PG_KIND_INT4, "ffffffff", "i:-1");
        expect_binary(PG_KIND_OID, "ffffffff", "i:4294967295");
        expect_binary(PG_KIND_INT8, "8000000000000000", "i:-9223372036854775808");
        expect_binary(PG_KIND_INT8, "80000000000000", NULL);
        expect_binary(PG_KIND_FLOAT4, "3dcccccd", "r:0.10000000149011612");
        expect_binary(PG_KIND_FLOAT8, "7ff8000000000000", "t:NaN");
        /* digits, weight, sign, scale */
        expect_binary(PG_KIND_NUMERIC, "0000 0000 0000 0000", "i:0");
        expect_binary(PG_KIND_NUMERIC, "0000 0000 0000 0002", "t:0.00");
        expect_binary(PG_KIND_NUMERIC, "0001 0001 0000 0000 0001", "i:10000");
        expect_binary(PG_KIND_NUMERIC, "0001 0000 4000 0000 0005", "i:-5");
        expect_binary(PG_KIND_NUMERIC, "0002 0000 0000 0002 0001 1388", "t:1.50");
        expect_binary(PG_KIND_NUMERIC, "0001 ffff 4000 0005 000a", "t:-0.00100");
        expect_binary(PG_KIND_NUMERIC, "0001 fffe 0000 0006 0064", "t:0.000001");
        expect_binary(PG_KIND_NUMERIC, "0005 0004 0000 0000 039a 0d2c 0170 1565 16af", "i:9223372036854775807");
        expect_binary(PG_KIND_NUMERIC, "0005 0004 0000 0000 039a 0d2c 0170 1565 16b0", "t:9223372036854775808");
        expect_binary(PG_KIND_NUMERIC, "0005 0004 4000 0000 039a 0d2c 0170 1565 16b0", "i:-9223372036854775808");
        expect_binary(PG_KIND_NUMERIC, "0001 0005 0000 0000 0001", "t:100000000000000000000");
        expect_binary(PG_KIND_NUMERIC, "0000 0000 c000 0000", "t:NaN");
        expect_binary(PG_KIND_NUMERIC, "0000 0000 d000 0000", "t:Infinity");
        expect_binary(PG_KIND_NUMERIC, "0000 0000 f000 0000", "t:-Infinity");
        expect_binary(PG_KIND_NUMERIC, "0000 0000 1000 0000", NULL);
        expect_binary(PG_KIND_NUMERIC, "0001 0000 0000 0000 2710", NULL); /* a digit of 10000 */
        expect_binary(PG_KIND_NUMERIC, "0002 0000 0000 0000 0001", NULL);
        expect_binary(PG_KIND_NUMERIC, "0000", NULL);
        expect_binary(PG_KIND_DATE, "00000000", "t:2000-01-01");
        expect_binary(PG_KIND_DATE, "0000003b", "t:2000-02-29");
        expect_binary(PG_KIND_DATE, "ffffffff", "t:1999-12-31");
        expect_binary(PG_KIND_DATE, "7fffffff", "t:infinity");
        expect_binary(PG_KIND_DATE, "fff4da8b", "t:0001-01-01 BC");
        expect_binary(PG_KIND_TIME, "0000000000000000", "t:00:00:00");
        expect_binary(PG_KIND_TIME, "0000000000000001", "t:00:00:00.000001");
        expect_binary(PG_KIND_TIME, "000000141dd76000", "t:24:00:00");
        expect_binary(PG_KIND_TIME, "000000141dd76001", NULL);
        expect_binary(PG_KIND_TIMESTAMP, "ffffffffffffffff", "t:1999-12-31 23:59:59.999999");
        expect_binary(PG_KIND_TIMESTAMPTZ, "00000000000f4240", "t:2000-01-01 00:00:01+00:00");
        expect_binary(PG_KIND_TIMESTAMPTZ, "8000000000000000", "t:-infinity");
        expect_binary(PG_KIND_JSONB, "01 7b7d", "t:{}");
        expect_binary(PG_KIND_JSONB, "02 7b7d", NULL);
        expect_binary(PG_KIND_JSONB, "", NULL);
        expect_binary(PG_KIND_UUID, "6ba7b8109dad11d180b400c04fd430c8", "t:6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        expect_binary(PG_KIND_OTHER, "00", NULL);
}

static void expect_text(PgKind kind, const char *text, const char *value) {
        PgScratch scratch = {};
        PgValue v;
        int r = pg_value_decode(kind, false, (const uint8_t *) text, strlen(text), &scratch, &v);

        CHECK_INT(r, value ? 0 : -EBADMSG);
        if (value)
                CHECK_STRING(show(&v), value);
        pg_scratch_done(&scratch);
}

static void test_text_values(void) {
        expect_text(PG_KIND_BOOL, "t", "i:1");
        expect_text(PG_KIND_INT8, "-9223372036854775808", "i:-9223372036854775808");
        expect_text(PG_KIND_INT8, "9223372036854775808", NULL);
        expect_text(PG_KIND_INT8, "", NULL);
        expect_text(PG_KIND_INT8, "1x", NULL);
        expect_text(PG_KIND_FLOAT4, "0.1", "r:0.10000000149011612");
        expect_text(PG_KIND_FLOAT8, "-Infinity", "r:-inf");
        expect_text(PG_KIND_FLOAT8, "NaN", "t:NaN");
        expect_text(PG_KIND_NUMERIC, "12345678901234567890", "t:12345678901234567890");
        expect_text(PG_KIND_NUMERIC, "-12", "i:-12");
        expect_text(PG_KIND_NUMERIC, "1.50", "t:1.50");
        expect_text(PG_KIND_BYTEA, "\\x4142", "t:AB");
        expect_text(PG_KIND_BYTEA, "\\x4", NULL);
        expect_text(PG_KIND_BYTEA, "\\x4G", NULL);
        expect_text(PG_KIND_BYTEA, "AB", NULL);
        expect_text(PG_KIND_TIMESTAMPTZ, "2024-01-02 03:04:05.6+00", "t:2024-01-02 03:04:05.6+00:00");
        expect_text(PG_KIND_TIMESTAMPTZ, "0044-03-15 00:00:00+00 BC", "t:0044-03-15 00:00:00+00:00 BC");
        expect_text(PG_KIND_TIMESTAMPTZ, "infinity", "t:infinity");
        expect_text(PG_KIND_OTHER, "{1,2}", "t:{1,2}");
}

static void test_numbers(void) {
        static const struct {
                double real;
                const char *digits, *text;
        } vectors[] = {
                { 0.1, "0.1", "0.1" },
                { 2, "2", "2.0" },
                { -1e300, "-1e+300", "-1e+300" },
                { 0.1 + 0.2, "0.30000000000000004", "0.30000000000000004" },
                { INFINITY, "Infinity", "Infinity" },
        };

        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                char room[PG_NUMBER_SIZE];

                CHECK_INT(pg_number_write(vectors[i].real, false, room), strlen(vectors[i].digits));
                CHECK_STRING(room, vectors[i].digits);
                CHECK_INT(pg_number_write(vectors[i].real, true, room), strlen(vectors[i].text));
                CHECK_STRING(room, vectors[i].text);
        }
}

/* ---- snapshots ---- */

static void test_snapshots(void) {
        CHECK_INT(pg_snapshot_state("10:20:").kind, FILE_STATE_SERVER);
        CHECK_INT(pg_snapshot_state("10:20:12,15").kind, FILE_STATE_SERVER);
        CHECK_INT(pg_snapshot_state("").kind, FILE_STATE_UNKNOWN);
        CHECK_INT(pg_snapshot_state("10").kind, FILE_STATE_UNKNOWN);
        CHECK_INT(pg_snapshot_state("10:20:x").kind, FILE_STATE_UNKNOWN);
        CHECK(pg_snapshot_state("10:20:").content != pg_snapshot_state("10:21:").content);
        CHECK(pg_snapshot_only_own("20:20:", "20:20:", 0));
        CHECK(pg_snapshot_only_own("20:20:", "22:22:", 2));            /* a transaction and its savepoint */
        CHECK(!pg_snapshot_only_own("20:20:", "23:23:", 2));           /* and another one */
        CHECK(pg_snapshot_only_own("20:20:", "20:23:20", 2));          /* which is still under way */
        CHECK(pg_snapshot_only_own("15:20:15", "15:22:15", 2));
        CHECK(!pg_snapshot_only_own("15:20:15", "22:22:", 2));         /* one that was under way has ended */
        CHECK(!pg_snapshot_only_own("15:20:15,16", "16:22:16", 2));
        CHECK(!pg_snapshot_only_own("20:20:", "10:10:", 2));           /* another server */
        CHECK(!pg_snapshot_only_own("x", "20:20:", 2));
}

int main(void) {
        static const Test tests[] = {
                TEST(test_placeholders), TEST(test_refused), TEST(test_commands), TEST(test_calls),
                TEST(test_many_calls), TEST(test_offsets), TEST(test_every_cut), TEST(test_copy), TEST(test_copy_values),
                TEST(test_binary_values), TEST(test_text_values), TEST(test_numbers), TEST(test_snapshots),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
