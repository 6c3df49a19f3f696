/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine for rqlite with one node, of rqlite if SQLIPC_RQLITED names the program, otherwise of its imitation: values,
 * errors, writes, windows. */
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/rqlite/rqlite-engine.h"
#include "tests/rigs/rqlite-rig.h"

static RqliteNodes nodes;
static RqliteRig rig;

static void set_up(void) {
        rqlite_nodes_start(&nodes, 1, NULL);
        rqlite_rig_begin(&rig, rqlite_nodes_urls(&nodes, NULL));
}

static void tear_down(void) {
        rqlite_rig_end(&rig);
        rqlite_nodes_stop(&nodes);
}

static void must(const char *sql) {
        bool ok = rqlite_rig_execute(&rig, sql);

        g_assert_cmpstr(rig.error.message, ==, NULL);
        g_assert_true(ok);
}

static void expect(const char *sql, const char *rows) {
        g_autofree char *got = rqlite_rig_query(&rig, sql, NULL, 0);

        if (!got)
                g_error("%s: %s", sql, rig.error.message);
        g_assert_cmpstr(got, ==, rows);
}

static void expect_error(const char *sql, ErrorNumber error, int code, const char *message) {
        g_autofree char *got = rqlite_rig_query(&rig, sql, NULL, 0);

        g_assert_cmpstr(got, ==, NULL);
        g_assert_cmpint(rig.error.error, ==, error);
        g_assert_cmpint(rig.error.extended_code, ==, code);
        if (message)
                g_assert_cmpstr(rig.error.message, ==, message);
}

static void refuse(const char *sql, ErrorNumber error, int code, const char *message) {
        g_assert_false(rqlite_rig_execute(&rig, sql));
        g_assert_cmpstr(rig.error.message, ==, message);
        g_assert_cmpint(rig.error.error, ==, error);
        g_assert_cmpint(rig.error.extended_code, ==, code);
}

/* ---- values ---- */

static void test_values(void) {
        set_up();
        expect("SELECT 1, 1.0, 'x', x'00ff', NULL, ''", "i1|r1|tx|b00FF|n|t\n");
        expect("SELECT 9007199254740993, -9223372036854775808, 9223372036854775807, 1e300, 0.1, -0.0",
               "i9007199254740993|i-9223372036854775808|i9223372036854775807|r1.0000000000000001e+300|r0.10000000000000001|"
               "r-0\n");
        expect("SELECT 9e999, -9e999, 5e-324, 1.7976931348623157e308",
               "rinf|r-inf|r4.9406564584124654e-324|r1.7976931348623157e+308\n");
        expect("SELECT 'x''41''', '\"\\/', char(9, 10, 0x1f600), 'i1', x''", "tx'41'|t\"\\/|t\t\n\xf0\x9f\x98\x80|ti1|b\n");
        expect("SELECT 1 WHERE 0", "");
        expect("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 500) SELECT count(*) > 0, count(*) "
               "< 500 "
               "FROM (SELECT CASE WHEN random() % 2 THEN 1 ELSE 'a' END AS r FROM c) WHERE r = 1",
               "i1|i1\n");
        for (int i = 0; i < 20; i++) /* a value that was computed twice would have the type of another */
                g_free(rqlite_rig_query(
                        &rig, "SELECT CASE WHEN random() % 2 THEN 1 ELSE 'a' END FROM (VALUES (1), (2), (3))", NULL, 0));
        g_assert_cmpint(rig.error.error, ==, ERROR_NONE);
        expect("VALUES (1), (2)", "i1\ni2\n");
        expect("SELECT CAST(1 AS REAL) AS x UNION ALL SELECT 2 UNION ALL SELECT 'a' ORDER BY x", "r1\ni2\nta\n");
        expect("WITH c AS (SELECT 1 AS i) SELECT i FROM c UNION SELECT 0.0 EXCEPT SELECT 1", "r0\n");
        expect("SELECT 3 -- ends in a comment", "i3\n");
        expect(" /* begins with one */ SELECT 4; /* and is not closed", "i4\n");
        tear_down();
}

static void test_declared_types(void) {
        set_up();
        must("CREATE TABLE t(i INTEGER PRIMARY KEY, r REAL, d DATE, b BOOLEAN, x, z BLOB)");
        must("INSERT INTO t VALUES(1, 1, '2024-01-02', 1, 1.0, x'0102'), (2, 2.5, 7, 0, 'a', 'text')");
        expect("SELECT * FROM t", "i1|r1|t2024-01-02|i1|r1|b0102\ni2|r2.5|i7|i0|ta|ttext\n");
        expect("SELECT r, x FROM t UNION ALL SELECT x, r FROM t ORDER BY 1", "r1|r1\nr1|r1\nr2.5|ta\nta|r2.5\n");
        tear_down();
}

static PageValue text_value(const char *text, size_t size) {
        return (PageValue) { .type = VALUE_TEXT, .bytes = (const uint8_t *) text, .size = size };
}

