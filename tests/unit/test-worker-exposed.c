/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Expose=, below the authorizer: the plans that SQLite makes over exposed objects, the SQL that they become, and the
 * statements of the file's connection at each time.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>

#include "daemon/worker/exposed/exposed-plan.h"
#include "daemon/worker/sqlite/sqlite-connection.h"
#include "daemon/worker/sqlite/sqlite-engine.h"

typedef struct Fixture {
        char *folder, *path;
        SqliteConnection database;
        Setup setup;
        Bytes names[8];
} Fixture;

static int never(void *userdata) {
        (void) userdata;
        return 0;
}

static void exec(const char *path, const char *sql) {
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
}

static bool open_database(Fixture *f, SqlError *error) {
        return sqlite_connection_open(&f->database, &f->setup, never, NULL, error);
}

static void set_up(Fixture *f, const char *schema, ...) {
        SqlError error = SQL_ERROR_INIT;
        const char *name;
        va_list names;

        *f = (Fixture) { .folder = g_dir_make_tmp("sqlipc-exposed-XXXXXX", NULL) };
        f->path = g_build_filename(f->folder, "db", NULL);
        exec(f->path, schema);
        f->setup = (Setup) {
                .path = f->path, .heap_size_max = 64 << 20, .temp_size_max = 64 << 20, .sql_size_max = 10000,
                .expression_depth_max = 100, .compound_selects_max = 10, .vdbe_ops_max = 100000, .variables_max = 100,
                .exposed = f->names,
        };
        va_start(names, schema);
        while ((name = va_arg(names, const char *)))
                f->names[f->setup.n_exposed++] = (Bytes) { .data = name, .size = strlen(name) };
        va_end(names);
        g_assert_true(open_database(f, &error));
        sqlite3_set_authorizer(f->database.db, NULL, NULL);
}

static void tear_down(Fixture *f) {
        sqlite_connection_close(&f->database);
        g_assert_cmpint(g_unlink(f->path), ==, 0);
        g_assert_cmpint(g_rmdir(f->folder), ==, 0);
        g_free(f->path);
        g_free(f->folder);
}

/* SQLite's description of its plan: a line for each table, "SCAN b VIRTUAL TABLE INDEX 0:...". */
static char *plan_of(Fixture *f, const char *sql) {
        g_autofree char *explain = g_strconcat("EXPLAIN QUERY PLAN ", sql, NULL);
        GString *text = g_string_new(NULL);
        sqlite3_stmt *stmt;

        exposed_expect(f->database.exposed, sql, strlen(sql));
        g_assert_cmpint(sqlite3_prepare_v2(f->database.db, explain, -1, &stmt, NULL), ==, SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW)
                g_string_append_printf(text, "%s|", (const char *) sqlite3_column_text(stmt, 3));
        g_assert_cmpint(sqlite3_finalize(stmt), ==, SQLITE_OK);
        return g_string_free(text, FALSE);
}

static void check_plan(Fixture *f, const char *sql, const char *expected) {
        g_autofree char *plan = plan_of(f, sql);

        if (!strstr(plan, expected))
                g_error("%s: %s holds no %s", sql, plan, expected);
}

static void check_no_plan(Fixture *f, const char *sql, const char *unexpected) {
        g_autofree char *plan = plan_of(f, sql);

        if (strstr(plan, unexpected))
                g_error("%s: %s holds %s", sql, plan, unexpected);
}

#define SCHEMA \
        "CREATE TABLE t(id INTEGER PRIMARY KEY, n TEXT COLLATE NOCASE, i INT, u TEXT UNIQUE, z);" \
        "CREATE INDEX t_i ON t(i, n DESC);" \
        "CREATE TABLE secret_table(secret_column);" \
        "CREATE VIEW v AS SELECT id, n, secret_column AS s FROM t LEFT JOIN secret_table ON i = secret_column;" \
        "CREATE VIRTUAL TABLE f USING fts5(body);"

