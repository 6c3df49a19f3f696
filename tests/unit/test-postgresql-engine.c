/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PostgreSQL as an engine, on a server of the test's own: reading, writing, rights, and connections that are lost. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <glib.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/worker/core/row-source.h"
#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/postgresql/postgresql-engine.h"
#include "tests/rigs/engine-rows.h"
#include "tests/rigs/postgres-rig.h"

#define PAGE_SIZE 65536

static PostgresRig rig;
static unsigned n_pipelines_hidden; /* the next PQconsumeInput() takes the answers to so many pipelines at once, like TLS */
static bool interrupts; /* at each call of the progress function */
static const char *interrupts_when; /* from the time on when the server says yes to this SQL; NULL: never */

typedef struct Fixture {
        char *connection_text;
        Setup setup;
        EnginePool *pool;
        EngineConnection *connection; /* NULL: each statement takes its own */
        EngineConnection *writer;     /* NULL: no transaction that writes */
        SqlError error;
        int64_t n_changes;
        bool joined; /* statements of the writer have the caller's savepoint */
} Fixture;

static int on_progress(void *userdata) {
        Fixture *f = userdata;

        if (interrupts_when) {
                g_autofree char *yes = postgres_rig_value(&rig, interrupts_when);

                if (g_strcmp0(yes, "t") == 0) {
                        interrupts = true;
                        interrupts_when = NULL;
                }
        }
        if (interrupts && f->error.error == ERROR_NONE)
                (void) sql_error_set(&f->error, ERROR_CANCELLED, "cancelled by the test");
        return f->error.error != ERROR_NONE;
}

/* ---- TLS without a certificate ---- */

/* Instead of libpq's: bytes may be hidden. */
int PQsslInUse(PGconn *pq) {
        (void) pq;
        return n_pipelines_hidden > 0;
}

static unsigned n_in_socket(int fd) {
        static const char ready[] = "Z\0\0\0\5"; /* ReadyForQuery, at the end of each answer */
        char bytes[4096];
        ssize_t size = recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
        unsigned n = 0;

        for (ssize_t i = 0; i + 5 < size; i++)
                n += memcmp(bytes + i, ready, 5) == 0;
        return n;
}

int PQconsumeInput(PGconn *pq) {
        static int (*real)(PGconn *pq);

        if (!real)
                *(void **) &real = dlsym(RTLD_NEXT, "PQconsumeInput");
        while (n_in_socket(PQsocket(pq)) < n_pipelines_hidden)
                g_usleep(1000);
        n_pipelines_hidden = 0;
        return real(pq);
}

/* ---- life of a test ---- */

static void start(Fixture *f) {
        g_assert_cmpint(postgresql_engine.init(&f->setup), ==, 0);
        g_assert_cmpint(postgresql_engine.start(&f->setup, on_progress, f, &f->pool), ==, 0);
}

static void set_up(Fixture *f, bool writes) {
        *f = (Fixture) { .connection_text = postgres_rig_connection(&rig, "tester"), .error = SQL_ERROR_INIT };
        f->setup = (Setup) {
                .engine = ENGINE_KIND_POSTGRESQL,
                .connection = f->connection_text,
                .connections_max = 3,
                .sql_size_max = 10000,
                .variables_max = 1000,
                .busy_usec = 1000000,
                .writes = writes,
                .write_schema = writes,
        };
        interrupts = false;
        interrupts_when = NULL;
        postgres_rig_exec(&rig, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO tester;"
                                "SET ROLE tester;"
                                "CREATE TABLE album(id bigint PRIMARY KEY, title text UNIQUE);"
                                "CREATE TABLE track(id bigserial PRIMARY KEY,"
                                " album bigint REFERENCES album ON DELETE CASCADE, name text,"
                                " price numeric(6, 2), small smallint);"
                                "INSERT INTO album VALUES(1, 'first'), (2, 'second');"
                                "RESET ROLE");
        start(f);
}

static void tear_down(Fixture *f) {
        if (f->connection)
                postgresql_engine.disconnect(f->pool, f->connection);
        if (f->writer)
                postgresql_engine.disconnect(f->pool, f->writer);
        postgresql_engine.stop(f->pool);
        sql_error_done(&f->error);
        g_free(f->connection_text);
}

/* ---- statements ---- */

static const Engine *const engine = &postgresql_engine;

/* Runs one statement, with parameters or none, as the core does. NULL: f->error. */
static char *run(Fixture *f, const char *sql, const char *const *values, unsigned n) {
        EngineConnection *c = f->writer ? f->writer : f->connection;
        bool own = !c, saved = false;
        g_autoptr(GByteArray) row = engine_rows_parameters(values, n);
        JobSpec spec = { .sql = sql, .sql_size = strlen(sql), .n_positional = n, .parameters = row->data,
                         .parameters_size = row->len, .deadline_usec = UINT64_MAX };
        EngineStatement *statement = NULL;
        char *rows = NULL;

        sql_error_done(&f->error);
        if (own && !engine->connect(f->pool, sql, spec.sql_size, NULL, &c, &f->error))
                return NULL;
        if (f->writer && !f->joined)
                saved = engine->save(c, &f->error);
        if (engine->compile(c, sql, spec.sql_size, false, NULL, &statement, &f->error)) {
                if (saved && engine->is_savepoint(statement)) {
                        g_assert_true(engine->keep(c, &f->error));
                        saved = false;
                }
                if (engine->bind(statement, &spec, &f->error))
                        rows = engine_rows_read(engine, statement, &f->error);
                if (rows)
                        engine->changes(statement, &f->n_changes, &(int64_t) { 0 });
                engine->release(statement);
        }
        if (saved && f->error.error == ERROR_NONE)
                g_assert_true(engine->keep(c, &f->error));
        else if (saved && engine->is_in_transaction(c))
                engine->undo(c);
        if (own)
                engine->disconnect(f->pool, c);
        return rows;
}

static void expect_with(Fixture *f, const char *sql, const char *rows, const char *const *values, unsigned n) {
        g_autofree char *got = run(f, sql, values, n);

        if (!got)
                g_error("%s: %s", sql, f->error.message);
        g_assert_cmpstr(got, ==, rows);
}

#define EXPECT(f, sql, rows, ...)                                                                                     \
        do {                                                                                                          \
                const char *const values_[] = { __VA_ARGS__ };                                                        \
                expect_with(f, sql, rows, values_, G_N_ELEMENTS(values_));                                            \
        } while (0)

static void refused_with(Fixture *f, const char *sql, ErrorNumber error, const char *sentence, const char *const *values,
                         unsigned n) {
        g_autofree char *got = run(f, sql, values, n);

        if (got)
                g_error("this was run: %s", sql);
        if (f->error.error != error || !strstr(f->error.message, sentence))
                g_error("%s: %d, %s", sql, f->error.error, f->error.message);
}

#define REFUSED(f, sql, error, sentence, ...)                                                                         \
        do {                                                                                                          \
                const char *const values_[] = { __VA_ARGS__ };                                                        \
                refused_with(f, sql, error, sentence, values_, G_N_ELEMENTS(values_));                                \
        } while (0)

static void begin(Fixture *f) {
        sql_error_done(&f->error);
        if (!engine->begin(f->pool, true, &f->writer, &f->error))
                g_error("begin: %s", f->error.message);
}

static void end(Fixture *f) {
        engine->disconnect(f->pool, f->writer);
        f->writer = NULL;
}

static void commit(Fixture *f) {
        sql_error_done(&f->error);
        if (!engine->commit(f->writer, &f->error))
                g_error("commit: %s", f->error.message);
        end(f);
}

static void expect_value(const char *sql, const char *value) {
        g_autofree char *got = postgres_rig_value(&rig, sql);

        g_assert_cmpstr(got, ==, value);
}

/* ---- reading ---- */