static void test_parameters(void) {
        static const uint8_t blob[] = { 0, 1, 0xff };
        uint8_t large[8], whole[8], infinite[8], nan_bytes[8], negative[8];
        const PageValue values[] = {
                { .type = VALUE_INTEGER, .bytes = large, .size = 8 },
                { .type = VALUE_REAL, .bytes = whole, .size = 8 },
                text_value("x'41'", 5),
                { .type = VALUE_BLOB, .bytes = blob, .size = sizeof blob },
                { .type = VALUE_NULL },
                { .type = VALUE_REAL, .bytes = infinite, .size = 8 },
                text_value("a\0b", 3),
                { .type = VALUE_REAL, .bytes = nan_bytes, .size = 8 },
                { .type = VALUE_REAL, .bytes = negative, .size = 8 },
                text_value("it's \"\\\n", 8),
        };
        g_autoptr(GByteArray) row = rqlite_rig_row(G_N_ELEMENTS(values), values);
        g_autofree char *got = NULL, *again = NULL;

        store_le64(large, (uint64_t) INT64_MIN);
        store_le_double(whole, 2);
        store_le_double(infinite, INFINITY);
        store_le_double(nan_bytes, NAN);
        store_le_double(negative, -0.0);
        g_byte_array_free(g_steal_pointer(&row), TRUE);
        row = rqlite_rig_row(G_N_ELEMENTS(values), values);
        set_up();
        got = rqlite_rig_query(&rig, "SELECT ?, ?, ?, ?, ?, ?, hex(?), ?, ?, ?", row, G_N_ELEMENTS(values));
        g_assert_cmpstr(got, ==, "i-9223372036854775808|r2|tx'41'|b0001FF|n|rinf|t610062|n|r-0|tit's \"\\\n\n");
        again = rqlite_rig_query(&rig, "SELECT ?4, ?10, :a, '?', \"?\" FROM (SELECT ?9 AS \"?\"), (SELECT ?3 -- ?8\n)"
                                       " WHERE ?1 IS NOT ?5 AND ?2 IS ?2 AND ?6 > 0 AND ?7 <> '' AND ?8 IS NULL",
                                 row, G_N_ELEMENTS(values));
        g_assert_cmpstr(again, ==, NULL); /* :a has no value */
        g_assert_cmpint(rig.error.error, ==, ERROR_PARAMETER_COUNT);
        again = rqlite_rig_query(&rig, "SELECT ?4, ?10, '?', \"?\" FROM (SELECT ?9 AS \"?\"), (SELECT ?3 -- ?8\n)"
                                       " WHERE ?1 IS NOT ?5 AND ?2 IS ?2 AND ?6 > 0 AND ?7 <> '' AND ?8 IS NULL",
                                 row, G_N_ELEMENTS(values));
        g_assert_cmpstr(again, ==, "b0001FF|tit's \"\\\n|t?|r-0\n");
        tear_down();
}

/* ---- errors ---- */

static void test_errors(void) {
        set_up();
        must("CREATE TABLE t(id INTEGER PRIMARY KEY, a NOT NULL, b UNIQUE, c CHECK (c > 0), d REFERENCES t)");
        must("CREATE TABLE u(x, y, PRIMARY KEY (x, y))");
        must("INSERT INTO t VALUES(1, 1, 1, 1, NULL)");
        must("INSERT INTO u VALUES(1, 2)");
        expect_error("SELECT", ERROR_SQL, SQLITE_ERROR, "incomplete input");
        expect_error("SELECT nowhere FROM t", ERROR_SQL, SQLITE_ERROR, "no such column: nowhere");
        g_assert_cmpint(rig.error.sql_offset, ==, 7);
        expect_error("SELECT * FROM missing", ERROR_SQL, SQLITE_ERROR, "no such table: missing");
        expect_error("SELECT missing()", ERROR_MISSING_FUNCTION, SQLITE_ERROR, "no such function: missing");
        expect_error("SELECT abs(-9223372036854775808)", ERROR_SQL, SQLITE_ERROR, "integer overflow");
        expect_error("", ERROR_EMPTY_STATEMENT, 0, NULL);
        expect_error("SELECT 1; SELECT 2", ERROR_SEVERAL_STATEMENTS, 0, NULL);
        expect_error("ATTACH ':memory:' AS x", ERROR_NOT_ALLOWED, SQLITE_AUTH, NULL);
        refuse("INSERT INTO t VALUES(1, 1, 2, 1, NULL)", ERROR_SQL, SQLITE_CONSTRAINT_PRIMARYKEY,
               "UNIQUE constraint failed: t.id");
        refuse("INSERT INTO t VALUES(2, 1, 1, 1, NULL)", ERROR_SQL, SQLITE_CONSTRAINT_UNIQUE,
               "UNIQUE constraint failed: t.b");
        refuse("INSERT INTO u VALUES(1, 2)", ERROR_SQL, SQLITE_CONSTRAINT_PRIMARYKEY, "UNIQUE constraint failed: u.x, u.y");
        refuse("INSERT INTO t VALUES(2, NULL, 2, 1, NULL)", ERROR_SQL, SQLITE_CONSTRAINT_NOTNULL,
               "NOT NULL constraint failed: t.a");
        refuse("INSERT INTO t VALUES(2, 1, 2, 0, NULL)", ERROR_SQL, SQLITE_CONSTRAINT_CHECK,
               "CHECK constraint failed: c > 0");
        refuse("INSERT INTO t VALUES(2, 1, 2, 1, 9)", ERROR_SQL, SQLITE_CONSTRAINT_FOREIGNKEY,
               "FOREIGN KEY constraint failed");
        refuse("INSERT INTO t(id) VALUES('x')", ERROR_SQL, SQLITE_MISMATCH, "datatype mismatch");
        refuse("BEGIN", ERROR_NOT_ALLOWED, SQLITE_AUTH,
               "BEGIN is not allowed: the service runs each statement in a transaction");
        expect("SELECT count(*) FROM t", "i1\n");
        tear_down();
}