/* Constraints and order that come in, and those that do not: collation, IN by text, MATCH elsewhere. */
static void test_constraints(void) {
        static const struct {
                const char *sql, *plan;
        } cases[] = {
                { "SELECT id FROM t WHERE id = 1", ":;1;e0" },
                { "SELECT id FROM t WHERE rowid > 1 AND i <= 5", ":;5;g-1m2" },
                { "SELECT n FROM t WHERE n = 'x'", ":;2;E1" },
                { "SELECT n FROM t WHERE n = ?", ":;2;e1" },
                { "SELECT n FROM t WHERE n = 'x' COLLATE BINARY", ":;2;|" },
                { "SELECT n FROM t WHERE 'x' = n", ":;2;E1" },
                { "SELECT n FROM t WHERE n LIKE 'x%'", ":;2;H1L1" },
                { "SELECT n FROM t WHERE n GLOB 'x*'", ":;2;|" },
                { "SELECT n FROM t WHERE n IN ('x', 'y')", ":;2;|" },
                { "SELECT i FROM t WHERE i IN (1, 2)", ":;4;e2" },
                { "SELECT n FROM t WHERE (u, i) IN (SELECT n, id FROM t)", ":;e;e2|" },
                { "SELECT n FROM t WHERE (u, i) /**/ IN (SELECT n, id FROM t)", ":;e;e2|" },
                { "SELECT n FROM t WHERE (u, i) -- of t\nIN (SELECT n, id FROM t)", ":;e;e2|" },
                { "SELECT n FROM t WHERE (u, i)\xef\xbb\xbfIN (SELECT n, id FROM t)", ":;e;e2|" },
                { "SELECT n FROM t WHERE (n = ?) AND i IN (1, 2)", ":;6;e1e2" },
                { "SELECT n FROM t WHERE (n, i) = ('x', 1) AND (i + 1) IN (1, 2)", ":;6;E1e2" },
                { "SELECT n FROM t WHERE n IS NULL", ":;2;n1" },
                { "SELECT i FROM t WHERE i IS ?", ":;4;i2" },
                { "SELECT id FROM t WHERE i = 5 AND u < 'x'", ":;d;e2L3" },
                { "SELECT id FROM t WHERE id = 5 AND u < 'x' AND i = 1", ":;d;e0|" }, /* there is one such row */
                { "SELECT id FROM t WHERE rowid = 5 AND u < 'x'", ":;9;e-1|" },
                { "SELECT id FROM t WHERE u = 'x' AND i = 1", ":;d;E3e2" }, /* which other values may stand for text */
                { "SELECT id FROM t ORDER BY id DESC", ":d0;1;" },
                { "SELECT i FROM t ORDER BY i, n DESC", ":a2d1;6;" },
                { "SELECT i FROM t ORDER BY i DESC, n", ":d2a1;6;" },
                { "SELECT i FROM t ORDER BY i, n", ":;6;|USE TEMP B-TREE" },
                { "SELECT n FROM t ORDER BY n COLLATE BINARY", ":;2;|USE TEMP B-TREE" },
                { "SELECT n FROM v WHERE n = 'x' AND id = 3", ":;3;E1e0" },
                { "SELECT body FROM f WHERE f MATCH 'x'", ":;3;T1" },
        };
        Fixture f;

        set_up(&f, SCHEMA, "t", "v", "f", NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                check_plan(&f, cases[i].sql, cases[i].plan);
        tear_down(&f);
}

/* A view has no rowid: where SQLite would ask for it, the view is read whole. */
static void test_views_without_rowid(void) {
        Fixture f;

        set_up(&f, SCHEMA, "t", "v", NULL);
        check_plan(&f, "SELECT n FROM v WHERE id = 1 OR n = 'x'", ":;3;|");
        check_plan(&f, "SELECT n FROM v WHERE ?1or id = 1 AND id = 2", ":;3;|");
        check_plan(&f, "SELECT n FROM v WHERE id = 1 \xef\xbb\xbfOR n = 'x'", ":;3;|");
        check_plan(&f, "SELECT 1 FROM t RIGHT JOIN v ON t.id = v.id", "SCAN v VIRTUAL TABLE INDEX 0:;1;|");
        check_plan(&f, "SELECT n FROM t WHERE id = 1 OR i = 2", "e0");
        check_plan(&f, "SELECT n FROM v WHERE id = 1 AND n = 'order'", "e0E1");
        tear_down(&f);
}

/* With SecurityBarrier= a client's conditions and order stay above a view: what is hidden there costs the same whatever is
 * asked. A table hides no rows, so it is searched as ever. */
static void test_barrier(void) {
        Fixture f;

        set_up(&f, SCHEMA, "t", "v", NULL);
        check_plan(&f, "SELECT n FROM v WHERE id = 3 AND n > 'x'", ":;3;e0");
        sqlite_connection_close(&f.database);
        f.setup.security_barrier = true;
        g_assert_true(open_database(&f, &SQL_ERROR_INIT));
        sqlite3_set_authorizer(f.database.db, NULL, NULL);
        check_plan(&f, "SELECT n FROM v WHERE id = 3 AND n > 'x'", ":;3;|");
        check_plan(&f, "SELECT n FROM v WHERE n IS NULL OR n IN ('x', 'y') ORDER BY id", ":;3;|USE TEMP B-TREE");
        check_plan(&f, "SELECT v.n FROM t JOIN v ON v.id = t.i", "SCAN v VIRTUAL TABLE INDEX 0:;3;|");
        check_plan(&f, "SELECT id FROM t WHERE id = 1", ":;1;e0");
        tear_down(&f);
}

/* Which table is searched by the other: the one that a unique key finds, or that sqlite_stat1 knows to be large. */
static void test_costs(void) {
        static const char many[] =
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 2000) "
                "INSERT INTO large SELECT x, x, x FROM n;"
                "INSERT INTO small VALUES(1, 1);"
                "ANALYZE";
        Fixture f;

        set_up(&f, "CREATE TABLE large(id INTEGER PRIMARY KEY, i INT, j INT); CREATE INDEX large_i ON large(i);"
                   "CREATE TABLE small(id INTEGER PRIMARY KEY, i INT); CREATE INDEX small_i ON small(i);",
               "large", "small", NULL);
        check_plan(&f, "SELECT 1 FROM large AS a, small AS b WHERE a.j = b.id", "SCAN b VIRTUAL TABLE INDEX 0:;1;e0");
        check_plan(&f, "SELECT 1 FROM small AS b, large AS a WHERE a.j = b.id", "SCAN b VIRTUAL TABLE INDEX 0:;1;e0");
        exec(f.path, many);
        sqlite_connection_close(&f.database);
        g_assert_true(open_database(&f, &SQL_ERROR_INIT));
        sqlite3_set_authorizer(f.database.db, NULL, NULL);
        check_plan(&f, "SELECT 1 FROM large AS a, small AS b WHERE a.i = b.i", "SCAN b VIRTUAL TABLE INDEX 0:;2;|SCAN a");
        check_plan(&f, "SELECT 1 FROM small AS b, large AS a WHERE a.i = b.i", "SCAN b VIRTUAL TABLE INDEX 0:;2;|SCAN a");
        tear_down(&f);
}