static void test_values(void) {
        Fixture f;

        set_up(&f, false);
        EXPECT(&f, "SELECT 1::smallint, -2::integer, 9223372036854775807::bigint, true, NULL::text",
               "i:1|i:-2|i:9223372036854775807|i:1|null");
        EXPECT(&f, "SELECT 0.1::real, 0.1::double precision, 'NaN'::float8, '-Infinity'::float8",
               "r:0.10000000149011612|r:0.10000000000000001|t:NaN|r:-inf");
        EXPECT(&f, "SELECT 5::numeric, 5.00::numeric, -0.00001::numeric, 9223372036854775808::numeric, 'NaN'::numeric",
               "i:5|t:5.00|t:-0.00001|t:9223372036854775808|t:NaN");
        EXPECT(&f, "SELECT '\\x0001ff'::bytea, ''::bytea, 'ä'::text, ''::text", "b:0001ff|b:|t:ä|t:");
        EXPECT(&f, "SELECT '2024-02-29 12:34:56.789'::timestamptz, '2024-02-29'::date, '12:00:00.5'::time, "
                   "'0044-03-15 BC'::date",
               "t:2024-02-29 12:34:56.789+00:00|t:2024-02-29|t:12:00:00.5|t:0044-03-15 BC");
        EXPECT(&f, "SELECT '{\"a\": [1]}'::jsonb, '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid",
               "t:{\"a\": [1]}|t:6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        /* one column that is not decoded has the server write all as text */
        EXPECT(&f, "SELECT ARRAY[1, 2], 3::bigint, '\\x00ff'::bytea, 0.1::real, '2024-02-29 12:00:00'::timestamptz, 1.50",
               "t:{1,2}|i:3|b:00ff|r:0.10000000149011612|t:2024-02-29 12:00:00+00:00|t:1.50");
        EXPECT(&f, "SELECT '1 day 02:03:04'::interval, '10.0.0.0/8'::inet, int4range(1, 5), B'101'",
               "t:1 day 02:03:04|t:10.0.0.0/8|t:[1,5)|t:101");
        tear_down(&f);
}

static void test_parameters(void) {
        Fixture f;

        set_up(&f, false);
        EXPECT(&f, "SELECT title FROM album WHERE id = ?", "t:second", "i:2");
        EXPECT(&f, "SELECT ?::bigint + ?2::int", "i:7", "i:3", "i:4");
        EXPECT(&f, "SELECT $2::text || $1::text", "t:ba", "t:a", "t:b");
        EXPECT(&f, "SELECT :x::numeric, @y::float8, $z::bytea", "t:1.5|r:2|b:00ff", "r:1.5", "i:2", "b:00ff");
        EXPECT(&f, "SELECT '?', \"title\" FROM album WHERE id = ? -- ?\n", "t:?|t:first", "i:1");
        EXPECT(&f, "SELECT '{\"a\":1}'::jsonb ?? 'a', ?::text", "i:1|t:x", "t:x");
        EXPECT(&f, "SELECT ?::timestamptz, ?::uuid", "t:2024-01-02 03:04:05+00:00|t:6ba7b810-9dad-11d1-80b4-00c04fd430c8",
               "t:2024-01-02 03:04:05", "t:6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        EXPECT(&f, "SELECT ?2::int", "i:5", "i:1", "i:5");
        EXPECT(&f, "SELECT ?::text, ?::text", "t:5|t:2.0", "i:5", "r:2");
        EXPECT(&f, "SELECT ?::int, ?::boolean, ?::text", "null|i:0|null", "null", "i:0", "null");
        REFUSED(&f, "SELECT ?::smallint", ERROR_PARAMETER_TYPE, "parameter 1 is 40000, and the server expects a smallint",
                "i:40000");
        REFUSED(&f, "SELECT :n::int", ERROR_PARAMETER_TYPE, "parameter 1 (:n) is 2.5", "r:2.5");
        REFUSED(&f, "SELECT ?::float8", ERROR_PARAMETER_TYPE, "which would round it", "i:9007199254740993");
        REFUSED(&f, "SELECT ?::text", ERROR_PARAMETER_TYPE, "is a BLOB", "b:00");
        REFUSED(&f, "SELECT ?::date", ERROR_PARAMETER_TYPE, "a date or time", "i:20240101");
        REFUSED(&f, "SELECT ?::date", ERROR_SQL, "invalid input syntax for type date", "t:never");
        REFUSED(&f, "SELECT ?::int, ?::int", ERROR_PARAMETER_COUNT, "parameter 2 has no value", "i:1");
        REFUSED(&f, "SELECT 1", ERROR_PARAMETER_COUNT, "1 values for a statement with 0 parameters", "i:1");
        tear_down(&f);
}

static void test_errors(void) {
        Fixture f;

        set_up(&f, false);
        REFUSED(&f, " ; -- nothing\n", ERROR_EMPTY_STATEMENT, "no statement");
        REFUSED(&f, "SELECT 1; SELECT 2", ERROR_SEVERAL_STATEMENTS, "more than one");
        EXPECT(&f, "SELECT 1; ; -- nothing", "i:1");
        REFUSED(&f, "SELECT 'ä', nothing FROM album WHERE id = 1", ERROR_SQL, "column \"nothing\" does not exist");
        g_assert_cmpint(f.error.sql_offset, ==, (int) strlen("SELECT 'ä', "));
        REFUSED(&f, "SELECT ?::text, :long_name::text, nothing FROM album", ERROR_SQL, "does not exist", "t:x", "t:y");
        g_assert_cmpint(f.error.sql_offset, ==, (int) strlen("SELECT ?::text, :long_name::text, "));
        REFUSED(&f, "SELECT nothing()", ERROR_MISSING_FUNCTION, "does not exist");
        REFUSED(&f, "SELECT 1/0", ERROR_SQL, "division by zero");
        REFUSED(&f, "SELECT 1/(5 - i) FROM generate_series(1, 9) i", ERROR_SQL, "division by zero");
        EXPECT(&f, "SELECT 1", "i:1"); /* the connection is good */
        tear_down(&f);
}

/* Nothing that a reader may run changes anything, or outlives its transaction. */
static void test_read_only(void) {
        Fixture f;

        set_up(&f, false);
        postgres_rig_exec(&rig, "CREATE FUNCTION evil() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
                                "INSERT INTO album VALUES(99, 'evil'); RETURN 1; END $$;"
                                "CREATE FUNCTION worse() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
                                "SET TRANSACTION READ WRITE; INSERT INTO album VALUES(99, 'evil'); RETURN 1; END $$;"
                                "CREATE FUNCTION worst() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
                                "COMMIT; RETURN 1; END $$;");
        REFUSED(&f, "INSERT INTO album VALUES(3, 'x')", ERROR_READ_ONLY, "you may only read");
        REFUSED(&f, "CREATE TABLE x(y int)", ERROR_READ_ONLY, "you may only read");
        REFUSED(&f, "DO 'BEGIN END'", ERROR_READ_ONLY, "you may only read");
        REFUSED(&f, "WITH a AS (DELETE FROM album RETURNING 1) SELECT * FROM a", ERROR_READ_ONLY, "you may only read");
        REFUSED(&f, "SELECT * INTO y FROM album", ERROR_READ_ONLY, "you may only read");
        REFUSED(&f, "EXPLAIN ANALYZE DELETE FROM album", ERROR_READ_ONLY, "you may only read");
        REFUSED(&f, "SELECT evil()", ERROR_READ_ONLY, "read-only transaction");
        REFUSED(&f, "SELECT worse()", ERROR_SQL, "transaction read-write mode");
        REFUSED(&f, "SELECT worst()", ERROR_SQL, "invalid transaction termination");
        REFUSED(&f, "SELECT nextval('track_id_seq')", ERROR_READ_ONLY, "read-only transaction");
        REFUSED(&f, "SELECT set_config('transaction_read_only', 'off', true)", ERROR_SQL, "transaction read-write mode");
        REFUSED(&f, "SELECT set_config('transaction_read_only', 'off', false), evil()", ERROR_SQL, "read-write mode");
        REFUSED(&f, "WITH a AS MATERIALIZED (SELECT set_config('transaction_read_only', 'off', true)) "
                    "SELECT evil() FROM a", ERROR_SQL, "read-write mode");
        REFUSED(&f, "UPDATE pg_settings SET setting = 'off' WHERE name = 'transaction_read_only'", ERROR_READ_ONLY,
                "only read");
        /* a default for the next transactions is taken back with this one, and they do not use it */
        EXPECT(&f, "SELECT set_config('default_transaction_read_only', 'off', false)", "t:off");
        REFUSED(&f, "SELECT evil()", ERROR_READ_ONLY, "read-only transaction");
        EXPECT(&f, "SELECT set_config('search_path', 'pg_catalog', false), set_config('work_mem', '64kB', false)",
               "t:pg_catalog|t:64kB");
        EXPECT(&f, "SELECT count(*) FROM album", "i:2");
        EXPECT(&f, "SELECT current_setting('work_mem')", "t:4MB");
        EXPECT(&f, "SELECT set_config('role', 'tester', false)", "t:tester");
        REFUSED(&f, "SELECT set_config('role', 'postgres', false)", ERROR_NOT_ALLOWED, "permission denied");
        REFUSED(&f, "SELECT set_config('session_authorization', 'postgres', false)", ERROR_NOT_ALLOWED, "permission denied");
        for (size_t i = 0; i < 22; i++) {
                static const char *const commands[] = {
                        "BEGIN", "START TRANSACTION", "COMMIT", "END", "ROLLBACK", "ABORT", "PREPARE x AS SELECT 1",
                        "EXECUTE s1", "DEALLOCATE ALL", "DECLARE c CURSOR FOR SELECT 1", "FETCH c", "CLOSE c",
                        "COPY album TO STDOUT", "LISTEN x", "UNLISTEN *", "NOTIFY x", "SET role = postgres", "RESET ALL",
                        "DISCARD ALL", "LOAD 'x'", "VACUUM", "ROLLBACK /* TO */ WORK",
                };

                REFUSED(&f, commands[i], ERROR_NOT_ALLOWED, "is not allowed");
        }
        expect_value("SELECT count(*) FROM album", "2");
        tear_down(&f);
}

/* ---- rights ---- */

typedef enum Right {
        RIGHT_READ,
        RIGHT_WRITE,   /* without WriteSchema= */
        RIGHT_SCHEMA,
        RIGHT_NOBODY,
} Right;

#define MADE "SELECT to_regclass('public.x') IS NOT NULL OR to_regclass('public.\"INTO\"') IS NOT NULL"
#define ROWS "SELECT count(*) FROM album"
#define FILLED "SELECT relispopulated FROM pg_class WHERE relname = 'empty'"
#define ANALYZED "SELECT EXISTS (SELECT FROM pg_statistic WHERE starelid = 'album'::regclass)"
#define CODED "SELECT count(*) FROM pg_proc WHERE proname = 'made'"

/* `probe` has the value `after` if the statement was run, and `before` if it was refused. */
static const struct {
        const char *sql;
        Right right;
        const char *probe, *before, *after;
} statements[] = {
        { "SELECT 1", RIGHT_READ, ROWS, "2", "2" },
        { "(SELECT 1)", RIGHT_READ, ROWS, "2", "2" },
        { "SHOW work_mem", RIGHT_READ, ROWS, "2", "2" },
        { "EXPLAIN DELETE FROM album", RIGHT_READ, ROWS, "2", "2" },
        { "EXPLAIN (VERBOSE, COSTS off) DELETE FROM album", RIGHT_READ, ROWS, "2", "2" },
        { "EXPLAIN CREATE TABLE x AS SELECT 1", RIGHT_READ, MADE, "f", "f" },
        { "EXPLAIN SELECT 1 INTO x", RIGHT_READ, MADE, "f", "f" },
        { "EXPLAIN ANALYZE SELECT * FROM album", RIGHT_READ, ROWS, "2", "2" },
        { "EXPLAIN (ANALYZE, FORMAT json) ((SELECT 1) UNION SELECT 2)", RIGHT_READ, ROWS, "2", "2" },
        { "EXPLAIN (VALUES (1))", RIGHT_READ, ROWS, "2", "2" },
        { "SELECT 1 AS into, a.title AS insert FROM album a", RIGHT_READ, MADE, "f", "f" },
        { "SELECT ' INTO x', $$ INTO x $$ -- INTO x", RIGHT_READ, MADE, "f", "f" },
        { "INSERT INTO album VALUES(3, 'x')", RIGHT_WRITE, ROWS, "2", "3" },
        { "DELETE FROM album", RIGHT_WRITE, ROWS, "2", "0" },
        { "TRUNCATE album, track", RIGHT_WRITE, ROWS, "2", "0" },
        { "MERGE INTO album a USING (SELECT 9 AS n) s ON a.id = s.n WHEN NOT MATCHED THEN INSERT VALUES(9, 'x')",
          RIGHT_WRITE, ROWS, "2", "3" },
        { "WITH a AS (SELECT 9) INSERT INTO album SELECT *, 'x' FROM a", RIGHT_WRITE, ROWS, "2", "3" },
        { "WITH a AS (DELETE FROM album RETURNING id) SELECT * FROM a", RIGHT_WRITE, ROWS, "2", "0" },
        { "WITH a AS (WITH b AS (SELECT 9) INSERT INTO album SELECT *, 'x' FROM b RETURNING id) SELECT * FROM a",
          RIGHT_WRITE, ROWS, "2", "3" },
        { "WITH RECURSIVE a(n) AS (SELECT 1 UNION SELECT n + 1 FROM a WHERE n < 2) SEARCH DEPTH FIRST BY n SET o "
          "DELETE FROM album", RIGHT_WRITE, ROWS, "2", "0" },
        { "EXPLAIN ANALYZE DELETE FROM album", RIGHT_WRITE, ROWS, "2", "0" },
        { "EXPLAIN (COSTS off, ANALYZE) DELETE FROM album", RIGHT_WRITE, ROWS, "2", "0" },
        { "EXPLAIN (\"analyze\" on) INSERT INTO album VALUES(3, 'x')", RIGHT_WRITE, ROWS, "2", "3" },
        { "EXPLAIN ANALYZE WITH a AS (DELETE FROM album RETURNING 1) SELECT * FROM a", RIGHT_WRITE, ROWS, "2", "0" },
        { "REFRESH MATERIALIZED VIEW empty", RIGHT_WRITE, FILLED, "f", "t" },
        { "CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "SELECT * INTO x FROM album", RIGHT_SCHEMA, MADE, "f", "t" },
        { "SELECT * INTO UNLOGGED TABLE x FROM album", RIGHT_SCHEMA, MADE, "f", "t" },
        { "((SELECT * INTO x FROM album))", RIGHT_SCHEMA, MADE, "f", "t" },
        { "SELECT 1 AS a INTO x UNION SELECT 2", RIGHT_SCHEMA, MADE, "f", "t" },
        { "SELECT 1 AS as INTO x", RIGHT_SCHEMA, MADE, "f", "t" },
        { "SELECT 1 AS \"as\"/**/INTO/**/\"INTO\"", RIGHT_SCHEMA, MADE, "f", "t" },
        { "SELECT (1) insert INTO x", RIGHT_SCHEMA, MADE, "f", "t" },
        { "WITH a AS (SELECT 1 AS n) SELECT * INTO x FROM a", RIGHT_SCHEMA, MADE, "f", "t" },
        { "WITH a AS (SELECT 1 AS n) SELECT (1) insert INTO x FROM a", RIGHT_SCHEMA, MADE, "f", "t" },
        { "WITH a AS (DELETE FROM album RETURNING id) SELECT * INTO x FROM a", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN ANALYZE VERBOSE CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN /* SELECT */ ANALYSE -- SELECT\n CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN (ANALYZE) CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN (ANALYZE 'true', BUFFERS) CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN (ANALYZE off, ANALYZE 1) CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN (\"analyze\" on) CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN (U&\"\\0061nalyze\") CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN (U&\"!0061nalyze\" UESCAPE '!') CREATE TABLE x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN ANALYZE CREATE MATERIALIZED VIEW x AS SELECT 1", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN ANALYZE SELECT * INTO x FROM album", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN ANALYZE (SELECT * INTO x FROM album)", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN (ANALYZE) (SELECT * INTO x FROM album)", RIGHT_SCHEMA, MADE, "f", "t" },
        { "EXPLAIN ANALYZE WITH a AS (SELECT 1 AS n) SELECT * INTO x FROM a", RIGHT_SCHEMA, MADE, "f", "t" },
        { "DO 'BEGIN CREATE TABLE x(n int); END'", RIGHT_SCHEMA, MADE, "f", "t" },
        { "ANALYZE", RIGHT_SCHEMA, ANALYZED, "f", "t" },
        { "ANALYSE VERBOSE album", RIGHT_SCHEMA, ANALYZED, "f", "t" },
        { "analyze (verbose) album(title)", RIGHT_SCHEMA, ANALYZED, "f", "t" },
        { "CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT 1'", RIGHT_SCHEMA, CODED, "0", "1" },
        { "CREATE FUNCTION made() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END", RIGHT_SCHEMA, CODED, "0", "1" },
        { "EXPLAIN ANALYZE EXECUTE p", RIGHT_NOBODY, MADE, "f", "f" },
        { "EXPLAIN (ANALYZE) DECLARE c CURSOR FOR SELECT 1", RIGHT_NOBODY, MADE, "f", "f" },
        { "EXPLAIN ANALYZE CREATE TABLE x AS EXECUTE p", RIGHT_NOBODY, MADE, "f", "f" },
        { "EXPLAIN VERBOSE ANALYZE CREATE TABLE x AS SELECT 1", RIGHT_NOBODY, MADE, "f", "f" },
        { "PREPARE p AS SELECT 1", RIGHT_NOBODY, MADE, "f", "f" },
        { "COPY album TO PROGRAM 'true'", RIGHT_NOBODY, ROWS, "2", "2" },
        { "COPY (SELECT 1) TO STDOUT", RIGHT_NOBODY, ROWS, "2", "2" },
        { "SET ROLE postgres", RIGHT_NOBODY, ROWS, "2", "2" },
        { "nonsense", RIGHT_NOBODY, ROWS, "2", "2" },
};

/* As the core: true if the statement needs a transaction that writes, and may have one. */
static bool needs_writer(Fixture *f, const char *sql) {
        EngineStatement *statement;
        EngineConnection *c;
        bool writes = false;

        g_assert_true(engine->connect(f->pool, sql, strlen(sql), NULL, &c, &f->error));
        if (engine->compile(c, sql, strlen(sql), false, NULL, &statement, &f->error)) {
                writes = engine->writes(statement);
                engine->release(statement);
        }
        engine->disconnect(f->pool, c);
        sql_error_done(&f->error);
        return writes;
}

/* Alone, or in a transaction that a client has begun, which writes. */
static void try_statement(size_t i, Right right, bool inside) {
        const char *sql = statements[i].sql, *after = statements[i].after;
        g_autofree char *rows = NULL, *value = NULL;
        bool allowed = statements[i].right <= right, writes;
        Fixture f;

        set_up(&f, right > RIGHT_READ);
        f.setup.write_schema = right == RIGHT_SCHEMA;
        postgres_rig_exec(&rig, "SET ROLE tester; CREATE MATERIALIZED VIEW empty AS SELECT 1 WITH NO DATA; RESET ROLE");
        writes = inside || (needs_writer(&f, sql) && right > RIGHT_READ);
        if (writes)
                begin(&f);
        rows = run(&f, sql, NULL, 0);
        if (allowed && !rows)
                g_error("%s, right %d, inside %d: %s", sql, right, inside, f.error.message);
        if (!allowed && rows)
                g_error("%s, right %d, inside %d: it was run", sql, right, inside);
        if (!allowed && (inside || statements[i].right == RIGHT_SCHEMA) && right == RIGHT_WRITE &&
            statements[i].right != RIGHT_NOBODY)
                g_assert_nonnull(strstr(f.error.message, "is not allowed: WriteSchema= is off"));
        if (writes)
                commit(&f);
        value = postgres_rig_value(&rig, statements[i].probe);
        if (g_strcmp0(value, allowed ? after : statements[i].before) != 0)
                g_error("%s, right %d, inside %d: %s", sql, right, inside, value);
        tear_down(&f);
}

static void test_rights(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(statements); i++) {
                try_statement(i, RIGHT_READ, false);
                for (Right right = RIGHT_WRITE; right <= RIGHT_SCHEMA; right++) {
                        try_statement(i, right, false);
                        try_statement(i, right, true);
                }
        }
}

/* Functions whose effect a transaction that only reads would lose, although the server lets it call them, take effect by
 * a transaction that writes, or are refused. */
static void test_functions_with_effect(void) {
        static const char objects[] = "SELECT count(*) FROM pg_largeobject_metadata", heard[] = "LISTEN heard";
        static const char *const notifies[] = {
                "SELECT pg_notify('heard', 'x')", "select pg_catalog . PG_NOTIFY /* */ ('heard', 'x') FROM album",
                "SELECT \"pg_notify\"('heard', 'x')", "WITH a AS (SELECT pg_notify('heard', 'x')) SELECT * FROM a",
                "VALUES (pg_notify('heard', 'x'))", "EXPLAIN ANALYZE SELECT pg_notify('heard', 'x')",
        };
        static const char *const others[] = {
                "SELECT lo_creat(-1)", "SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT lo_put(77, 0, 'x')",
                "SELECT lo_truncate(lo_open(77, 131072), 0)", "SELECT lo_truncate64(lo_open(77, 131072), 0)",
                "SELECT lowrite(lo_open(77, 131072), 'x')", "SELECT lo_unlink(77)",
                "SELECT pg_logical_emit_message(true, 'x', 'y')",
        };
        static const char *const reading[] = {
                "SELECT lo_put, 'pg_notify(1)' FROM (SELECT 1 AS lo_put) a", "EXPLAIN SELECT pg_notify('heard', 'x')",
                "SELECT loread(lo_open(78, 262144), 1)", "SELECT lo_get(78) -- lo_put(1)",
        };
        PGnotify *notice;
        Fixture f;

        postgres_rig_exec(&rig, "SELECT lo_create(78); GRANT SELECT ON LARGE OBJECT 78 TO PUBLIC");
        set_up(&f, false);
        for (size_t i = 0; i < G_N_ELEMENTS(notifies); i++)
                REFUSED(&f, notifies[i], ERROR_READ_ONLY, "you may only read");
        for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
                REFUSED(&f, others[i], ERROR_READ_ONLY, "you may only read");
        for (size_t i = 0; i < G_N_ELEMENTS(reading); i++) {
                g_autofree char *rows = run(&f, reading[i], NULL, 0);

                g_assert_nonnull(rows);
        }
        tear_down(&f);
        set_up(&f, true);
        for (size_t i = 0; i < G_N_ELEMENTS(reading); i++)
                g_assert_false(needs_writer(&f, reading[i]));
        for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
                g_assert_true(needs_writer(&f, others[i]));
        postgres_rig_exec(&rig, heard);
        for (size_t i = 0; i < G_N_ELEMENTS(notifies); i++) {
                g_autofree char *rows = NULL;

                g_assert_true(needs_writer(&f, notifies[i]));
                begin(&f);
                rows = run(&f, notifies[i], NULL, 0);
                g_assert_nonnull(rows);
                commit(&f);
                postgres_rig_exec(&rig, heard); /* after it all notices have come */
                notice = PQnotifies(rig.connection);
                g_assert_nonnull(notice);
                PQfreemem(notice);
        }
        begin(&f);
        {
                g_autofree char *before = postgres_rig_value(&rig, objects), *rows = NULL, *after = NULL;

                rows = run(&f, "SELECT lo_from_bytea(0, 'x')", NULL, 0);
                g_assert_nonnull(rows);
                commit(&f);
                after = postgres_rig_value(&rig, objects);
                g_assert_cmpint(atoi(after), ==, atoi(before) + 1);
        }
        postgres_rig_exec(&rig, "UNLISTEN heard; SELECT lo_unlink(78)");
        tear_down(&f);
}

#define FUNCTIONS                                                                                                         \
        "CREATE TABLE job(id serial PRIMARY KEY, name text UNIQUE);"                                                      \
        "INSERT INTO job(name) VALUES('old');"                                                                            \
        "CREATE FUNCTION tell() RETURNS int LANGUAGE plpgsql AS $$ BEGIN -- now\n NOTIFY heard; RETURN 1; END $$;"       \
        "CREATE FUNCTION \"Tell \"\"It\"(text) RETURNS int LANGUAGE sql AS "                                          \
        "$$ SELECT length(pg_notify('heard', $1)::text) $$;"                                                              \
        "CREATE FUNCTION dynamic() RETURNS int LANGUAGE plpgsql AS "                                                      \
        "$$ BEGIN EXECUTE format('NOTIFY heard, %L', 'x'); RETURN 1; END $$;"                                             \
        "CREATE FUNCTION body() RETURNS void BEGIN ATOMIC SELECT pg_notify('heard', 'x'); END;"                           \
        "CREATE FUNCTION nested(x int) RETURNS int LANGUAGE sql AS $$ SELECT 1 FROM (SELECT body()) AS a $$;"             \
        "CREATE FUNCTION outer_body() RETURNS int BEGIN ATOMIC SELECT nested(1); END;"                                    \
        "CREATE FUNCTION \"Odd Name\"() RETURNS int LANGUAGE sql AS $$ SELECT tell() $$;"                                 \
        "CREATE FUNCTION \"join\"() RETURNS int LANGUAGE sql AS 'SELECT tell()';"                                         \
        "CREATE FUNCTION \"Round\"() RETURNS int LANGUAGE sql AS 'SELECT tell()';"                                        \
        "CREATE FUNCTION odd() RETURNS int LANGUAGE sql AS $$ SELECT 1 + \"Odd Name\" () $$;"                             \
        "CREATE FUNCTION keeps(x text) RETURNS int LANGUAGE sql AS $$ SELECT lo_create(0)::int $$;"                       \
        "CREATE FUNCTION step(int, int) RETURNS int LANGUAGE sql AS $$ SELECT tell() $$;"                                 \
        "CREATE AGGREGATE tells(int) (SFUNC = step, STYPE = int, INITCOND = '0');"                                        \
        "CREATE FUNCTION reads(x int) RETURNS bigint LANGUAGE sql AS $$ "                                                 \
        "SELECT count(*) FROM (SELECT true AS notify) AS a WHERE notify AND 'pg_notify' <> '' -- notify them\n $$;"      \
        "CREATE FUNCTION enqueue(x text) RETURNS int LANGUAGE sql AS "                                                    \
        "$$ INSERT INTO job(name) VALUES(x) RETURNING 1 $$;"                                                              \
        "CREATE FUNCTION get_or_create(x text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN "                                \
        "IF NOT EXISTS (SELECT FROM job WHERE name = x) THEN INSERT INTO job(name) VALUES(x); END IF; RETURN x; END $$;"  \
        "CREATE FUNCTION again(n int) RETURNS int LANGUAGE plpgsql AS "                                                   \
        "$$ BEGIN IF n > 0 THEN RETURN again(n - 1); END IF; RETURN tell(); END $$;"                                      \
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO tester; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO tester;"

static void expect_notice(const char *sql, bool expected) {
        PGnotify *notice;

        postgres_rig_exec(&rig, "LISTEN heard"); /* after it all notices have come */
        notice = PQnotifies(rig.connection);
        if (!notice == expected)
                g_error("%s: %s", sql, expected ? "there is no notice" : "there is a notice");
        while (notice) {
                PQfreemem(notice);
                notice = PQnotifies(rig.connection);
        }
}

/* The same for functions of users that call them. */
static void test_functions_of_users(void) {
        static const char *const notify[] = {
                "SELECT tell()", "SELECT * FROM public.Tell ()", "SELECT \"Tell \"\"It\"('x')", "SELECT dynamic()",
                "SELECT body()", "SELECT nested(1) FROM album", "SELECT outer_body()", "SELECT tells(1)", "SELECT again(3)",
                "SELECT odd()", "WITH a AS (SELECT tell() AS n) SELECT n FROM a", "EXPLAIN ANALYZE SELECT tell()",
                "SELECT \"join\"()", "SELECT \"Round\"()",
        };
        static const char *const read[] = {
                "SELECT reads(1)", "SELECT lower('x'), count(*), length('tell()')", "EXPLAIN SELECT tell()",
                "SELECT tell FROM (SELECT 1 AS tell) AS a",
        };
        Fixture f;

        set_up(&f, false);
        postgres_rig_exec(&rig, FUNCTIONS);
        postgres_rig_exec(&rig, "LISTEN heard");
        for (size_t i = 0; i < G_N_ELEMENTS(notify); i++) {
                REFUSED(&f, notify[i], ERROR_READ_ONLY, "a function that this statement calls");
                expect_notice(notify[i], false);
        }
        REFUSED(&f, "SELECT keeps('x')", ERROR_READ_ONLY, "a function that this statement calls");
        for (size_t i = 0; i < G_N_ELEMENTS(read); i++) {
                g_autofree char *rows = run(&f, read[i], NULL, 0);

                g_assert_nonnull(rows);
        }
        EXPECT(&f, "SELECT get_or_create(?)", "t:old", "t:old");
        REFUSED(&f, "SELECT get_or_create(?)", ERROR_READ_ONLY, "read-only transaction", "t:new");
        REFUSED(&f, "SELECT enqueue('x')", ERROR_READ_ONLY, "read-only transaction");
        tear_down(&f);

        set_up(&f, true);
        postgres_rig_exec(&rig, FUNCTIONS);
        for (size_t i = 0; i < G_N_ELEMENTS(read); i++)
                g_assert_false(needs_writer(&f, read[i]));
        for (size_t i = 0; i < G_N_ELEMENTS(notify); i++) {
                g_autofree char *rows = NULL;

                g_assert_true(needs_writer(&f, notify[i]));
                begin(&f);
                rows = run(&f, notify[i], NULL, 0);
                g_assert_nonnull(rows);
                g_assert_true(engine->must_commit(f.writer));
                commit(&f);
                expect_notice(notify[i], true);
        }
        g_assert_true(needs_writer(&f, "SELECT keeps('x')"));
        g_assert_true(needs_writer(&f, "SELECT enqueue('x')"));
        g_assert_true(needs_writer(&f, "SELECT get_or_create(?)"));
        /* in a transaction that only reads, the server may refuse the change, but no effect is lost */
        g_assert_true(engine->connect(f.pool, "", 0, NULL, &f.connection, &f.error));
        g_assert_true(engine->snapshot(f.connection, &f.error));
        EXPECT(&f, "SELECT get_or_create(?)", "t:old", "t:old");
        engine->disconnect(f.pool, f.connection);
        f.connection = NULL;
        g_assert_true(needs_writer(&f, "SELECT get_or_create(?)"));
        /* it is asked without a description, too, a moment after the function was replaced */
        g_assert_false(needs_writer(&f, "SELECT reads(1)"));
        postgres_rig_exec(&rig, "CREATE OR REPLACE FUNCTION reads(x int) RETURNS bigint LANGUAGE sql AS "
                                "$$ SELECT tell()::bigint $$");
        while (!needs_writer(&f, "SELECT reads(1)"))
                g_usleep(10000);
        postgres_rig_exec(&rig, "CREATE OR REPLACE FUNCTION reads(x int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'");
        while (needs_writer(&f, "SELECT reads(1)"))
                g_usleep(10000);
        EXPECT(&f, "SELECT reads(1)", "i:1");
        postgres_rig_exec(&rig, "UNLISTEN heard; SELECT lo_unlink(oid) FROM pg_largeobject_metadata");
        tear_down(&f);
}

/* If a transaction has the server read strings in another way, what the engine takes for a string would be a command. */
static void test_other_reading(void) {
        static const char *const settings[][2] = {
                { "SELECT set_config('standard_conforming_strings', 'off', true)",
                  "EXPLAIN ANALYZE SELECT '\\'' INTO x --'" },
                { "UPDATE pg_settings SET setting = 'off' WHERE name = 'standard_conforming_strings'",
                  "EXPLAIN ANALYZE SELECT '\\'' INTO x --'" },
                { "SELECT set_config('client_encoding', 'SJIS', true)", "EXPLAIN ANALYZE SELECT E'\x83\\' INTO x --'" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(settings); i++) {
                g_autofree char *rows = NULL;
                Fixture f;

                set_up(&f, true);
                f.setup.write_schema = false;
                begin(&f);
                rows = run(&f, settings[i][0], NULL, 0);
                g_assert_nonnull(rows);
                REFUSED(&f, settings[i][1], ERROR_NOT_ALLOWED, "so that SQL has another meaning");
                REFUSED(&f, "SELECT 1", ERROR_NOT_ALLOWED, "so that SQL has another meaning");
                commit(&f);
                expect_value(MADE, "f");
                EXPECT(&f, "SELECT '\\'", "t:\\"); /* the next user of the connection has another setting again */
                tear_down(&f);
        }
}

/* A result of many pages, and one that is not read to its end. */
static void test_many_rows(void) {
        g_autofree char *rows = NULL;
        Fixture f;

        set_up(&f, false);
        rows = run(&f, "SELECT i, 'row ' || i FROM generate_series(1, 100000) i", NULL, 0);
        g_assert_nonnull(rows);
        g_assert_true(g_str_has_suffix(rows, "\ni:100000|t:row 100000"));
        for (unsigned i = 0; i < 3; i++) {
                static uint8_t memory[PAGE_SIZE];
                static const PageWriter writer = { .fd = -1 };
                PageEncoder encoder;
                RowSink sink = {
                        .encoder = &encoder, .writer = &writer, .row_size_max = PAGE_SIZE, .n_rows_max = UINT64_MAX,
                };
                const char *sql = i == 0 ? "SELECT i FROM generate_series(1, 20000) i"
                                         : "SELECT generate_series(1, 100000000), repeat('x', 100)";
                JobSpec none = { .deadline_usec = UINT64_MAX };
                EngineConnection *c;
                EngineStatement *s;

                page_encoder_init(&encoder, memory, sizeof memory, 1);
                g_assert_true(engine->connect(f.pool, "", 0, NULL, &c, &f.error));
                g_assert_true(engine->compile(c, sql, strlen(sql), false, NULL, &s, &f.error));
                g_assert_true(engine->bind(s, &none, &f.error));
                g_assert_cmpint(engine->step(s, &sink, &f.error), ==, ENGINE_ROW);
                g_assert_cmpint(engine->fill(s, &sink, &f.error), ==, ENGINE_PAGE_FULL);
                engine->release(s);
                engine->disconnect(f.pool, c);
                EXPECT(&f, "SELECT 1", "i:1");
        }
        tear_down(&f);
}

/* ---- writing ---- */

static void test_write(void) {
        Fixture f;

        set_up(&f, true);
        begin(&f);
        EXPECT(&f, "INSERT INTO album VALUES(?, ?), (4, 'fourth')", "", "i:3", "t:third");
        g_assert_cmpint(f.n_changes, ==, 2);
        EXPECT(&f, "UPDATE album SET title = title || '!' WHERE id > 2 RETURNING id, title", "i:3|t:third!\ni:4|t:fourth!");
        g_assert_cmpint(f.n_changes, ==, 2);
        EXPECT(&f, "SELECT count(*) FROM album", "i:4");
        expect_value("SELECT count(*) FROM album", "2");
        REFUSED(&f, "INSERT INTO album VALUES(1, 'again')", ERROR_SQL, "duplicate key");
        g_assert_cmpint(f.error.extended_code, ==, 2067);
        REFUSED(&f, "INSERT INTO track(album) VALUES(77)", ERROR_SQL, "foreign key");
        g_assert_cmpint(f.error.extended_code, ==, 787);
        REFUSED(&f, "INSERT INTO nowhere VALUES(1)", ERROR_SQL, "does not exist");
        REFUSED(&f, "SAVEPOINT x", ERROR_NOT_ALLOWED, "only allowed in a transaction");
        EXPECT(&f, "CREATE TABLE more(x int)", "");
        commit(&f);
        expect_value("SELECT string_agg(title, ',' ORDER BY id) FROM album", "first,second,third!,fourth!");
        begin(&f);
        EXPECT(&f, "DELETE FROM album", "");
        EXPECT(&f, "DROP TABLE more", "");
        engine->rollback(f.writer);
        end(&f);
        expect_value("SELECT count(*) FROM album", "4");
        begin(&f);
        commit(&f); /* nothing was done */
        EXPECT(&f, "SELECT count(*) FROM more", "i:0");
        tear_down(&f);
}

/* Nothing that a client's transaction has left in the session reaches the next user of the connection, who may only read. */
static void test_session(void) {
        Fixture f;

        set_up(&f, true);
        postgres_rig_exec(&rig, "CREATE FUNCTION leave() RETURNS int LANGUAGE plpgsql AS "
                                "'BEGIN CREATE TEMP TABLE left_over(x int); LISTEN left_over; PERFORM pg_advisory_lock(5); "
                                "EXECUTE ''DECLARE left_over CURSOR WITH HOLD FOR SELECT 1''; RETURN 1; END'");
        begin(&f);
        EXPECT(&f, "SELECT leave(), set_config('search_path', 'pg_catalog', false)", "i:1|t:pg_catalog");
        EXPECT(&f, "SELECT set_config('application_name', 'left over', false)", "t:left over");
        EXPECT(&f, "INSERT INTO public.album VALUES(3, 'x')", "");
        commit(&f);
        EXPECT(&f, "SELECT current_setting('search_path'), current_setting('application_name') = 'left over'",
               "t:\"$user\", public|i:0");
        EXPECT(&f, "SELECT to_regclass('pg_temp.left_over') IS NULL, (SELECT count(*) FROM pg_listening_channels()), "
                   "(SELECT count(*) FROM pg_cursors WHERE is_holdable), "
                   "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())",
               "i:1|i:0|i:0|i:0");
        begin(&f);
        EXPECT(&f, "SELECT current_setting('search_path')", "t:\"$user\", public");
        commit(&f);
        tear_down(&f);
}

/* A statement that may change the session has the transaction committed before that of another client. */
static void test_must_commit(void) {
        static const char *const changes[] = { "SELECT set_config('role', 'none', false)", "CREATE TEMP TABLE album(id int)",
                                               "DO 'BEGIN SET search_path = nowhere; END'" };
        Fixture f;

        set_up(&f, true);
        for (size_t i = 0; i < G_N_ELEMENTS(changes); i++) {
                begin(&f);
                EXPECT(&f, "UPDATE album SET title = 'x' WHERE id = 1", "");
                g_assert_false(engine->must_commit(f.writer));
                g_free(run(&f, changes[i], NULL, 0));
                g_assert_true(engine->must_commit(f.writer));
                commit(&f);
        }
        tear_down(&f);
}

static void test_savepoints(void) {
        Fixture f;

        set_up(&f, true);
        begin(&f);
        engine->allow_savepoints(f.writer);
        EXPECT(&f, "SELECT current_setting('transaction_isolation')", "t:serializable");
        EXPECT(&f, "INSERT INTO album VALUES(3, 'third')", "");
        EXPECT(&f, "SAVEPOINT a", "");
        EXPECT(&f, "DELETE FROM album", "");
        EXPECT(&f, "ROLLBACK TO a", "");
        EXPECT(&f, "SELECT count(*) FROM album", "i:3");
        REFUSED(&f, "SAVEPOINT sqlipc_statement", ERROR_NOT_ALLOWED, "the service itself");
        REFUSED(&f, "RELEASE b", ERROR_SQL, "savepoint \"b\" does not exist");
        EXPECT(&f, "RELEASE a", "");
        REFUSED(&f, "ROLLBACK TO a", ERROR_SQL, "does not exist");
        EXPECT(&f, "INSERT INTO album VALUES(4, 'fourth')", "");
        commit(&f);
        expect_value("SELECT count(*) FROM album", "4");
        tear_down(&f);
}

/* A snapshot stays the same, and a failure does not end it. */
static void test_snapshot(void) {
        Fixture f;

        set_up(&f, true);
        g_assert_true(engine->connect(f.pool, "", 0, NULL, &f.connection, &f.error));
        g_assert_true(engine->snapshot(f.connection, &f.error));
        postgres_rig_exec(&rig, "INSERT INTO album VALUES(3, 'third')");
        EXPECT(&f, "SELECT count(*) FROM album", "i:2");
        REFUSED(&f, "SELECT 1/0", ERROR_SQL, "division");
        REFUSED(&f, "SELECT nothing FROM album", ERROR_SQL, "does not exist");
        g_assert_true(engine->is_in_transaction(f.connection));
        EXPECT(&f, "SELECT count(*) FROM album", "i:2");
        engine->disconnect(f.pool, f.connection);
        f.connection = NULL;
        EXPECT(&f, "SELECT count(*) FROM album", "i:3");
        tear_down(&f);
}

/* ---- loads ---- */

static bool load(Fixture *f, const char *sql, unsigned n_rows, EngineRowFor row_for, RowSource *source) {
        EngineStatement *statement;
        bool ok;

        sql_error_done(&f->error);
        if (!engine->compile(f->writer, sql, strlen(sql), false, NULL, &statement, &f->error))
                g_error("%s: %s", sql, f->error.message);
        g_assert_true(engine->takes_rows(statement, &f->error));
        engine_rows_feed(source, n_rows, 3, row_for, NULL);
        g_assert_cmpint(source->event, ==, PAGE_ROW);
        ok = engine->load(statement, source, &f->error);
        engine->release(statement);
        page_decoder_done(&source->decoder);
        return ok;
}

static void good_row(void *userdata, unsigned i, const char **values) {
        static char id[32];

        (void) g_snprintf(id, sizeof id, "i:%u", i + 100);
        values[0] = id;
        values[1] = i % 2 == 0 ? "t:tab\tnew\nback\\slash \\." : "null";
        values[2] = i % 3 == 0 ? "t:1.50" : "i:7";
}

/* Row 1500 has the number of another one. */
static void double_row(void *userdata, unsigned i, const char **values) {
        good_row(userdata, i == 1499 ? 3 : i, values);
}

/* Row 1500 has a number that is too large for numeric(6, 2). */
static void large_row(void *userdata, unsigned i, const char **values) {
        good_row(userdata, i, values);
        if (i == 1499)
                values[2] = "i:123456";
}

static void test_load(void) {
        static const struct {
                const char *sql, *n, *sum;
        } ways[] = {
                { "INSERT INTO track(id, name, price) VALUES(?, ?, ?)", "3000", "15500.00" }, /* by COPY */
                { "INSERT INTO track(id, name, price) SELECT ?::bigint, ?, ?", "3000", "15500.00" },
                { "INSERT INTO titles(id, name, price) VALUES(?, ?, ?)", "3000", "15500.00" }, /* a view */
        };
        RowSource source;
        Fixture f;

        set_up(&f, true);
        postgres_rig_exec(&rig, "SET ROLE tester; CREATE VIEW titles AS SELECT id, name, price FROM track; RESET ROLE");
        for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
                begin(&f);
                if (!load(&f, ways[i].sql, 3000, good_row, &source))
                        g_error("%s: %s", ways[i].sql, f.error.message);
                g_assert_cmpint(source.n_rows, ==, 3000);
                g_assert_cmpint(source.n_changes, ==, 3000);
                commit(&f);
                expect_value("SELECT count(*) FROM track", ways[i].n);
                expect_value("SELECT sum(price) FROM track", ways[i].sum);
                expect_value("SELECT count(*) FROM track WHERE name = E'tab\\tnew\\nback\\\\slash \\\\.'", "1500");
                expect_value("SELECT count(*) FROM track WHERE name IS NULL", "1500");
                postgres_rig_exec(&rig, "DELETE FROM track");
                for (unsigned k = 0; k < 2; k++) {
                        begin(&f);
                        g_assert_true(engine->save(f.writer, &f.error));
                        g_assert_false(load(&f, ways[i].sql, 3000, k == 0 ? double_row : large_row, &source));
                        g_assert_cmpint(f.error.error, ==, ERROR_SQL);
                        g_assert_cmpint(f.error.extended_code, ==, k == 0 ? 2067 : 1);
                        g_assert_cmpint(source.n_rows, ==, 1499);
                        g_assert_true(engine->is_in_transaction(f.writer));
                        engine->undo(f.writer);
                        EXPECT(&f, "SELECT count(*) FROM track", "i:0");
                        EXPECT(&f, "INSERT INTO track(id) VALUES(1)", "");
                        commit(&f);
                        postgres_rig_exec(&rig, "DELETE FROM track");
                }
        }
        begin(&f);
        REFUSED(&f, "INSERT INTO track(small) VALUES(?)", ERROR_PARAMETER_TYPE, "a smallint", "i:70000");
        commit(&f);
        tear_down(&f);
}

/* ---- tables ---- */

static int compare(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static char *join(EngineTables *tables) {
        g_autoptr(GString) all = g_string_new(NULL);

        if (tables->n > 0)
                qsort(tables->names, tables->n, sizeof *tables->names, compare);
        for (size_t i = 0; i < tables->n; i++)
                g_string_append_printf(all, "%s%s", i > 0 ? " " : "", tables->names[i]);
        engine_tables_done(tables);
        return g_string_free(g_steal_pointer(&all), FALSE);
}

static void expect_watched(Fixture *f, const char *sql, size_t size, bool names, const char *tables, const char *shown) {
        g_autofree char *got = NULL, *got_shown = NULL;
        EngineConnection *c;
        EngineWatched w;

        sql_error_done(&f->error);
        g_assert_true(engine->connect(f->pool, "", 0, NULL, &c, &f->error));
        if (!engine->watched(c, sql, size, names, &w, &f->error))
                g_error("%s: %s", sql, f->error.message);
        engine->disconnect(f->pool, c);
        got = join(&w.tables);
        got_shown = join(&w.names);
        g_assert_cmpstr(got, ==, tables);
        g_assert_cmpstr(got_shown, ==, shown);
}

static void test_watched(void) {
        EngineConnection *c;
        EngineWatched w;
        Fixture f;

        set_up(&f, false);
        postgres_rig_exec(&rig, "CREATE VIEW titles AS SELECT title, name FROM album JOIN track ON album.id = track.album;"
                                "CREATE SCHEMA other CREATE TABLE far(x int) PARTITION BY RANGE (x);"
                                "CREATE TABLE other.near PARTITION OF other.far FOR VALUES FROM (1) TO (9);"
                                "GRANT USAGE ON SCHEMA other TO tester");
        expect_watched(&f, "SELECT 1", 8, false, "", "");
        expect_watched(&f, "SELECT * FROM album WHERE id = ?", 32, false, "public.album", "album");
        expect_watched(&f, "WITH a AS (SELECT 1 FROM titles) SELECT 1 FROM a WHERE false", 60, false,
                       "public.album public.titles public.track", "album titles track");
        expect_watched(&f, "SELECT * FROM other.far", 23, false, "other.far other.near", "other.far other.near");
        expect_watched(&f, "Album\0other.near", 17, true, "other.near public.album", "album other.near");
        g_assert_true(engine->connect(f.pool, "", 0, NULL, &c, &f.error));
        g_assert_false(engine->watched(c, "nothing", 8, true, &w, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_SQL);
        sql_error_done(&f.error);
        g_assert_false(engine->watched(c, "SELECT x FROM album", 19, false, &w, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_SQL);
        sql_error_done(&f.error);
        g_assert_false(engine->watched(c, "DELETE FROM album", 17, false, &w, &f.error));
        sql_error_done(&f.error);
        postgres_rig_exec(&rig, FUNCTIONS);
        g_assert_false(engine->watched(c, "SELECT tell() FROM album", 24, false, &w, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_NOT_ALLOWED);
        sql_error_done(&f.error);
        expect_watched(&f, "SELECT reads(1) FROM album", 26, false, "public.album", "album");
        engine->disconnect(f.pool, c);
        EXPECT(&f, "SELECT 1", "i:1");
        postgres_rig_exec(&rig, "DROP SCHEMA other CASCADE");
        tear_down(&f);
}

/* Runs a statement in the transaction, and adds the tables that it writes, as the core asks for them. */
static void run_in_transaction(Fixture *f, const char *sql, EngineWritten *written) {
        EngineStatement *statement;
        g_autofree char *rows = NULL;
        JobSpec none = { .deadline_usec = UINT64_MAX };

        g_assert_true(engine->save(f->writer, &f->error));
        if (!engine->compile(f->writer, sql, strlen(sql), false, NULL, &statement, &f->error))
                g_error("%s: %s", sql, f->error.message);
        g_assert_true(engine->bind(statement, &none, &f->error));
        rows = engine_rows_read(engine, statement, &f->error);
        g_assert_nonnull(rows);
        engine->written(statement, written);
        engine->release(statement);
        g_assert_true(engine->keep(f->writer, &f->error));
}

static void expect_written(Fixture *f, const char *sql, const char *tables) {
        EngineWritten written = {};
        g_autofree char *got = NULL;

        begin(f);
        run_in_transaction(f, sql, &written);
        got = written.any ? g_strdup(written.schema ? "any schema" : "any") : join(&written.tables);
        g_assert_cmpstr(got, ==, tables);
        engine_written_done(&written);
        commit(f);
}

static void test_written(void) {
        Fixture f;

        set_up(&f, true);
        for (unsigned i = 0; i < 2; i++) { /* the second time from the cache */
                expect_written(&f, "UPDATE track SET name = 'x'", "public.track");
                expect_written(&f, "INSERT INTO track(name) SELECT title FROM album", "public.track");
                expect_written(&f, "DELETE FROM album WHERE id = 77", "public.album public.track");
        }
        expect_written(&f, "CREATE TABLE more(x int)", "any schema");
        expect_written(&f, "TRUNCATE more", "any");
        postgres_rig_exec(&rig, "CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;"
                                "CREATE TRIGGER t AFTER INSERT ON more FOR EACH ROW EXECUTE FUNCTION t()");
        expect_written(&f, "INSERT INTO more VALUES(1)", "any");
        postgres_rig_exec(&rig, FUNCTIONS);
        for (unsigned i = 0; i < 2; i++) { /* as they do it this time */
                expect_written(&f, "SELECT get_or_create('old')", "");
                expect_written(&f, "SELECT tell()", "");
                expect_written(&f, "SELECT enqueue('more' || (SELECT count(*) FROM job))", "public.job");
        }
        postgres_rig_exec(&rig, "CREATE FUNCTION make() RETURNS int LANGUAGE plpgsql AS "
                                "'BEGIN CREATE TABLE made(n int); RETURN 1; END'");
        expect_written(&f, "SELECT make()", "any schema");
        tear_down(&f);
}

/* The state before a transaction and after it tell if another program has committed in between. */
static void test_state(void) {
        Fixture f;

        set_up(&f, true);
        for (unsigned foreign = 0; foreign < 2; foreign++) {
                FileState before, after;

                begin(&f);
                engine->state(f.writer, &before);
                g_assert_cmpint(before.kind, ==, FILE_STATE_SERVER);
                EXPECT(&f, "UPDATE album SET title = title || 'x'", "");
                EXPECT(&f, "UPDATE album SET title = title || 'y'", "");
                if (foreign)
                        postgres_rig_exec(&rig, "INSERT INTO track(name) VALUES('foreign')");
                g_assert_true(engine->commit(f.writer, &f.error));
                engine->state(f.writer, &after);
                g_assert_cmpint(after.kind, ==, foreign ? FILE_STATE_UNKNOWN : FILE_STATE_SERVER);
                g_assert_false(file_state_same(&before, &after));
                end(&f);
        }
        begin(&f);
        EXPECT(&f, "DELETE FROM album WHERE id = 77", "");
        commit(&f);
        tear_down(&f);
}

/* The same for a query whose function writes, or does not: then a commit of another program is not taken for its own. */
static void test_state_of_functions(void) {
        static const struct {
                const char *sql;
                bool foreign;
                FileStateKind kind;
                bool same;
        } vectors[] = {
                { "SELECT enqueue('a')", false, FILE_STATE_SERVER, false },
                { "SELECT enqueue('b')", true, FILE_STATE_UNKNOWN, false },
                { "SELECT get_or_create('old')", false, FILE_STATE_SERVER, true },
                { "SELECT get_or_create('old')", true, FILE_STATE_UNKNOWN, false },
                { "SELECT pg_notify('heard', 'x')", true, FILE_STATE_UNKNOWN, false },
        };
        Fixture f;

        set_up(&f, true);
        postgres_rig_exec(&rig, FUNCTIONS);
        for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++) {
                EngineWritten written = {};
                FileState before, after;

                begin(&f);
                engine->state(f.writer, &before);
                run_in_transaction(&f, vectors[i].sql, &written);
                engine_written_done(&written);
                if (vectors[i].foreign)
                        postgres_rig_exec(&rig, "INSERT INTO track(name) VALUES('foreign')");
                g_assert_true(engine->commit(f.writer, &f.error));
                engine->state(f.writer, &after);
                g_assert_cmpint(after.kind, ==, vectors[i].kind);
                g_assert_cmpint(file_state_same(&before, &after), ==, vectors[i].same);
                end(&f);
        }
        tear_down(&f);
}

/* Two statements of one savepoint take one number, and hide no commit of another program. */
static void test_state_of_list(void) {
        FileState before, after;
        Fixture f;

        set_up(&f, true);
        begin(&f);
        engine->state(f.writer, &before);
        g_assert_true(engine->save(f.writer, &f.error));
        f.joined = true;
        EXPECT(&f, "UPDATE album SET title = title || 'x'", "");
        EXPECT(&f, "UPDATE album SET title = title || 'y'", "");
        g_assert_true(engine->keep(f.writer, &f.error));
        postgres_rig_exec(&rig, "INSERT INTO track(name) VALUES('foreign')");
        g_assert_true(engine->commit(f.writer, &f.error));
        engine->state(f.writer, &after);
        g_assert_cmpint(after.kind, ==, FILE_STATE_UNKNOWN);
        end(&f);
        tear_down(&f);
}

static void test_observe(void) {
        Observed first, second, third;
        Fixture f;

        set_up(&f, false);
        engine->observe(f.pool, -1, &first);
        engine->observe(f.pool, -1, &second);
        g_assert_cmpint(first.state.kind, ==, FILE_STATE_SERVER);
        g_assert_true(first.polls && file_state_same(&first.state, &second.state));
        g_assert_false(engine->heard(f.pool));
        postgres_rig_exec(&rig, "BEGIN; DELETE FROM track; SELECT pg_notify('sqlipc_changes', 'public.track');"
                                "INSERT INTO track(name) VALUES('x'); COMMIT");
        while (!engine->heard(f.pool))
                g_usleep(1000);
        engine->observe(f.pool, -1, &third);
        g_assert_false(file_state_same(&first.state, &third.state));
        tear_down(&f);
}

/* ---- connections ---- */

/* A statement that computes for ever ends when the worker wants to, and the connection is replaced. */
static void test_interrupt(void) {
        Fixture f;

        set_up(&f, true);
        interrupts = true;
        REFUSED(&f, "SELECT count(*) FROM generate_series(1, 1000000000000)", ERROR_CANCELLED, "by the test");
        interrupts = false;
        EXPECT(&f, "SELECT 1", "i:1");
        begin(&f);
        EXPECT(&f, "DELETE FROM album", "");
        interrupts = true;
        REFUSED(&f, "SELECT pg_sleep(100)", ERROR_CANCELLED, "by the test");
        interrupts = false;
        sql_error_done(&f.error);
        g_assert_false(engine->is_in_transaction(f.writer));
        end(&f);
        EXPECT(&f, "SELECT count(*) FROM album", "i:2");
        tear_down(&f);
}

#define SLEEPING "FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
#define SLEEPS "SELECT count(*) = 1 " SLEEPING

/* Asks the server until it answers so. */
static void wait_for_value(const char *sql, const char *value) {
        for (;;) {
                g_autofree char *found = postgres_rig_value(&rig, sql);

                if (g_strcmp0(found, value) == 0)
                        return;
                g_usleep(1000);
        }
}

static void expect_no_sleep(void) {
        wait_for_value(SLEEPS, "f");
}

/* Interrupts a statement that runs on the server, and returns when the server has ended it. */
static void interrupt_sleep(Fixture *f) {
        interrupts_when = SLEEPS;
        REFUSED(f, "SELECT pg_sleep(600)", ERROR_CANCELLED, "by the test");
        interrupts = false;
        sql_error_done(&f->error);
        if (f->writer)
                end(f);
        expect_no_sleep();
}

/* The process of the server for the only connection, which may be busy with its cancel. */
static char *backend(Fixture *f) {
        for (;;) {
                char *pid = run(f, "SELECT pg_backend_pid()", NULL, 0);

                if (pid)
                        return pid;
                g_assert_cmpint(f->error.error, ==, ERROR_BUSY);
                g_usleep(1000);
        }
}

/* The server ends what is interrupted at once, and the connection is used again, with nothing of its transaction. A machine
 * that is too slow for that closes it instead, which is no failure, but not each time. */
static void test_cancel(void) {
        unsigned n_kept = 0;
        Fixture f;

        set_up(&f, true);
        engine->connections(f.pool)->n_max = 1;
        for (unsigned i = 0; i < 20 && n_kept < 2; i++) {
                g_autofree char *before = backend(&f), *after = NULL;

                if (n_kept > 0) {
                        begin(&f);
                        EXPECT(&f, "UPDATE album SET title = 'changed' WHERE id = 1", "");
                }
                interrupt_sleep(&f);
                after = backend(&f);
                n_kept += strcmp(before, after) == 0;
        }
        g_assert_cmpuint(n_kept, ==, 2);
        EXPECT(&f, "SELECT title FROM album ORDER BY id", "t:first\nt:second");
        begin(&f);
        EXPECT(&f, "UPDATE album SET title = 'changed' WHERE id = 1", ""); /* no lock is left */
        commit(&f);
        tear_down(&f);
}

typedef struct Awaiting {
        uint8_t page[PAGE_SIZE];
        PageEncoder encoder;
        RowSink sink;
        EngineConnection *connection;
        EngineStatement *statement;
} Awaiting;

/* On f->connection, or one of its own. */
static void begin_awaiting(Fixture *f, Awaiting *a, const char *sql) {
        static const PageWriter writer = { .fd = -1 };
        static const JobSpec none = { .deadline_usec = UINT64_MAX };

        page_encoder_init(&a->encoder, a->page, sizeof a->page, 1);
        a->sink = (RowSink) {
                .encoder = &a->encoder, .writer = &writer, .row_size_max = PAGE_SIZE, .n_rows_max = UINT64_MAX,
                .may_await = true,
        };
        a->connection = f->connection;
        if (!a->connection)
                g_assert_true(engine->connect(f->pool, "", 0, NULL, &a->connection, &f->error));
        g_assert_true(engine->compile(a->connection, sql, strlen(sql), false, NULL, &a->statement, &f->error));
        g_assert_true(engine->bind(a->statement, &none, &f->error));
}

static void wait_for_answer(const Awaiting *a) {
        struct pollfd p = { .fd = engine->awaited_fd(a->connection), .events = POLLIN };

        g_assert_cmpint(poll(&p, 1, -1), ==, 1);
}

/* Before the answer there may be those to commands that were sent before, which are no answer. */
static EngineResult step_until_answered(Fixture *f, Awaiting *a) {
        EngineResult result;

        while ((result = engine->step(a->statement, &a->sink, &f->error)) == ENGINE_AWAITS)
                wait_for_answer(a);
        return result;
}

static void end_awaiting(Fixture *f, Awaiting *a) {
        engine->release(a->statement);
        if (!f->connection)
                engine->disconnect(f->pool, a->connection);
}

/* The second statement of a transaction, before which there is no BEGIN to be answered. */
static void await_in_transaction(Fixture *f, Awaiting *a) {
        EngineResult result;

        g_assert_true(engine->connect(f->pool, "", 0, NULL, &f->connection, &f->error));
        engine->hold(f->connection);
        EXPECT(f, "SELECT 1", "i:1");
        begin_awaiting(f, a, "SELECT generate_series(1, 3)");
        g_assert_cmpint(step_until_answered(f, a), ==, ENGINE_ROW);
        while ((result = engine->fill(a->statement, &a->sink, &f->error)) == ENGINE_AWAITS)
                wait_for_answer(a);
        g_assert_cmpint(result, ==, ENGINE_DONE);
        g_assert_cmpuint(a->sink.n_rows, ==, 3);
        end_awaiting(f, a);
        engine->disconnect(f->pool, f->connection);
        f->connection = NULL;
}

/* The server answers to BEGIN, and says something, long before the first row. It does so when the first step is over. */
static void await_after_notice(Fixture *f, Awaiting *a) {
        postgres_rig_exec(&rig, "CREATE FUNCTION tell() RETURNS int LANGUAGE plpgsql AS "
                                "'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RAISE INFO ''now''; PERFORM pg_sleep(600); "
                                "RETURN 1; END'");
        postgres_rig_exec(&rig, "SELECT pg_advisory_lock(1)");
        begin_awaiting(f, a, "SELECT tell()");
        g_assert_cmpint(engine->step(a->statement, &a->sink, &f->error), ==, ENGINE_AWAITS);
        postgres_rig_exec(&rig, "SELECT pg_advisory_unlock(1)");
        wait_for_answer(a);
        g_assert_cmpint(engine->step(a->statement, &a->sink, &f->error), ==, ENGINE_AWAITS);
        end_awaiting(f, a);
        postgres_rig_exec(&rig, "DROP FUNCTION tell()");
}

/* A server that is "active" may still read messages of the statement, and ignores what comes meanwhile. */
static void cancel_sleep(void) {
        wait_for_value("SELECT count(pg_cancel_backend(pid)) > 0 " SLEEPING " AND wait_event = 'PgSleep'", "t");
}

/* While the server computes, before the first row or after it, other statements run. The end of the statement, the server or
 * the job's patience comes in the meantime. */
static void test_awaits(void) {
        g_autofree Awaiting *a = g_new0(Awaiting, 1);
        EngineResult result;
        Fixture f;

        set_up(&f, false);
        await_in_transaction(&f, a);
        await_after_notice(&f, a);
        begin_awaiting(&f, a, "SELECT pg_sleep(600)");
        for (unsigned i = 0; i < 3; i++) {
                g_assert_cmpint(engine->step(a->statement, &a->sink, &f.error), ==, ENGINE_AWAITS);
                EXPECT(&f, "SELECT 1", "i:1");
        }
        cancel_sleep();
        g_assert_cmpint(step_until_answered(&f, a), ==, ENGINE_FAILED);
        g_assert_cmpint(f.error.error, !=, ERROR_NONE);
        sql_error_done(&f.error);
        end_awaiting(&f, a);

        begin_awaiting(&f, a, "SELECT repeat('x', 9000), CASE i WHEN 4 THEN pg_sleep(600) END FROM generate_series(1, 9) i");
        result = step_until_answered(&f, a);
        g_assert_cmpint(result, ==, ENGINE_ROW);
        while (a->sink.n_rows < 2 || result != ENGINE_AWAITS) {
                result = engine->fill(a->statement, &a->sink, &f.error);
                g_assert_true(result == ENGINE_AWAITS || result == ENGINE_PAGE_FULL);
        }
        EXPECT(&f, "SELECT 1", "i:1");
        end_awaiting(&f, a);
        expect_no_sleep();

        begin_awaiting(&f, a, "SELECT pg_sleep(600)");
        g_assert_cmpint(engine->step(a->statement, &a->sink, &f.error), ==, ENGINE_AWAITS);
        postgres_rig_kill(&rig);
        g_assert_cmpint(step_until_answered(&f, a), ==, ENGINE_FAILED);
        g_assert_cmpint(f.error.error, ==, ERROR_SERVER_UNREACHABLE);
        sql_error_done(&f.error);
        end_awaiting(&f, a);
        postgres_rig_start(&rig);
        tear_down(&f);
}

/* A statement that ends its own connection is sent twice. */
static void test_awaits_twice(void) {
        static const char sql[] = "SELECT pg_sleep(0.02), pg_terminate_backend(pg_backend_pid()), pg_sleep(600)";
        g_autofree Awaiting *a = g_new0(Awaiting, 1);
        EngineResult result;
        Fixture f;

        set_up(&f, false);
        begin_awaiting(&f, a, sql);
        for (unsigned i = 0; (result = engine->step(a->statement, &a->sink, &f.error)) == ENGINE_AWAITS; i++) {
                g_assert_cmpuint(i, <, 50);
                wait_for_answer(a);
        }
        g_assert_cmpint(result, ==, ENGINE_FAILED);
        g_assert_cmpint(f.error.error, ==, ERROR_SERVER_UNREACHABLE);
        end_awaiting(&f, a);
        tear_down(&f);
}

/* The answer to the statement comes together with that to a command before it: nothing is left that would wake a worker. */
static void test_awaits_hidden(void) {
        g_autofree Awaiting *a = g_new0(Awaiting, 1);
        JobSpec limited = { .deadline_usec = now_usec() + 600 * USEC_PER_SEC }; /* which the server is told before */
        Fixture f;

        set_up(&f, false);
        EXPECT(&f, "SELECT 1", "i:1");
        begin_awaiting(&f, a, "SELECT generate_series(1, 3)");
        g_assert_true(engine->bind(a->statement, &limited, &f.error));
        n_pipelines_hidden = 2;
        g_assert_cmpint(engine->step(a->statement, &a->sink, &f.error), ==, ENGINE_ROW);
        g_assert_cmpuint(n_pipelines_hidden, ==, 0);
        end_awaiting(&f, a);
        tear_down(&f);
}

/* Two transactions read what the other one changes. One of them must be repeated. */
static void test_serializable(void) {
        EngineConnection *other;
        Fixture f;

        set_up(&f, true);
        begin(&f);
        engine->allow_savepoints(f.writer);
        EXPECT(&f, "SELECT count(*) FROM album", "i:2");
        other = f.writer;
        begin(&f);
        engine->allow_savepoints(f.writer);
        EXPECT(&f, "SELECT count(*) FROM album", "i:2");
        EXPECT(&f, "INSERT INTO album VALUES(3, 'third')", "");
        commit(&f);
        f.writer = other;
        {
                g_autofree char *rows = run(&f, "INSERT INTO album VALUES(4, 'fourth')", NULL, 0);

                if (rows)
                        g_assert_false(engine->commit(f.writer, &f.error));
        }
        g_assert_cmpint(f.error.error, ==, ERROR_BUSY);
        g_assert_false(engine->is_in_transaction(f.writer));
        sql_error_done(&f.error);
        end(&f);
        EXPECT(&f, "SELECT count(*) FROM album", "i:3");
        tear_down(&f);
}

/* Errors after which all of a transaction must be repeated end it, wherever they come. The rest is never committed. */
static void test_transaction_failures(void) {
        static const char *const states[] = { "40P01", "40001", "40002" };
        enum { BY_STATEMENT, BY_COPY, BY_ROWS, N_WAYS };
        RowSource source;
        Fixture f;

        set_up(&f, true);
        postgres_rig_exec(&rig, "SET ROLE tester; CREATE VIEW names AS SELECT id, name, price FROM track; RESET ROLE");
        for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
                g_autofree char *trigger = g_strdup_printf(
                        "DROP TRIGGER IF EXISTS fail ON track; CREATE OR REPLACE FUNCTION fail() RETURNS trigger "
                        "LANGUAGE plpgsql AS $$BEGIN RAISE 'it failed' USING ERRCODE = '%s'; END$$;"
                        "CREATE TRIGGER fail BEFORE INSERT ON track FOR EACH ROW EXECUTE FUNCTION fail()", states[i]);

                postgres_rig_exec(&rig, trigger);
                for (int way = BY_STATEMENT; way < N_WAYS; way++) {
                        begin(&f);
                        engine->allow_savepoints(f.writer);
                        EXPECT(&f, "INSERT INTO album VALUES(3, 'third')", "");
                        if (way == BY_STATEMENT) {
                                REFUSED(&f, "INSERT INTO track(id) VALUES(1)", i < 2 ? ERROR_BUSY : ERROR_TRANSACTION_ENDED,
                                        "it failed");
                        } else {
                                g_assert_true(engine->save(f.writer, &f.error));
                                g_assert_false(load(&f, way == BY_COPY
                                                            ? "INSERT INTO track(id, name, price) VALUES(?, ?, ?)"
                                                            : "INSERT INTO names(id, name, price) VALUES(?, ?, ?)",
                                                    3, good_row, &source));
                        }
                        g_assert_false(engine->is_in_transaction(f.writer));
                        sql_error_done(&f.error);
                        g_assert_false(engine->commit(f.writer, &f.error));
                        g_assert_cmpint(f.error.error, ==, ERROR_TRANSACTION_ENDED);
                        end(&f);
                        expect_value("SELECT count(*) FROM album", "2");
                }
        }
        begin(&f); /* the connection is as good as new */
        EXPECT(&f, "INSERT INTO album VALUES(3, 'third')", "");
        commit(&f);
        tear_down(&f);
}

/* The server goes while a commit may be under way. */
static void test_outcome_unknown(void) {
        Fixture f;

        set_up(&f, true);
        begin(&f);
        EXPECT(&f, "INSERT INTO album VALUES(3, 'third')", "");
        postgres_rig_kill(&rig);
        g_assert_false(engine->commit(f.writer, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_OUTCOME_UNKNOWN);
        g_assert_false(engine->is_in_transaction(f.writer));
        end(&f);
        REFUSED(&f, "SELECT 1", ERROR_SERVER_UNREACHABLE, "no connection to the server");
        postgres_rig_start(&rig);
        sql_error_done(&f.error);
        while (true) {
                g_autofree char *rows = run(&f, "SELECT 1", NULL, 0);

                if (rows)
                        break;
                g_assert_cmpint(f.error.error, ==, ERROR_BUSY); /* the pause after the last attempt */
                g_usleep(10000);
        }
        tear_down(&f);
}

/* Errors of the login name no secret. */
static void test_login(void) {
        static const struct {
                const char *more, *password, *sentence;
                ErrorNumber error;
        } logins[] = {
                { "password=hush", NULL, "PasswordFile=", ERROR_LOGIN_FAILED },
                { "user=locked passfile=/hush", NULL, "PasswordFile=", ERROR_LOGIN_FAILED },
                { "nonsense=hush", NULL, "not valid", ERROR_LOGIN_FAILED },
                { "user=locked", NULL, "asks for a password", ERROR_LOGIN_FAILED },
                { "user=locked", "hush", "PasswordFile=: password authentication failed", ERROR_LOGIN_FAILED },
                { "user=nobody_here", NULL, "does not exist", ERROR_LOGIN_FAILED },
                { "dbname=nothing_here", NULL, "does not exist", ERROR_LOGIN_FAILED },
                { "host=/nowhere", NULL, "no connection to the server", ERROR_SERVER_UNREACHABLE },
                { "service=nothing_here", NULL, "no connection to the server", ERROR_SERVER_UNREACHABLE },
                { "user=locked", "secret", NULL, ERROR_NONE },
        };

        postgres_rig_lock(&rig, "locked", "secret");
        for (size_t i = 0; i < G_N_ELEMENTS(logins); i++) {
                g_autofree char *text = NULL;
                Fixture f;

                set_up(&f, false);
                engine->stop(f.pool);
                text = g_strdup_printf("%s %s", f.connection_text, logins[i].more);
                f.setup.connection = text;
                f.setup.password = logins[i].password;
                start(&f);
                if (logins[i].sentence) {
                        REFUSED(&f, "SELECT 1", logins[i].error, logins[i].sentence);
                        g_assert_null(strstr(f.error.message, "hush"));
                } else
                        EXPECT(&f, "SELECT current_user", "t:locked");
                tear_down(&f);
        }
}

/* Passwords that libpq would find by itself are not those of the database: nothing could warn of them. */
static void test_no_password_of_others(void) {
        static const char *const variables[] = { "HOME", "PGPASSFILE", "PGPASSWORD" };
        g_autofree char *file = g_strdup_printf("%s/.pgpass", rig.folder), *home = g_strdup(g_getenv("HOME"));

        postgres_rig_lock(&rig, "kept", "secret");
        g_assert_true(g_file_set_contents_full(file, "*:*:*:kept:secret\n", -1, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
        for (size_t i = 0; i < G_N_ELEMENTS(variables); i++) {
                const char *const values[] = { rig.folder, file, "secret" };
                g_autofree char *text = NULL;
                Fixture f;

                g_unsetenv("PGPASSFILE");
                g_setenv(variables[i], values[i], true);
                set_up(&f, false);
                engine->stop(f.pool);
                text = g_strdup_printf("%s user=kept", f.connection_text);
                f.setup.connection = text;
                start(&f);
                REFUSED(&f, "SELECT 1", ERROR_LOGIN_FAILED, "asks for a password");
                tear_down(&f);
                g_assert_null(g_getenv("PGPASSWORD"));
        }
        if (home)
                g_setenv("HOME", home, true);
        else
                g_unsetenv("HOME");
}

/* Reads what the client begins with, and ends. */
static void *refuse_silently(void *listener) {
        char begin[1024];
        int fd = accept4(GPOINTER_TO_INT(listener), NULL, NULL, SOCK_CLOEXEC);

        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(read(fd, begin, sizeof begin), >, 0);
        (void) close(fd);
        return NULL;
}

/* A server that ends while a client logs in, as in a failover, is not one that refuses it. */
static void test_end_in_login(void) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof address;
        g_autofree char *text = NULL;
        GThread *server;
        Fixture f;

        g_assert_cmpint(bind(listener, (struct sockaddr *) &address, size), ==, 0);
        g_assert_cmpint(listen(listener, 1), ==, 0);
        g_assert_cmpint(getsockname(listener, (struct sockaddr *) &address, &size), ==, 0);
        server = g_thread_new("server", refuse_silently, GINT_TO_POINTER(listener));
        set_up(&f, false);
        engine->stop(f.pool);
        text = g_strdup_printf("host=127.0.0.1 port=%d sslmode=disable gssencmode=disable", ntohs(address.sin_port));
        f.setup.connection = text;
        start(&f);
        REFUSED(&f, "SELECT 1", ERROR_SERVER_UNREACHABLE, "server closed the connection");
        (void) g_thread_join(server);
        (void) close(listener);
        tear_down(&f);
}

typedef struct Asker {
        int listener;
        bool got_password; /* a message of this kind came, with or without TLS */
        unsigned n;        /* connections */
} Asker;

/* A program that took the port of a server: it has no TLS, and asks for the password as it is. */
static void *ask_for_password(void *userdata) {
        static const uint8_t ask[] = { 'R', 0, 0, 0, 8, 0, 0, 0, 3 };
        Asker *a = userdata;
        int fd;

        while ((fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
                uint8_t text[1024];
                ssize_t n;

                a->n++;
                while ((n = read(fd, text, sizeof text)) > 0) {
                        if (n == 8) /* SSLRequest */
                                n = write(fd, "N", 1);
                        else if (text[0] == 'p') {
                                a->got_password = true;
                                break;
                        } else
                                n = write(fd, ask, sizeof ask);
                }
                (void) close(fd);
        }
        return NULL;
}

/* Over TCP the password goes only to a server that proves its name, unless the administrator writes less. */
static void test_no_password_to_strangers(void) {
        static const struct {
                const char *more, *environment, *service;
                bool sends; /* with a libpq that has no require_auth */
                const char *sentence;
        } cases[] = {
                { "", NULL, NULL, false, "it does not offer TLS" },
                { "hostaddr=127.0.0.1", NULL, NULL, false, "it does not offer TLS" },
                { "sslmode=require", NULL, NULL, false, "it does not offer TLS" },
                { "sslmode=''", NULL, NULL, false, "it does not offer TLS" },
                { "service=weak sslmode=verify-full", NULL, "", false, "it does not offer TLS" },
                { "service=plain", NULL, "", false, "it does not offer TLS" },
                { "sslmode=disable", NULL, NULL, true, "require_auth" },
                { "", "prefer", NULL, true, "require_auth" },
                { "service=weak", NULL, "", true, "require_auth" },
                { "sslmode=disable require_auth=password", NULL, NULL, true, NULL },
        };
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        Asker a = { .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
        g_autofree char *before = g_strdup(g_getenv("PGSSLMODE")), *services = NULL, *port = NULL;
        bool requires = false;
        PQconninfoOption *known = PQconndefaults();
        socklen_t size = sizeof address;
        GThread *server;

        for (const PQconninfoOption *o = known; o->keyword; o++)
                requires = requires || strcmp(o->keyword, "require_auth") == 0;
        PQconninfoFree(known);
        g_assert_cmpint(bind(a.listener, (struct sockaddr *) &address, size), ==, 0);
        g_assert_cmpint(listen(a.listener, 8), ==, 0);
        g_assert_cmpint(getsockname(a.listener, (struct sockaddr *) &address, &size), ==, 0);
        port = g_strdup_printf("%d", ntohs(address.sin_port));
        services = g_strdup_printf("%s/services", rig.folder);
        g_assert_true(g_file_set_contents(services, "[weak]\nsslmode=allow\n[plain]\nkeepalives=1\n", -1, NULL));
        g_setenv("PGSERVICEFILE", services, true);
        server = g_thread_new("asker", ask_for_password, &a);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                bool writes_method = strstr(cases[i].more, "require_auth");
                g_autofree char *text = NULL;
                Fixture f;

                if (!requires && writes_method)
                        continue;
                g_test_message("%s", cases[i].more);
                g_unsetenv("PGSSLMODE");
                if (cases[i].environment)
                        g_setenv("PGSSLMODE", cases[i].environment, true);
                set_up(&f, false);
                engine->stop(f.pool);
                text = g_strdup_printf("host=localhost port=%s user=x gssencmode=disable %s", port, cases[i].more);
                f.setup.connection = text;
                f.setup.password = "hush";
                start(&f);
                a.got_password = false;
                g_assert_null(run(&f, "SELECT 1", NULL, 0));
                if (!cases[i].sends)
                        g_assert_cmpint(f.error.error, ==, ERROR_LOGIN_FAILED);
                if (cases[i].sentence && (!cases[i].sends || requires))
                        g_assert_nonnull(strstr(f.error.message, cases[i].sentence));
                g_assert_null(strstr(f.error.message, "localhost"));
                g_assert_null(strstr(f.error.message, "127.0.0.1"));
                g_assert_null(strstr(f.error.message, port));
                tear_down(&f);
                g_assert_cmpint(a.got_password, ==, cases[i].sends && (!requires || writes_method));
        }
        g_assert_cmpint(a.n, >=, 5);
        (void) shutdown(a.listener, SHUT_RDWR);
        (void) g_thread_join(server);
        (void) close(a.listener);
        g_unsetenv("PGSERVICEFILE");
        g_unsetenv("PGSSLMODE");
        if (before)
                g_setenv("PGSSLMODE", before, true);
}

/* The error of a server that cannot be reached does not name it. */
static void test_unreachable_is_not_named(void) {
        static const char *const parts[] = { "nowhere", "secret", "127.0.0", "5433", "99999", "port 1", "localhost" };
        static const char *const connections[] = {
                "host=/nowhere port=5433", "host=secret.invalid port=5433", "hostaddr=127.0.0.1 port=1 host=secret.invalid",
                "host=/nowhere,127.0.0.1,secret.invalid port=5433,1,5433", "service=secret_service",
                "sslmode=secret.invalid",
                "host=127.0.0.1 port=5433,5433", "host=127.0.0.1 port=99999",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(connections); i++) {
                Fixture f;

                set_up(&f, false);
                engine->stop(f.pool);
                f.setup.connection = connections[i];
                start(&f);
                g_assert_null(run(&f, "SELECT 1", NULL, 0));
                g_test_message("%s: %s", connections[i], f.error.message);
                for (size_t j = 0; j < G_N_ELEMENTS(parts); j++)
                        g_assert_null(strstr(f.error.message, parts[j]));
                tear_down(&f);
        }
}

/* The time limit of a role is not extended. */
static void test_timeout_of_role(void) {
        Fixture f;

        set_up(&f, false);
        postgres_rig_exec(&rig, "ALTER ROLE tester SET statement_timeout = '1s'");
        EXPECT(&f, "SELECT current_setting('statement_timeout')", "t:1s");
        REFUSED(&f, "SELECT pg_sleep(100)", ERROR_TIMED_OUT, "statement timeout");
        EXPECT(&f, "SELECT 1", "i:1");
        postgres_rig_exec(&rig, "ALTER ROLE tester RESET statement_timeout");
        tear_down(&f);
}

/* All connections die, which no client notices. */
static void test_replaced(void) {
        Fixture f;

        set_up(&f, true);
        EXPECT(&f, "SELECT title FROM album WHERE id = ?", "t:first", "i:1");
        postgres_rig_exec(&rig, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tester'");
        EXPECT(&f, "SELECT title FROM album WHERE id = ?", "t:second", "i:2");
        postgres_rig_kill(&rig);
        postgres_rig_start(&rig);
        begin(&f);
        EXPECT(&f, "INSERT INTO album VALUES(3, 'third')", "");
        commit(&f);
        EXPECT(&f, "SELECT count(*) FROM album", "i:3");
        tear_down(&f);
}

static void test_limit(void) {
        EngineConnection *connections[3], *more;
        EngineConnections *count;
        Fixture f;

        set_up(&f, false);
        count = engine->connections(f.pool);
        for (size_t i = 0; i < 3; i++)
                g_assert_true(engine->connect(f.pool, "", 0, NULL, &connections[i], &f.error));
        g_assert_false(count->lacks || engine->close_idle(f.pool));
        g_assert_false(engine->connect(f.pool, "", 0, NULL, &more, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_BUSY);
        g_assert_true(count->lacks && count->n == 3 && count->n_max == 3);
        for (size_t i = 0; i < 3; i++)
                engine->disconnect(f.pool, connections[i]);
        g_assert_true(engine->close_idle(f.pool) && count->n == 2);
        sql_error_done(&f.error);
        for (size_t i = 0; i < 3; i++)
                g_assert_true(engine->connect(f.pool, "", 0, NULL, &connections[i], &f.error));
        for (size_t i = 0; i < 3; i++)
                engine->disconnect(f.pool, connections[i]);
        EXPECT(&f, "SELECT count(*) >= 3 FROM pg_stat_activity WHERE usename = 'tester'", "i:1"); /* others may be ending */
        tear_down(&f);
}

/* The tables change under statements that are prepared. */
static void test_schema_changes(void) {
        static const char sql[] = "INSERT INTO track(id, name, price) VALUES(?, ?, ?)";
        RowSource source;
        Fixture f;

        set_up(&f, true);
        EXPECT(&f, "SELECT * FROM album WHERE id = 1", "i:1|t:first");
        postgres_rig_exec(&rig, "ALTER TABLE album ADD COLUMN year int DEFAULT 1999");
        EXPECT(&f, "SELECT * FROM album WHERE id = 1", "i:1|t:first|i:1999");
        postgres_rig_exec(&rig, "ALTER TABLE album ALTER COLUMN year TYPE text");
        EXPECT(&f, "SELECT * FROM album WHERE id = 1", "i:1|t:first|t:1999");
        REFUSED(&f, "SELECT id FROM track WHERE small = ?", ERROR_PARAMETER_TYPE, "a smallint", "i:70000");
        postgres_rig_exec(&rig, "ALTER TABLE track ALTER COLUMN small TYPE bigint");
        EXPECT(&f, "SELECT id FROM track WHERE small = ?", "", "i:70000");
        postgres_rig_exec(&rig, "ALTER TABLE track ALTER COLUMN price TYPE date USING NULL");
        begin(&f);
        g_assert_false(load(&f, sql, 2, good_row, &source));
        g_assert_cmpint(f.error.error, ==, ERROR_PARAMETER_TYPE);
        end(&f);
        postgres_rig_exec(&rig, "ALTER TABLE track ALTER COLUMN price TYPE numeric USING NULL");
        begin(&f);
        g_assert_true(load(&f, sql, 2, good_row, &source));
        commit(&f);
        EXPECT(&f, "SELECT id FROM track WHERE album = ?", "", "i:1");
        g_assert_true(engine->connect(f.pool, "", 0, NULL, &f.connection, &f.error));
        g_assert_true(engine->snapshot(f.connection, &f.error));
        postgres_rig_exec(&rig, "DROP TABLE track");
        REFUSED(&f, "SELECT id FROM track WHERE album = ?", ERROR_SQL, "does not exist", "r:1.5");
        g_assert_true(engine->is_in_transaction(f.connection));
        EXPECT(&f, "SELECT id FROM album", "i:1\ni:2");
        tear_down(&f);
}

/* A prepared statement whose columns change is prepared again, also as the first one of a transaction. */
static void test_other_columns(void) {
        static const char insert[] = "INSERT INTO album(title) VALUES(?) RETURNING *";
        static const char read[] = "SELECT * FROM album WHERE id = 1";
        Fixture f;

        set_up(&f, true);
        postgres_rig_exec(&rig, "CREATE SEQUENCE numbers START 3; GRANT USAGE ON numbers TO tester;"
                                "ALTER TABLE album ALTER id SET DEFAULT nextval('numbers')");
        begin(&f);
        EXPECT(&f, insert, "i:3|t:third", "t:third");
        commit(&f);
        postgres_rig_exec(&rig, "ALTER TABLE album ADD COLUMN year int");
        begin(&f);
        EXPECT(&f, insert, "i:4|t:fourth|null", "t:fourth");
        commit(&f);
        expect_value("SELECT count(*) FROM album", "4");

        postgres_rig_exec(&rig, "ALTER TABLE album ADD COLUMN more int");
        begin(&f);
        EXPECT(&f, "INSERT INTO album VALUES(50, 'x')", "");
        REFUSED(&f, insert, ERROR_SQL, "cached plan", "t:fifth");
        EXPECT(&f, insert, "i:5|t:fifth|null|null", "t:fifth");
        commit(&f);

        EXPECT(&f, read, "i:1|t:first|null|null");
        g_assert_true(engine->connect(f.pool, read, strlen(read), NULL, &f.connection, &f.error));
        g_assert_true(engine->snapshot(f.connection, &f.error));
        postgres_rig_exec(&rig, "ALTER TABLE album DROP COLUMN more");
        EXPECT(&f, read, "i:1|t:first|null");
        tear_down(&f);
}

/* The parameter of a statement that is prepared again has another type: it is bound again. */
static void test_other_parameters(void) {
        static const char sql[] = "SELECT *, a + ? FROM numbers";
        Fixture f;

        set_up(&f, false);
        postgres_rig_exec(&rig, "CREATE TABLE numbers AS SELECT 1::float8 AS a; GRANT SELECT ON numbers TO tester");
        EXPECT(&f, sql, "r:1|r:3", "r:2");
        postgres_rig_exec(&rig, "ALTER TABLE numbers ALTER a TYPE bigint");
        EXPECT(&f, sql, "i:1|i:3", "r:2");
        postgres_rig_exec(&rig, "ALTER TABLE numbers ALTER a TYPE boolean USING true");
        REFUSED(&f, sql, ERROR_MISSING_FUNCTION, "operator does not exist", "r:2");
        tear_down(&f);
}

/* A function removes the commands that are prepared on the connection: another one takes its place. */
static void test_forgotten(void) {
        static const char *const names[] = { "ALL", "begin_read", "begin_snapshot" };
        Fixture f;

        set_up(&f, true);
        postgres_rig_exec(&rig, "CREATE FUNCTION forget(name text) RETURNS void LANGUAGE plpgsql AS "
                                "'BEGIN EXECUTE ''DEALLOCATE '' || name; END'; GRANT SELECT ON album TO tester");
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
                g_autofree char *name = g_strconcat("t:", names[i], NULL);

                begin(&f);
                EXPECT(&f, "SELECT length(forget(?)::text)", "i:0", name);
                commit(&f);
                for (int j = 0; j < 2; j++)
                        EXPECT(&f, "SELECT id FROM album WHERE id = ?", "i:1", "i:1");
        }
        tear_down(&f);
}

/* libpq takes a longer description of parameters for an error of the protocol. */
static void test_many_parameters(void) {
        Fixture f;

        set_up(&f, false);
        f.setup.sql_size_max = 100000;
        f.setup.variables_max = 32766;
        for (unsigned n = 7498; n <= 7499; n++) {
                g_autoptr(GString) sql = g_string_new("SELECT 1 WHERE 1 IN (");

                for (unsigned i = 1; i <= n; i++)
                        g_string_append_printf(sql, "%s?::int", i > 1 ? "," : "");
                g_string_append_c(sql, ')');
                if (n == 7498)
                        REFUSED(&f, sql->str, ERROR_PARAMETER_COUNT, "has no value");
                else
                        REFUSED(&f, sql->str, ERROR_LIMITS_EXCEEDED, "at most 7498");
        }
        tear_down(&f);
}

/* ---- requests that are sent ahead ---- */

/* Of a round: each row tells which transaction it was read in. */
#define AHEAD "SELECT 10 / $1::int8, now()::text"

static EngineHint prepare_ahead(Fixture *f) {
        EngineStatement *statement;
        EngineHint hint = {};

        g_assert_true(engine->connect(f->pool, "", 0, NULL, &f->connection, &f->error));
        g_assert_true(engine->compile(f->connection, AHEAD, strlen(AHEAD), false, &hint, &statement, &f->error));
        engine->release(statement);
        engine->hold(f->connection);
        return hint;
}

static void foresee(Fixture *f, const EngineHint *hint, const char *value) {
        g_autoptr(GByteArray) row = engine_rows_parameters(&value, 1);
        const JobSpec spec = { .n_positional = 1, .parameters = row->data, .parameters_size = row->len };

        g_assert_true(engine->foresee(f->pool, &spec, hint));
}

static void foresee_three(Fixture *f, const EngineHint *hint) {
        foresee(f, hint, "i:1");
        foresee(f, hint, "i:2");
        foresee(f, hint, "i:5");
}

/* Returns when its transaction began. */
static char *run_ahead(Fixture *f, const char *value, const char *result) {
        g_autofree char *row = run(f, AHEAD, &value, 1);
        char *time;

        if (!row)
                g_error("%s: %s", value, f->error.message);
        time = strchr(row, '|');
        g_assert_nonnull(time);
        *time++ = '\0';
        g_assert_cmpstr(row, ==, result);
        return g_strdup(time);
}

/* They are in one transaction, the next is in another one. */
static void test_ahead(void) {
        Fixture f;

        set_up(&f, false);
        for (int i = 0; i < 2; i++) {
                EngineHint hint = prepare_ahead(&f);
                g_autofree char *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;

                foresee_three(&f, &hint);
                first = run_ahead(&f, "i:1", "i:10");
                second = run_ahead(&f, "i:2", "i:5");
                third = run_ahead(&f, "i:5", "i:2");
                fourth = run_ahead(&f, "i:10", "i:1");
                g_assert_cmpstr(first, ==, second);
                g_assert_cmpstr(first, ==, third);
                g_assert_cmpstr(first, !=, fourth);
                engine->disconnect(f.pool, f.connection);
                f.connection = NULL;
        }
        tear_down(&f);
}

/* The core does something else than it told. */
static void test_ahead_in_vain(void) {
        EngineStatement *statement;
        EngineHint hint;
        Fixture f;

        set_up(&f, false);
        hint = prepare_ahead(&f);
        foresee_three(&f, &hint);
        EXPECT(&f, AHEAD " || 'x' WHERE false", "", "i:1");
        g_free(run_ahead(&f, "i:2", "i:5"));

        foresee_three(&f, &hint);
        g_free(run_ahead(&f, "i:1", "i:10"));
        EXPECT(&f, "SELECT title FROM album WHERE id = ?", "t:first", "i:1");
        g_free(run_ahead(&f, "i:5", "i:2"));

        /* a statement is compiled and bound, and not stepped */
        foresee_three(&f, &hint);
        for (int i = 0; i < 2; i++) {
                const char *value = "i:1";
                g_autoptr(GByteArray) row = engine_rows_parameters(&value, 1);
                const JobSpec spec = { .n_positional = 1, .parameters = row->data, .parameters_size = row->len };

                g_assert_true(engine->compile(f.connection, AHEAD, strlen(AHEAD), false, &hint, &statement, &f.error));
                g_assert_true(engine->bind(statement, &spec, &f.error));
                engine->release(statement);
                g_free(run_ahead(&f, "i:2", "i:5"));
        }

        /* the transaction ends */
        foresee_three(&f, &hint);
        g_free(run_ahead(&f, "i:1", "i:10"));
        engine->let_go(f.connection);
        g_free(run_ahead(&f, "i:2", "i:5"));
        foresee_three(&f, &hint);
        g_free(run_ahead(&f, "i:1", "i:10"));
        engine->disconnect(f.pool, f.connection);
        hint = prepare_ahead(&f);
        g_free(run_ahead(&f, "i:2", "i:5"));
        tear_down(&f);
}

/* A failure is that of one statement. */
static void test_ahead_fails(void) {
        EngineHint hint;
        Fixture f;

        set_up(&f, false);
        hint = prepare_ahead(&f);
        foresee(&f, &hint, "i:1");
        foresee(&f, &hint, "i:0");
        foresee(&f, &hint, "i:2");
        g_free(run_ahead(&f, "i:1", "i:10"));
        REFUSED(&f, AHEAD, ERROR_SQL, "division by zero", "i:0");
        engine->disconnect(f.pool, f.connection); /* as the core does after an error */
        hint = prepare_ahead(&f);
        g_free(run_ahead(&f, "i:2", "i:5"));

        foresee(&f, &hint, "t:no number");
        foresee(&f, &hint, "i:2");
        REFUSED(&f, AHEAD, ERROR_SQL, "no number", "t:no number");
        engine->disconnect(f.pool, f.connection);
        hint = prepare_ahead(&f);

        /* the connection dies unnoticed */
        postgres_rig_exec(&rig, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tester'");
        foresee_three(&f, &hint);
        g_free(run_ahead(&f, "i:1", "i:10"));
        g_free(run_ahead(&f, "i:2", "i:5"));
        g_free(run_ahead(&f, "i:5", "i:2"));
        tear_down(&f);
}

int main(int argc, char **argv) {
        int r;

        g_test_init(&argc, &argv, NULL);
        if (!postgres_rig_init(&rig)) {
                g_print("1..0 # SKIP PostgreSQL is not installed, or has no user\n");
                return 0;
        }
        postgres_rig_exec(&rig, "CREATE ROLE tester LOGIN");
        g_test_add_func("/postgresql-engine/values", test_values);
        g_test_add_func("/postgresql-engine/parameters", test_parameters);
        g_test_add_func("/postgresql-engine/errors", test_errors);
        g_test_add_func("/postgresql-engine/read-only", test_read_only);
        g_test_add_func("/postgresql-engine/rights", test_rights);
        g_test_add_func("/postgresql-engine/functions-with-effect", test_functions_with_effect);
        g_test_add_func("/postgresql-engine/functions-of-users", test_functions_of_users);
        g_test_add_func("/postgresql-engine/other-reading", test_other_reading);
        g_test_add_func("/postgresql-engine/many-rows", test_many_rows);
        g_test_add_func("/postgresql-engine/write", test_write);
        g_test_add_func("/postgresql-engine/session", test_session);
        g_test_add_func("/postgresql-engine/must-commit", test_must_commit);
        g_test_add_func("/postgresql-engine/savepoints", test_savepoints);
        g_test_add_func("/postgresql-engine/snapshot", test_snapshot);
        g_test_add_func("/postgresql-engine/replaced", test_replaced);
        g_test_add_func("/postgresql-engine/limit", test_limit);
        g_test_add_func("/postgresql-engine/schema-changes", test_schema_changes);
        g_test_add_func("/postgresql-engine/other-columns", test_other_columns);
        g_test_add_func("/postgresql-engine/other-parameters", test_other_parameters);
        g_test_add_func("/postgresql-engine/forgotten", test_forgotten);
        g_test_add_func("/postgresql-engine/many-parameters", test_many_parameters);
        g_test_add_func("/postgresql-engine/load", test_load);
        g_test_add_func("/postgresql-engine/watched", test_watched);
        g_test_add_func("/postgresql-engine/written", test_written);
        g_test_add_func("/postgresql-engine/state", test_state);
        g_test_add_func("/postgresql-engine/state-of-functions", test_state_of_functions);
        g_test_add_func("/postgresql-engine/state-of-list", test_state_of_list);
        g_test_add_func("/postgresql-engine/observe", test_observe);
        g_test_add_func("/postgresql-engine/interrupt", test_interrupt);
        g_test_add_func("/postgresql-engine/cancel", test_cancel);
        g_test_add_func("/postgresql-engine/awaits", test_awaits);
        g_test_add_func("/postgresql-engine/awaits-twice", test_awaits_twice);
        g_test_add_func("/postgresql-engine/awaits-hidden", test_awaits_hidden);
        g_test_add_func("/postgresql-engine/serializable", test_serializable);
        g_test_add_func("/postgresql-engine/transaction-failures", test_transaction_failures);
        g_test_add_func("/postgresql-engine/outcome-unknown", test_outcome_unknown);
        g_test_add_func("/postgresql-engine/login", test_login);
        g_test_add_func("/postgresql-engine/no-password-of-others", test_no_password_of_others);
        g_test_add_func("/postgresql-engine/end-in-login", test_end_in_login);
        g_test_add_func("/postgresql-engine/no-password-to-strangers", test_no_password_to_strangers);
        g_test_add_func("/postgresql-engine/unreachable-is-not-named", test_unreachable_is_not_named);
        g_test_add_func("/postgresql-engine/timeout-of-role", test_timeout_of_role);
        g_test_add_func("/postgresql-engine/ahead", test_ahead);
        g_test_add_func("/postgresql-engine/ahead-in-vain", test_ahead_in_vain);
        g_test_add_func("/postgresql-engine/ahead-fails", test_ahead_fails);
        r = g_test_run();
        postgres_rig_done(&rig);
        return r;
}