/* ---- writes ---- */

static void test_writes(void) {
        RqliteWrite several[] = {
                { .sql = "INSERT INTO t(a) VALUES('x'), ('y')" },
                { .sql = "UPDATE t SET a = a || '!'" },
                { .sql = "CREATE INDEX i ON t(a)" },
                { .sql = "DELETE FROM t WHERE id = 1 RETURNING id, a, 1.0" },
                { .sql = "DELETE FROM t WHERE id = 99 RETURNING id" },
        };

        set_up();
        must("CREATE TABLE t(id INTEGER PRIMARY KEY, a)");
        g_assert_true(rqlite_rig_write(&rig, several, G_N_ELEMENTS(several), false));
        g_assert_cmpint(several[0].n_changes, ==, 2);
        g_assert_cmpint(several[0].last_rowid, ==, 2);
        g_assert_cmpint(several[1].n_changes, ==, 2);
        g_assert_cmpint(several[1].last_rowid, ==, 0);
        g_assert_cmpint(several[2].n_changes, ==, 0);
        g_assert_cmpint(several[3].n_changes, ==, 1);
        g_assert_cmpstr(several[3].rows, ==, "i1|tx!|r1\n");
        g_assert_cmpint(several[4].n_changes, ==, 0);
        g_assert_cmpstr(several[4].rows, ==, "");
        g_free(several[3].rows);
        g_free(several[4].rows);
        expect("SELECT * FROM t", "i2|ty!\n");
        tear_down();
}

/* Values have their types, and infinities are no trouble. */
static void test_returning(void) {
        RqliteWrite several[] = {
                { .sql = "INSERT INTO t(c0, r, d, \"a b\") VALUES(9e999, 2, '2024-01-02', x'00ff'), (-9e999, NULL, 1, 1.0)"
                         " RETURNING *, r * 2 twice, (SELECT ',' || max(1, 2)) AS \"a b\" -- the end\n, id+0 -- and more" },
                { .sql = "REPLACE INTO t(id, r) VALUES (9, abs(-1)) RETURNING t.r, rowid, *, 'it''s', *" },
        };

        set_up();
        must("CREATE TABLE t(id INTEGER PRIMARY KEY, c0, r REAL, d DATE, \"a b\")");
        g_assert_true(rqlite_rig_write(&rig, &several[0], 1, false));
        g_assert_cmpstr(several[0].rows, ==, "i1|rinf|r2|t2024-01-02|b00FF|r4|t,2|i1\ni2|r-inf|n|i1|r1|n|t,2|i2\n");
        g_assert_cmpint(several[0].n_changes, ==, 2);
        g_assert_cmpint(several[0].last_rowid, ==, 2);
        g_assert_true(rqlite_rig_write(&rig, &several[1], 1, false));
        g_assert_cmpstr(several[1].rows, ==, "r1|i9|i9|n|r1|n|n|tit's|i9|n|r1|n|n\n");
        g_assert_cmpint(several[1].last_rowid, ==, 9);
        g_free(several[0].rows);
        g_free(several[1].rows);
        tear_down();
}

/* One statement fails, and nothing is written. Statements of one job are numbered. */
static void test_all_or_nothing(void) {
        RqliteWrite several[] = {
                { .sql = "INSERT INTO t VALUES(1)" },
                { .sql = "INSERT INTO t VALUES(2)" },
                { .sql = "INSERT INTO t VALUES(1)" },
        };

        set_up();
        must("CREATE TABLE t(id INTEGER PRIMARY KEY)");
        g_assert_false(rqlite_rig_write(&rig, several, G_N_ELEMENTS(several), false));
        g_assert_cmpstr(rig.error.message, ==, "UNIQUE constraint failed: t.id");
        g_assert_false(rqlite_rig_write(&rig, several, G_N_ELEMENTS(several), true));
        g_assert_cmpstr(rig.error.message, ==, "statement 3 of 3: UNIQUE constraint failed: t.id");
        g_assert_cmpint(rig.error.extended_code, ==, SQLITE_CONSTRAINT_PRIMARYKEY);
        expect("SELECT count(*) FROM t", "i0\n");
        tear_down();
}