/* No plan holds a name that is not exposed. */
static void test_plans_tell_nothing(void) {
        static const char *const sqls[] = {
                "SELECT * FROM v",
                "SELECT s FROM v WHERE s = 1 ORDER BY s",
                "SELECT * FROM v WHERE s > 1 OR n = 2",
        };
        Fixture f;

        set_up(&f, SCHEMA, "v", NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(sqls); i++)
                check_no_plan(&f, sqls[i], "secret");
        tear_down(&f);
}

/* Compiles `sql` on the client's connection. An SQLite result code. */
static int compiled(Fixture *f, const char *sql) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(f->database.db, sql, -1, &stmt, NULL);

        (void) sqlite3_finalize(stmt);
        return rc & 0xff;
}

/* A damaged virtual table, one whose content is itself, and views of such tables are left out. The others can be read. */
static void test_damaged(void) {
        static const char schema[] =
                "CREATE TABLE t(a); INSERT INTO t VALUES(1);"
                "CREATE VIRTUAL TABLE five USING fts5(a); DELETE FROM five_data;"
                "CREATE VIEW view_of_five AS SELECT a FROM five;"
                "CREATE VIRTUAL TABLE tree USING rtree(id, a, b); UPDATE tree_node SET data = x'00';"
                "CREATE VIRTUAL TABLE itself USING fts4(content='t'); PRAGMA writable_schema = ON;"
                "UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE itself USING fts4(content=''itself'')' "
                "WHERE name = 'itself';";
        static const char *const left_out[] = { "five", "view_of_five", "tree", "itself" };
        Fixture f;

        set_up(&f, schema, "five", "view_of_five", "tree", "itself", "t", NULL);
        g_assert_cmpint(compiled(&f, "SELECT a FROM t"), ==, SQLITE_OK);
        for (size_t i = 0; i < G_N_ELEMENTS(left_out); i++) {
                g_autofree char *sql = g_strconcat("SELECT * FROM ", left_out[i], NULL);

                g_assert_cmpint(compiled(&f, sql), ==, SQLITE_ERROR);
                g_assert_nonnull(strstr(sqlite3_errmsg(f.database.db), "no such table"));
        }
        tear_down(&f);
}