/* A savepoint that is taken back leaves no trace in the request. */
static void test_undo(void) {
        static const char *const kept[] = { "INSERT INTO t VALUES(1)", "INSERT INTO t VALUES(3)" };
        EngineConnection *connection;
        EngineStatement *statement;
        const JobSpec spec = {};
        RowSink sink = {};

        set_up();
        must("CREATE TABLE t(id INTEGER PRIMARY KEY)");
        g_assert_true(rqlite_engine.begin(rig.pool, true, &connection, &rig.error));
        for (size_t i = 0; i < 3; i++) {
                const char *sql = i == 1 ? "INSERT INTO t VALUES(2)" : kept[i / 2];

                g_assert_true(rqlite_engine.save(connection, &rig.error));
                g_assert_true(rqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &rig.error));
                g_assert_true(rqlite_engine.bind(statement, &spec, &rig.error));
                g_assert_cmpint(rqlite_engine.step(statement, &sink, &rig.error), ==, ENGINE_DONE);
                rqlite_engine.release(statement);
                if (i == 1)
                        rqlite_engine.undo(connection);
                else
                        g_assert_true(rqlite_engine.keep(connection, &rig.error));
        }
        g_assert_true(rqlite_engine.commit(connection, &rig.error));
        rqlite_engine.disconnect(rig.pool, connection);
        expect("SELECT * FROM t", "i1\ni3\n");
        tear_down();
}

static void test_rights(void) {
        static const char *const settings[] = {
                "PRAGMA cache_size = -2000000", "PRAGMA foreign_keys", "PRAGMA no_such = 1",
        };
        static const char *const messages[] = {
                "setting PRAGMA cache_size is not allowed: the service chooses the settings of its connections",
                "PRAGMA foreign_keys is not allowed: the service chooses the settings of its connections",
                "setting PRAGMA no_such is not allowed: the service chooses the settings of its connections",
        };
        Bytes tables[] = { { "open", 4 } };
        RqliteRig reader;
        g_autofree char *got = NULL;

        set_up();
        must("CREATE TABLE open(x)");
        must("CREATE TABLE shut(x)");
        rqlite_rig_begin(&reader, rqlite_nodes_urls(&nodes, NULL));
        reader.setup.writes = false;
        got = rqlite_rig_query(&reader, "DELETE FROM open", NULL, 0);
        g_assert_cmpint(reader.error.error, ==, ERROR_READ_ONLY);
        rqlite_rig_end(&reader);
        rqlite_rig_end(&rig);
        rqlite_rig_begin(&rig, rqlite_nodes_urls(&nodes, NULL));
        rig.setup.write_tables = tables;
        rig.setup.n_write_tables = 1;
        rig.setup.write_schema = false;
        must("INSERT INTO open VALUES(1)");
        refuse("INSERT INTO shut VALUES(1)", ERROR_NOT_ALLOWED, 0,
               "writing to shut is not allowed: WriteTables= of this database does not list it");
        refuse("DROP TABLE open", ERROR_NOT_ALLOWED, SQLITE_AUTH,
               "a change of the schema is not allowed: WriteSchema= of this database does not allow it");
        /* the node would carry it out for all of its clients */
        for (size_t i = 0; i < G_N_ELEMENTS(settings); i++) {
                refuse(settings[i], ERROR_NOT_ALLOWED, SQLITE_AUTH, messages[i]);
                g_free(rqlite_rig_query(&rig, settings[i], NULL, 0));
                g_assert_cmpstr(rig.error.message, ==, messages[i]);
        }
        rig.setup.write_schema = true;
        must("CREATE TABLE IF NOT EXISTS open(a)");
        must("CREATE INDEX IF NOT EXISTS nowhere ON open(x)");
        must("CREATE INDEX IF NOT EXISTS nowhere ON open(x)");
        must("DROP TABLE IF EXISTS nowhere");
        tear_down();
}

/* ---- the schema ---- */

/* Another program changes the schema: each statement is compiled by the new one. */
static void test_schema_changes(void) {
        RqliteRig other;

        set_up();
        must("CREATE TABLE t(a)");
        must("INSERT INTO t VALUES(1)");
        expect("SELECT * FROM t", "i1\n");
        rqlite_rig_begin(&other, rqlite_nodes_urls(&nodes, NULL));
        g_assert_true(rqlite_rig_execute(&other, "ALTER TABLE t ADD COLUMN b DEFAULT 'new'"));
        expect("SELECT * FROM t", "i1|tnew\n");
        g_assert_true(rqlite_rig_execute(&other, "CREATE TABLE u AS SELECT 5 AS five"));
        expect("SELECT * FROM u", "i5\n");
        g_assert_true(rqlite_rig_execute(&other, "DROP TABLE t"));
        expect_error("SELECT * FROM t", ERROR_SQL, SQLITE_ERROR, "no such table: t");
        rqlite_rig_end(&other);
        tear_down();
}

/* Virtual tables, views, triggers, generated columns, AUTOINCREMENT and statistics are in the shadow. */
static void test_schema_objects(void) {
        set_up();
        must("CREATE TABLE a(id INTEGER PRIMARY KEY AUTOINCREMENT, x, y AS (x * 2))");
        must("CREATE VIEW v AS SELECT id, y FROM a");
        must("CREATE TRIGGER r INSTEAD OF INSERT ON v BEGIN INSERT INTO a(x) VALUES(new.y / 2); END");
        must("CREATE VIRTUAL TABLE f USING fts5(words)");
        must("CREATE VIRTUAL TABLE p USING rtree(id, x0, x1)");
        must("INSERT INTO v(y) VALUES(10)");
        must("ANALYZE");
        must("INSERT INTO f VALUES('some words'), ('other words')");
        must("INSERT INTO p VALUES(1, 2, 3)");
        expect("SELECT * FROM v", "i1|i10\n");
        expect("SELECT words FROM f WHERE f MATCH 'some'", "tsome words\n");
        expect("SELECT * FROM p", "i1|r2|r3\n");
        expect("SELECT seq FROM sqlite_sequence", "i1\n");
        expect("SELECT name FROM pragma_table_list WHERE name = 'a'", "ta\n");
        expect("PRAGMA table_info(a)", "i0|tid|tINTEGER|i0|n|i1\ni1|tx|t|i0|n|i0\n");
        tear_down();
}

/* ---- windows ---- */

/* Gives t() that many rows, some of them long. */
static void fill_table(unsigned n) {
        g_autofree char *sql =
                g_strdup_printf("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %u) "
                                "INSERT INTO t SELECT i * 3, i %% 7, 'row ' || i FROM c",
                                n);

        must("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)");
        must(sql);
}

static guint64 count_rows(const char *sql) {
        g_autofree char *rows = rqlite_rig_query(&rig, sql, NULL, 0);
        guint64 n = 0;

        g_assert_cmpstr(rig.error.message, ==, NULL);
        for (const char *at = rows; (at = strchr(at, '\n')); at++)
                n++;
        return n;
}

static void test_windows(void) {
        static const char *const queries[] = {
                "SELECT * FROM t",
                "SELECT b FROM t WHERE a = 3",
                "SELECT id, a || b FROM t AS x WHERE x.id > 3000",
                "SELECT a FROM t ORDER BY id",
                "SELECT b FROM t WHERE b LIKE '%99'",
                "SELECT count(*) FROM t",
                "SELECT a, count(*) FROM t GROUP BY a",
                "SELECT * FROM t ORDER BY b",
                "SELECT * FROM t LIMIT 1500 OFFSET 10",
                "SELECT * FROM main.t",
                "SELECT rowid FROM t",
                "SELECT DISTINCT a FROM t",
                "SELECT * FROM t ORDER BY id DESC",
                "SELECT a FROM t UNION ALL SELECT b FROM t",
                "SELECT (SELECT max(id) FROM t) FROM t",
                "SELECT sum(id) OVER (ORDER BY id) FROM t",
                "SELECT id FROM t WHERE id IN (3, 6, 9000)",
        };
        sqlite3 *db;

        set_up();
        fill_table(5000);
        g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db,
                                     "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);"
                                     "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000) "
                                     "INSERT INTO t SELECT i * 3, i % 7, 'row ' || i FROM c",
                                     NULL, NULL, NULL),
                        ==, SQLITE_OK);
        for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
                g_autofree char *here = rqlite_rig_query_here(db, queries[i]);

                expect(queries[i], here);
        }
        (void) sqlite3_close(db);
        tear_down();
}

/* A commit of another program between two windows would mix two states. */
static void test_change_between_windows(void) {
        static const PageWriter writer = { .fd = -1 };
        static uint8_t memory[65536];
        PageEncoder encoder;
        RowSink sink = { .encoder = &encoder, .writer = &writer, .row_size_max = 1000, .n_rows_max = UINT64_MAX };
        const char *sql = "SELECT * FROM t";
        EngineConnection *connection;
        EngineStatement *statement;
        const JobSpec spec = {};
        EngineResult result;

        set_up();
        fill_table(5000);
        page_encoder_init(&encoder, memory, sizeof memory, 1);
        g_assert_true(rqlite_engine.connect(rig.pool, "", 0, NULL, &connection, &rig.error));
        g_assert_true(rqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &rig.error));
        g_assert_true(rqlite_engine.bind(statement, &spec, &rig.error));
        g_assert_cmpint(rqlite_engine.step(statement, &sink, &rig.error), ==, ENGINE_ROW);
        must("UPDATE t SET a = 0 WHERE id = 15000");
        do {
                result = rqlite_engine.fill(statement, &sink, &rig.error);
                page_encoder_clear(&encoder);
        } while (result == ENGINE_PAGE_FULL || result == ENGINE_NO_ROOM);
        g_assert_cmpint(result, ==, ENGINE_FAILED);
        g_assert_cmpint(rig.error.error, ==, ERROR_BUSY);
        g_assert_cmpuint(sink.n_rows, <, 5000);
        rqlite_engine.release(statement);
        rqlite_engine.disconnect(rig.pool, connection);
        g_assert_cmpuint(count_rows(sql), ==, 5000);
        tear_down();
}