static ValueUse use_of(const ExposedObject *o, const char *plan_text, const char *value_sql) {
        sqlite3_stmt *stmt;
        sqlite3 *db;
        ValueUse use;
        Plan plan;

        exposed_plan_parse(plan_text, &plan);
        g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_prepare_v2(db, value_sql, -1, &stmt, NULL), ==, SQLITE_OK);
        (void) sqlite3_bind_text(stmt, 1, "bound", -1, SQLITE_STATIC);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        use = exposed_plan_value_use(o, &plan, 0, sqlite3_column_value(stmt, 0));
        sqlite3_finalize(stmt);
        sqlite3_close(db);
        return use;
}

/* The effects of a value: the table in exposed-plan.h. */
static void test_values(void) {
        static char name[] = "o";
        ExposedColumn columns[] = {
                { .name = name, .affinity = AFFINITY_NUMERIC },
                { .name = name, .affinity = AFFINITY_TEXT },
                { .name = name, .affinity = AFFINITY_NONE },
        };
        const ExposedObject o = { .name = name, .columns = columns, .n_columns = 3 };

        g_assert_cmpint(use_of(&o, ";1;e0", "SELECT '5'"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;l0", "SELECT 'x'"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;e1", "SELECT 5"), ==, VALUE_LEFT);
        g_assert_cmpint(use_of(&o, ";1;e1", "SELECT 'x'"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;l1", "SELECT 'x'"), ==, VALUE_LEFT);
        g_assert_cmpint(use_of(&o, ";1;L1", "SELECT 'x'"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;l1", "SELECT ?"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;g1", "SELECT 'x'"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;l1", "SELECT x'00'"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;e2", "SELECT 5"), ==, VALUE_WIDENED);
        g_assert_cmpint(use_of(&o, ";1;l2", "SELECT 5"), ==, VALUE_WIDENED);
        g_assert_cmpint(use_of(&o, ";1;g2", "SELECT 5"), ==, VALUE_PUSHED);
        g_assert_cmpint(use_of(&o, ";1;e0", "SELECT NULL"), ==, VALUE_NEVER);
        g_assert_cmpint(use_of(&o, ";1;i1", "SELECT NULL"), ==, VALUE_PUSHED);
}

static void check_sql(const ExposedObject *o, const char *plan_text, const char *uses, const char *expected) {
        Plan plan;
        char *sql;

        exposed_plan_parse(plan_text, &plan);
        sql = exposed_plan_sql(o, &plan, uses);
        g_assert_cmpstr(sql, ==, expected);
        sqlite3_free(sql);
}

static void test_sql(void) {
        static char a[] = "a", b[] = "b\"c", table[] = "o\"", other[] = "v";
        ExposedColumn columns[] = { { .name = a }, { .name = b } };
        const ExposedObject o = { .name = table, .columns = columns, .n_columns = 2, .rowid = "oid" },
                            view = { .name = other, .columns = columns, .n_columns = 2 };

        check_sql(&o, ";3;", "", "SELECT o.oid, o.\"a\", o.\"b\"\"c\" FROM main.\"o\"\"\" AS o");
        check_sql(&view, "d1a0;2;e0l1", "wp",
                  "SELECT o.\"b\"\"c\" FROM main.\"v\" AS o WHERE (o.\"a\" = ?1 OR (o.\"a\" >= '' AND o.\"a\" < x'')) "
                  "AND o.\"b\"\"c\" < ?2 ORDER BY o.\"b\"\"c\" DESC, o.\"a\"");
        check_sql(&view, ";0;", "", "SELECT NULL FROM main.\"v\" AS o");
        check_sql(&o, ";0;e0n1g-1", "-pp",
                  "SELECT o.oid FROM main.\"o\"\"\" AS o WHERE o.\"b\"\"c\" IS NULL AND o.oid > ?3");
}

static bool is_single(const ExposedObject *o, const char *text, const char *uses) {
        Plan plan;

        exposed_plan_parse(text, &plan);
        return exposed_plan_is_single(o, &plan, uses);
}

/* One row at most: all columns of a unique index, each by = with a value that was pushed unchanged. */
static void test_single(void) {
        int key[] = { 0, 1 }, plain[] = { 2 }, rowid[] = { COLUMN_ROWID };
        ExposedIndex indexes[] = {
                { .columns = key, .n_columns = 2, .unique = true },
                { .columns = plain, .n_columns = 1 },
                { .columns = rowid, .n_columns = 1, .unique = true },
        };
        ExposedColumn columns[3] = {};
        const ExposedObject o = { .columns = columns, .n_columns = 3, .indexes = indexes, .n_indexes = 3 };

        g_assert_true(is_single(&o, ";3;e1e0", "pp"));
        g_assert_true(is_single(&o, ";3;e-1g2", "pp"));
        g_assert_false(is_single(&o, ";3;e0", "p"));
        g_assert_false(is_single(&o, ";3;e1e0", "pw"));
        g_assert_false(is_single(&o, ";3;e1e0", "-p"));
        g_assert_false(is_single(&o, ";3;e0i1", "pp"));
        g_assert_false(is_single(&o, ";3;e2", "p"));
        g_assert_false(is_single(&o, ";3;", ""));
}

static unsigned n_running(sqlite3 *db) {
        unsigned n = 0;

        for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s; s = sqlite3_next_stmt(db, s))
                n += sqlite3_stmt_busy(s) != 0;
        return n;
}

/* Begun, the file is held; ended, it is not, and nothing of it runs. A changed schema is told. */
static void test_transaction(void) {
        SqlError error = SQL_ERROR_INIT;
        sqlite3_stmt *stmt;
        Fixture f;

        set_up(&f, SCHEMA "INSERT INTO t(id) VALUES(1), (2);", "t", NULL);
        g_assert_cmpint(sqlite3_txn_state(f.database.file, "main"), ==, SQLITE_TXN_NONE);
        g_assert_cmpint(sqlite_connection_begin(&f.database, &error), ==, SQLITE_CONNECTION_BEGUN);
        g_assert_cmpint(sqlite3_txn_state(f.database.file, "main"), ==, SQLITE_TXN_READ);
        g_assert_cmpint(sqlite3_prepare_v2(f.database.db, "SELECT * FROM t AS a, t AS b", -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        g_assert_cmpuint(n_running(f.database.file), ==, 2);
        g_assert_cmpint(sqlite3_reset(stmt), ==, SQLITE_OK);
        sqlite_connection_end(&f.database);
        g_assert_cmpuint(n_running(f.database.file), ==, 0);
        g_assert_cmpint(sqlite3_txn_state(f.database.file, "main"), ==, SQLITE_TXN_NONE);
        g_assert_cmpint(sqlite3_finalize(stmt), ==, SQLITE_OK);

        exec(f.path, "CREATE TABLE another(a)");
        g_assert_cmpint(sqlite_connection_begin(&f.database, &error), ==, SQLITE_CONNECTION_STALE);
        g_assert_cmpint(sqlite3_txn_state(f.database.file, "main"), ==, SQLITE_TXN_NONE);
        tear_down(&f);
}

/* A column is declared as it compares: type, affinity, collation; of a view too. */
static void test_declaration(void) {
        static const char *const names[] = { "t", "v" };
        static const char *const expected[] = {
                "a INTEGER, \"group\" \"VARCHAR(10)\" COLLATE NOCASE, c \"DOUBLE PRECISION\", \"d e\", h INT",
                "x TEXT, y \"VARCHAR(10)\" COLLATE NOCASE, z NUM COLLATE RTRIM, \"y:1\" TEXT",
        };
        Fixture f;

        set_up(&f, "CREATE TABLE t(a INTEGER, \"group\" VARCHAR(10) COLLATE NOCASE, c DOUBLE PRECISION, \"d e\","
                   "h INT HIDDEN);"
                   "CREATE VIEW v AS SELECT CAST(a AS TEXT) AS x, \"group\" AS y, CAST(c AS NUMERIC) COLLATE RTRIM AS z,"
                   "\"group\" COLLATE BINARY AS y FROM t;", "t", "v", NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
                ExposedObject o;
                char *columns;

                g_assert_cmpint(exposed_object_read(&o, f.database.file, names[i]), ==, SQLITE_OK);
                columns = exposed_object_columns(&o);
                g_assert_cmpstr(columns, ==, expected[i]);
                sqlite3_free(columns);
                exposed_object_done(&o);
        }
        tear_down(&f);
}

/* sqlite_stat1 is a table like any other, into which every user who may write to the file can write anything. */
static void test_statistics(void) {
        ExposedObject o;
        Fixture f;

        set_up(&f, "CREATE TABLE t(a UNIQUE, b); CREATE INDEX t_b ON t(b, a); INSERT INTO t VALUES(1, 2); ANALYZE;"
                   "UPDATE sqlite_stat1 SET stat = CASE idx WHEN 't_b' THEN '1e300 inf -5' ELSE 'nan x' END;", "t", NULL);
        g_assert_cmpint(exposed_object_read(&o, f.database.file, "t"), ==, SQLITE_OK);
        g_assert_cmpfloat(o.n_rows, >=, 0);
        g_assert_cmpfloat(o.n_rows, <=, 1e15);
        for (int i = 0; i < o.n_indexes; i++)
                for (int k = 0; k < o.indexes[i].n_columns; k++) {
                        g_assert_cmpfloat(o.indexes[i].n_rows[k], >=, 1);
                        g_assert_cmpfloat(o.indexes[i].n_rows[k], <=, 1e15);
                }
        exposed_object_done(&o);
        tear_down(&f);
}

/* A table of as many columns as SQLite allows, and of a few less, has rows like any other. */
static void test_widest(void) {
        for (int n = 1990; n <= 2000; n++) {
                g_autoptr(GString) schema = g_string_new("CREATE TABLE w(c1");
                sqlite3_stmt *stmt;
                Fixture f;

                for (int i = 2; i <= n; i++)
                        g_string_append_printf(schema, ", c%d", i);
                g_string_append_printf(schema, "); INSERT INTO w(c1, c%d) VALUES('first', 'last')", n);
                set_up(&f, schema->str, "w", NULL);
                g_assert_cmpint(sqlite3_prepare_v2(f.database.db, "SELECT * FROM w WHERE c1 = 'first' OR c2 = 5", -1, &stmt,
                                                   NULL), ==, SQLITE_OK);
                g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
                g_assert_cmpstr((const char *) sqlite3_column_text(stmt, n - 1), ==, "last");
                g_assert_cmpint(sqlite3_finalize(stmt), ==, SQLITE_OK);
                tear_down(&f);
        }
}

/* Changes by another program while exposed objects are read. */
static Fixture *meddled;

static int meddle(unsigned event, void *userdata, void *stmt, void *sql) {
        (void) event;
        (void) userdata;
        (void) stmt;
        if (meddled && g_str_has_prefix(sql, "CREATE TEMP TABLE")) {
                exec(meddled->path, "DROP VIEW v; CREATE VIEW v AS SELECT 1 AS a, 2 AS b, 3 AS c, 4 AS d");
                meddled = NULL;
        }
        return 0;
}

static int watch(sqlite3 *db, char **message, const void *api) {
        (void) message;
        (void) api;
        return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, meddle, NULL);
}

/* A schema that changes in between is Busy, and no fault of the file or of a view. */
static void test_change_while_read(void) {
        SqlError error = SQL_ERROR_INIT;
        Fixture f;

        set_up(&f, SCHEMA, "v", NULL);
        sqlite_connection_close(&f.database);
        meddled = &f;
        g_assert_cmpint(sqlite3_auto_extension((void (*)(void)) watch), ==, SQLITE_OK);
        g_assert_false(open_database(&f, &error));
        g_assert_cmpint(sqlite3_cancel_auto_extension((void (*)(void)) watch), ==, 1);
        g_assert_null(meddled);
        g_assert_cmpint(error.error, ==, ERROR_BUSY);
        sql_error_done(&error);
        g_assert_true(open_database(&f, &error));
        tear_down(&f);
}

/* SQLite's allocations, of which one fails: the one that brings `left` to 0. */
static sqlite3_mem_methods memory;
static int left = -1;

static bool fails(void) {
        return left > 0 && --left == 0;
}

static void *allocate(int size) {
        return fails() ? NULL : memory.xMalloc(size);
}

static void *reallocate(void *p, int size) {
        return fails() ? NULL : memory.xRealloc(p, size);
}

static void may_fail(void) {
        sqlite3_mem_methods failing;

        g_assert_cmpint(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), ==, SQLITE_OK);
        failing = memory;
        failing.xMalloc = allocate;
        failing.xRealloc = reallocate;
        g_assert_cmpint(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing), ==, SQLITE_OK);
}