/* ---- random queries: without quote(), whose numbers differ between releases of SQLite ---- */

static const char *const random_schema[] = {
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT COLLATE NOCASE, c REAL, d)",
        "CREATE TABLE u(k TEXT, v NUMERIC, w BLOB, x DATE)",
        "CREATE INDEX tb ON t(b)",
        "CREATE VIEW tv AS SELECT a, c, d FROM t",
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60) INSERT INTO t SELECT i, i % 5, "
        "CASE i % 3 WHEN 0 THEN 'B' || i % 7 WHEN 1 THEN 'b' || i % 4 END, CASE WHEN i % 4 THEN i * 1.5 ELSE i END, "
        "CASE i % 6 WHEN 0 THEN i WHEN 1 THEN i * 1.0 WHEN 2 THEN 'text ' || i WHEN 3 THEN CAST('b' || i AS BLOB) "
        "WHEN 4 THEN 9e999 END FROM c",
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 25) INSERT INTO u SELECT "
        "'b' || i % 4, CASE WHEN i % 2 THEN i ELSE i / 4.0 END, CASE WHEN i % 3 THEN x'00ff' ELSE 'w' END, "
        "CASE WHEN i % 2 THEN '2024-01-' || (10 + i) ELSE i END FROM c",
};

static GRand *dice;

static const char *one_of(const char *const *texts, unsigned n) {
        return texts[g_rand_int_range(dice, 0, (gint) n)];
}

#define ONE_OF(...)                                                                                                         \
        one_of((const char *const[]) { __VA_ARGS__ }, G_N_ELEMENTS(((const char *const[]) { __VA_ARGS__ })))

static bool one_in(int n) {
        return g_rand_int_range(dice, 0, n) == 0;
}

static void add_expression(GString *sql, unsigned depth);

static void add_binary(GString *sql, unsigned depth, const char *before, const char *between, const char *after) {
        g_string_append(sql, before);
        add_expression(sql, depth - 1);
        g_string_append(sql, between);
        add_expression(sql, depth - 1);
        g_string_append(sql, after);
}

static void add_expression(GString *sql, unsigned depth) {
        g_autofree char *operator = NULL, *function = NULL;

        if (depth == 0 || one_in(3)) {
                g_string_append(sql, ONE_OF("a", "b", "c", "d", "id", "d", "1", "2.0", "-1.5", "''", "'b1'", "x'62'", "NULL",
                                            "9e999", "'10'", "a + c", "typeof(d)", "0", "0.1", "'x''41'''", "hex(d)",
                                            "b || a", "length(d)", "abs(c)", "9007199254740993"));
                return;
        }
        switch (g_rand_int_range(dice, 0, 7)) {
        case 0:
                add_binary(sql, depth, "CASE WHEN ", " THEN ", " END");
                break;
        case 1:
                function = g_strconcat(ONE_OF("coalesce", "max", "min", "ifnull", "nullif"), "(", NULL);
                add_binary(sql, depth, function, ", ", ")");
                break;
        case 2:
                g_string_append(sql, "CAST(");
                add_expression(sql, depth - 1);
                g_string_append_printf(sql, " AS %s)", ONE_OF("INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC"));
                break;
        case 3:
                g_string_append_printf(sql, "(SELECT %s(v) FROM u AS s WHERE s.k = b)",
                                       ONE_OF("count", "max", "total", "sum", "min"));
                break;
        default:
                operator= g_strdup_printf(" %s ",
                                          ONE_OF("+", "-", "*", "/", "=", "<", "IS", "AND", "OR", "||", "IS NOT", ">="));
                add_binary(sql, depth, "(", operator, ")");
        }
}

/* A SELECT of two columns without ORDER BY. */
static void add_core(GString *sql) {
        bool groups = one_in(6);

        g_string_append(sql, one_in(6) ? "SELECT DISTINCT " : "SELECT ");
        if (groups)
                g_string_append_printf(sql, "a, %s FROM t", ONE_OF("count(*)", "sum(c)", "max(d)", "min(id)", "avg(a)"));
        else {
                add_expression(sql, 2);
                g_string_append(sql, ", ");
                add_expression(sql, 2);
                g_string_append_printf(sql, " FROM %s",
                                       ONE_OF("t", "t", "t AS t", "t LEFT JOIN u ON k = b", "t JOIN u ON v = a",
                                              "(SELECT * FROM t WHERE id > 7)"));
        }
        if (one_in(2)) {
                g_string_append(sql, " WHERE ");
                add_expression(sql, 2);
        }
        if (groups)
                g_string_append(sql, " GROUP BY a");
}

/* With LIMIT, the rows before it must have a whole order: that of the values, and of their types for equal ones. */
static char *random_query(void) {
        GString *sql = g_string_new(one_in(8) ? "WITH q AS (SELECT a FROM tv) " : NULL);

        add_core(sql);
        if (one_in(5)) {
                g_string_append_printf(sql, " %s ", ONE_OF("UNION", "UNION ALL", "EXCEPT", "INTERSECT"));
                add_core(sql);
        }
        if (one_in(2))
                g_string_append_printf(sql, " ORDER BY %s",
                                       ONE_OF("1, 2", "2 DESC, 1", "1 COLLATE NOCASE, 2, 1", "2, 1 DESC"));
        if (one_in(5))
                g_string_append_printf(sql, " LIMIT %d OFFSET %d", g_rand_int_range(dice, 0, 20),
                                       g_rand_int_range(dice, 0, 5));
        if (one_in(4))
                g_string_append(sql, ONE_OF(";", " -- end", "; -- end", "/* end */", " /* not closed"));
        return g_string_free(sql, FALSE);
}

/* SQLIPC_RQLITE_SEED=N makes other queries, SQLIPC_RQLITE_QUERIES=N more of them. Both have the same order of rows, also
 * where SQL promises none. */
static void test_random_queries(void) {
        const char *number = g_getenv("SQLIPC_RQLITE_QUERIES"), *seed = g_getenv("SQLIPC_RQLITE_SEED");
        unsigned n = number ? (unsigned) atoi(number) : 400, n_failed = 0;
        sqlite3 *db;

        dice = g_rand_new_with_seed(seed ? (guint32) atoi(seed) : 1);
        set_up();
        g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
        for (size_t i = 0; i < G_N_ELEMENTS(random_schema); i++) {
                g_assert_cmpint(sqlite3_exec(db, random_schema[i], NULL, NULL, NULL), ==, SQLITE_OK);
                must(random_schema[i]);
        }
        for (unsigned i = 0; i < n; i++) {
                g_autofree char *sql = random_query(), *here = rqlite_rig_query_here(db, sql);
                g_autofree char *there = rqlite_rig_query(&rig, sql, NULL, 0);

                if (!here != !there)
                        g_error("%s: %s", sql, here ? rig.error.message : "an error only here");
                if (g_strcmp0(here, there) != 0)
                        g_error("%s\n%s\nbut here\n%s", sql, there, here);
                n_failed += !here;
        }
        g_test_message("%u queries, of which %u failed here and there", n, n_failed);
        g_assert_cmpuint(n_failed, <, n / 2);
        (void) sqlite3_close(db);
        g_rand_free(dice);
        tear_down();
}

/* ---- the rest ---- */

static void test_interrupt(void) {
        g_autofree char *got = NULL;

        set_up();
        expect("SELECT 1", "i1\n");
        rig.interrupt_at = rig.n_progress + 5;
        got = rqlite_rig_query(
                &rig,
                "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 30000000) SELECT sum(i) FROM c",
                NULL, 0);
        g_assert_cmpstr(got, ==, NULL);
        g_assert_cmpint(rig.error.error, ==, ERROR_TIMED_OUT);
        rqlite_rig_end(&rig);
        rqlite_nodes_stop(&nodes);
}

static void test_login(void) {
        rqlite_nodes_start(&nodes, 1, "eve:secret");
        rqlite_rig_begin(&rig, rqlite_nodes_urls(&nodes, "eve"));
        rig.setup.password = "wrong password";
        rqlite_engine.stop(rig.pool);
        g_assert_cmpint(rqlite_engine.start(&rig.setup, NULL, NULL, &rig.pool), ==, 0);
        expect_error("SELECT 1", ERROR_LOGIN_FAILED, 0, NULL);
        g_assert_null(strstr(rig.error.message, "wrong password"));
        rqlite_engine.stop(rig.pool);
        rig.setup.password = "secret";
        g_assert_cmpint(rqlite_engine.start(&rig.setup, NULL, NULL, &rig.pool), ==, 0);
        expect("SELECT 1", "i1\n");
        tear_down();
}