/* The number in the first row; an SQLite result code otherwise. */
static int ask_number(sqlite3 *db, const char *sql, int *ret) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

        if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
                *ret = sqlite3_column_int(stmt, 0);
        sqlite3_finalize(stmt);
        return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

#define SMALL_SCHEMA \
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE, c);" \
        "CREATE VIEW v AS SELECT count(*) AS n, b FROM t GROUP BY b;" \
        "INSERT INTO t VALUES(1, 'x', 'y'), (2, 'y', 'x');"

/* Whichever allocation fails while it opens: all that is exposed is there then, or nothing opens, for want of memory. */
static void test_no_memory_to_open(void) {
        int n_failed = 0, n_objects = 0;
        Fixture f;

        set_up(&f, SMALL_SCHEMA, "t", "v", NULL);
        for (int n = 1, unused = 0; unused <= 0; n++) {
                SqlError error = SQL_ERROR_INIT;
                bool opened;

                sqlite_connection_close(&f.database);
                left = n;
                opened = open_database(&f, &error);
                unused = left;
                left = -1;
                if (opened) {
                        g_assert_cmpint(ask_number(f.database.db, "SELECT count(*) FROM sqlite_schema", &n_objects), ==,
                                        SQLITE_OK);
                        g_assert_cmpint(n_objects, ==, 2);
                } else
                        g_assert_cmpint(error.error, ==, ERROR_OUT_OF_MEMORY);
                n_failed += !opened;
                sql_error_done(&error);
        }
        g_assert_cmpint(n_failed, >, 100);
        tear_down(&f);
}