static void test_unreachable(void) {
        rqlite_rig_begin(&rig, g_strdup("http://127.0.0.1:1 http://127.0.0.1:2"));
        rig.setup.busy_usec = 0;
        expect_error("SELECT 1", ERROR_SERVER_UNREACHABLE, 0, NULL);
        g_assert_null(strstr(rig.error.message, "127.0.0.1")); /* readers do not get the address of the server */
        g_assert_null(strstr(rig.error.message, "port"));
        rqlite_rig_end(&rig);
        rqlite_rig_begin(&rig, g_strdup("http://secret.invalid:4001"));
        rig.setup.busy_usec = 0;
        expect_error("SELECT 1", ERROR_SERVER_UNREACHABLE, 0, NULL);
        g_assert_null(strstr(rig.error.message, "secret"));
        rqlite_rig_end(&rig);
        rqlite_rig_begin(&rig, g_strdup("http://a:open-secret@127.0.0.1:1"));
        expect_error("SELECT 1", ERROR_LOGIN_FAILED, 0, NULL);
        g_assert_null(strstr(rig.error.message, "open-secret"));
        rqlite_rig_end(&rig);
        rqlite_rig_begin(&rig, g_strdup("ftp://127.0.0.1"));
        expect_error("SELECT 1", ERROR_CANNOT_OPEN, 0, NULL);
        rqlite_rig_end(&rig);
}

static void test_connections(void) {
        EngineConnections *count;
        EngineConnection *all[4], *more;

        set_up();
        count = rqlite_engine.connections(rig.pool);
        for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
                g_assert_true(rqlite_engine.connect(rig.pool, "", 0, NULL, &all[i], &rig.error));
        g_assert_false(rqlite_engine.connect(rig.pool, "", 0, NULL, &more, &rig.error));
        g_assert_cmpint(rig.error.error, ==, ERROR_BUSY);
        rqlite_engine.give_up(&rig.error);
        g_assert_nonnull(strstr(rig.error.message, "ConnectionsMax="));
        for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
                rqlite_engine.disconnect(rig.pool, all[i]);
        g_assert_true(count->lacks && count->n == 4 && rqlite_engine.close_idle(rig.pool) && count->n == 3);
        expect("SELECT 1", "i1\n");
        g_assert_cmpuint(rqlite_engine.expire(rig.pool, UINT64_MAX / 2), ==, UINT64_MAX);
        g_assert_false(count->n > 0 || rqlite_engine.close_idle(rig.pool));
        expect("SELECT 1", "i1\n");
        tear_down();
}

/* A server that does not tell the index of a commit is asked for it. */
static void test_old_server(void) {
        EngineConnection *connection;
        FileState state = {};

        g_assert_true(g_setenv("RQLITE_IMITATION_WITHOUT_INDEX", "1", true));
        set_up();
        g_unsetenv("RQLITE_IMITATION_WITHOUT_INDEX");
        must("CREATE TABLE t(x)");
        g_assert_true(rqlite_engine.begin(rig.pool, true, &connection, &rig.error));
        rqlite_engine.state(connection, &state);
        rqlite_engine.disconnect(rig.pool, connection);
        g_assert_cmpuint(state.content, >, 0);
        tear_down();
}

static void test_observe(void) {
        EnginePool *observer;
        Observed first, same, after;

        set_up();
        must("CREATE TABLE t(x)");
        g_assert_cmpint(rqlite_engine.start(&rig.setup, NULL, NULL, &observer), ==, 0);
        rqlite_engine.observe(observer, -1, &first);
        rqlite_engine.observe(observer, -1, &same);
        must("INSERT INTO t VALUES(1)");
        rqlite_engine.observe(observer, -1, &after);
        g_assert_true(first.polls);
        g_assert_true(file_state_same(&first.state, &same.state));
        g_assert_false(file_state_same(&first.state, &after.state));
        g_assert_cmpuint(first.schema, ==, after.schema);
        must("CREATE TABLE u(x)");
        rqlite_engine.observe(observer, -1, &after);
        g_assert_cmpuint(first.schema, !=, after.schema);
        rqlite_engine.stop(observer);
        tear_down();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rqlite/values", test_values);
        g_test_add_func("/rqlite/declared-types", test_declared_types);
        g_test_add_func("/rqlite/parameters", test_parameters);
        g_test_add_func("/rqlite/errors", test_errors);
        g_test_add_func("/rqlite/writes", test_writes);
        g_test_add_func("/rqlite/returning", test_returning);
        g_test_add_func("/rqlite/all-or-nothing", test_all_or_nothing);
        g_test_add_func("/rqlite/undo", test_undo);
        g_test_add_func("/rqlite/rights", test_rights);
        g_test_add_func("/rqlite/schema-changes", test_schema_changes);
        g_test_add_func("/rqlite/schema-objects", test_schema_objects);
        g_test_add_func("/rqlite/windows", test_windows);
        g_test_add_func("/rqlite/change-between-windows", test_change_between_windows);
        g_test_add_func("/rqlite/random-queries", test_random_queries);
        g_test_add_func("/rqlite/interrupt", test_interrupt);
        g_test_add_func("/rqlite/login", test_login);
        g_test_add_func("/rqlite/unreachable", test_unreachable);
        g_test_add_func("/rqlite/connections", test_connections);
        g_test_add_func("/rqlite/old-server", test_old_server);
        g_test_add_func("/rqlite/observe", test_observe);
        return g_test_run();
}