/* And while it is searched: the answer, or want of memory, and the same connection goes on. */
static void test_no_memory_to_search(void) {
        static const char sql[] = "SELECT sum(n) FROM v JOIN t ON v.b = t.c WHERE a IN (1, 2) AND t.b > 'a'";
        int n_failed = 0, sum = 0;
        Fixture f;

        set_up(&f, SMALL_SCHEMA, "t", "v", NULL);
        for (int n = 1, unused = 0; unused <= 0; n++) {
                SqlError error = SQL_ERROR_INIT;
                int rc = SQLITE_NOMEM;

                left = n;
                if (sqlite_connection_begin(&f.database, &error) == SQLITE_CONNECTION_BEGUN) {
                        exposed_expect(f.database.exposed, sql, strlen(sql));
                        rc = ask_number(f.database.db, sql, &sum);
                } else
                        g_assert_cmpint(error.error, ==, ERROR_OUT_OF_MEMORY);
                unused = left;
                left = -1;
                sqlite_connection_end(&f.database);
                if (rc == SQLITE_OK)
                        g_assert_cmpint(sum, ==, 2);
                else
                        g_assert_cmpint(rc & 0xff, ==, SQLITE_NOMEM);
                n_failed += rc != SQLITE_OK;
                g_assert_cmpint(sqlite3_txn_state(f.database.file, "main"), ==, SQLITE_TXN_NONE);
                sql_error_done(&error);
        }
        g_assert_cmpint(n_failed, >, 10); /* hundreds, or tens: that depends on the version of SQLite */
        tear_down(&f);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        may_fail();
        g_assert_cmpint(sqlite_engine.init(&(Setup) { .heap_size_max = 64 << 20, .temp_size_max = 64 << 20 }), ==, 0);
        g_test_add_func("/exposed/constraints", test_constraints);
        g_test_add_func("/exposed/views-without-rowid", test_views_without_rowid);
        g_test_add_func("/exposed/costs", test_costs);
        g_test_add_func("/exposed/plans-tell-nothing", test_plans_tell_nothing);
        g_test_add_func("/exposed/barrier", test_barrier);
        g_test_add_func("/exposed/damaged", test_damaged);
        g_test_add_func("/exposed/values", test_values);
        g_test_add_func("/exposed/sql", test_sql);
        g_test_add_func("/exposed/single", test_single);
        g_test_add_func("/exposed/transaction", test_transaction);
        g_test_add_func("/exposed/declaration", test_declaration);
        g_test_add_func("/exposed/statistics", test_statistics);
        g_test_add_func("/exposed/widest", test_widest);
        g_test_add_func("/exposed/change-while-read", test_change_while_read);
        g_test_add_func("/exposed/no-memory-to-open", test_no_memory_to_open);
        g_test_add_func("/exposed/no-memory-to-search", test_no_memory_to_search);
        return g_test_run();
}
