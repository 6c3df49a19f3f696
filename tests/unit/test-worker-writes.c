/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite as an engine that writes: statements, rights, transactions and files. */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/sqlite/access.h"
#include "daemon/worker/sqlite/pragma.h"
#include "daemon/worker/sqlite/sqlite-engine.h"

#define PAGE_SIZE 65536

static const char schema[] =
        "CREATE TABLE album(id INTEGER PRIMARY KEY, title UNIQUE);"
        "CREATE TABLE track(id INTEGER PRIMARY KEY AUTOINCREMENT, album REFERENCES album ON DELETE CASCADE, name);"
        "CREATE TABLE log(what);"
        "CREATE VIEW titles AS SELECT title FROM album;"
        "CREATE TRIGGER noted AFTER INSERT ON album BEGIN INSERT INTO log VALUES('new ' || new.title); END;"
        "CREATE TRIGGER by_view INSTEAD OF INSERT ON titles BEGIN INSERT INTO album(title) VALUES(new.title); END;"
        "CREATE VIRTUAL TABLE place USING rtree(id, x0, x1);"
        "CREATE VIRTUAL TABLE words USING fts5(word);"
        "CREATE VIRTUAL TABLE notes USING fts4(note);"
        "INSERT INTO album VALUES(1, 'first'), (2, 'second');"
        "INSERT INTO track(album, name) VALUES(1, 'a'), (1, 'b'), (2, 'c');";

typedef struct Fixture {
        char *folder, *path;
        Setup setup;
        EnginePool *pool;
        EngineConnection *writer; /* NULL: no transaction */
        SqlError error;
} Fixture;

static const Setup to_write = {
        .heap_size_max = 64 << 20,
        .temp_size_max = 64 << 20,
        .sql_size_max = 10000,
        .expression_depth_max = 100,
        .compound_selects_max = 10,
        .vdbe_ops_max = 100000,
        .variables_max = 100,
        .writes = true,
        .sync_full = true,
        .foreign_keys = true,
        .database_size_max = UINT64_MAX,
        .wal_size_max = 1 << 20,
};

static bool interrupts; /* at each call */

static int on_progress(void *userdata) {
        (void) userdata;
        return interrupts;
}

/* ---- the database, as another program sees it ---- */

static sqlite3 *foreign_open(const Fixture *f) {
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(f->path, &db), ==, SQLITE_OK);
        return db;
}

static void foreign(const Fixture *f, const char *sql) {
        sqlite3 *db = foreign_open(f);
        char *message = NULL;

        (void) sqlite3_exec(db, sql, NULL, NULL, &message);
        g_assert_cmpstr(message, ==, NULL);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
}

static int64_t number(const Fixture *f, const char *sql) {
        sqlite3 *db = foreign_open(f);
        sqlite3_stmt *stmt;
        int64_t n;

        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        n = sqlite3_column_int64(stmt, 0);
        (void) sqlite3_finalize(stmt);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        return n;
}

/* ---- life of a test ---- */

/* In the new folder `folder`, which the fixture takes over. */
static void set_up_in(Fixture *f, char *folder, const char *journal_mode, const Setup *setup) {
        g_autofree char *pragma = g_strdup_printf("PRAGMA journal_mode = %s", journal_mode);

        *f = (Fixture) { .folder = folder, .setup = *setup, .error = SQL_ERROR_INIT };
        f->path = g_build_filename(f->folder, "music.sqlite", NULL);
        foreign(f, pragma);
        foreign(f, schema);
        f->setup.path = f->path;
        g_assert_cmpint(sqlite_engine.start(&f->setup, on_progress, NULL, &f->pool), ==, 0);
}

static void set_up(Fixture *f, const char *journal_mode, const Setup *setup) {
        set_up_in(f, g_dir_make_tmp("sqlipc-writes-XXXXXX", NULL), journal_mode, setup);
}

static void tear_down(Fixture *f) {
        static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

        if (f->writer)
                sqlite_engine.disconnect(f->pool, f->writer);
        sqlite_engine.stop(f->pool);
        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
                g_autofree char *name = g_strconcat(f->path, suffixes[i], NULL);
                (void) g_unlink(name);
        }
        g_assert_cmpint(g_rmdir(f->folder), ==, 0);
        sql_error_done(&f->error);
        g_free(f->path);
        g_free(f->folder);
}

static void begin(Fixture *f) {
        g_assert_true(sqlite_engine.begin(f->pool, true, &f->writer, &f->error));
}

/* The error of begin(). */
static ErrorNumber begin_error(Fixture *f) {
        sql_error_done(&f->error);
        g_assert_false(sqlite_engine.begin(f->pool, true, &f->writer, &f->error));
        f->writer = NULL;
        return f->error.error;
}

static void end(Fixture *f) {
        sqlite_engine.disconnect(f->pool, f->writer);
        f->writer = NULL;
}

static void commit(Fixture *f) {
        g_assert_true(sqlite_engine.commit(f->writer, &f->error));
        end(f);
}

/* ---- statements ---- */

typedef struct Result {
        ErrorNumber error;
        uint64_t n_rows;
        int64_t n_changes, last_rowid;
        bool writes;
} Result;

/* Steps to the end. Rows are counted, and thrown away. */
static EngineResult step_all(Fixture *f, EngineStatement *statement, uint64_t *ret_n_rows) {
        static uint8_t memory[PAGE_SIZE];
        static const PageWriter writer = { .fd = -1 };
        PageEncoder encoder;
        RowSink sink = { .encoder = &encoder, .writer = &writer, .row_size_max = PAGE_SIZE, .n_rows_max = UINT64_MAX };
        EngineResult result;

        page_encoder_init(&encoder, memory, sizeof memory, 1);
        result = sqlite_engine.step(statement, &sink, &f->error);
        while (result == ENGINE_ROW || result == ENGINE_PAGE_FULL) {
                page_encoder_clear(&encoder);
                result = sqlite_engine.fill(statement, &sink, &f->error);
        }
        *ret_n_rows = sink.n_rows;
        return result;
}

/* Runs one statement as the core does: in a savepoint, unless it is about one. */
static Result execute(Fixture *f, const char *sql) {
        EngineStatement *statement;
        Result result = {};
        bool saved;

        sql_error_done(&f->error);
        if (!sqlite_engine.compile(f->writer, sql, strlen(sql), false, NULL, &statement, &f->error))
                return (Result) { .error = f->error.error };
        result.writes = sqlite_engine.writes(statement);
        saved = !sqlite_engine.is_savepoint(statement);
        if (saved)
                g_assert_true(sqlite_engine.save(f->writer, &f->error));
        if (step_all(f, statement, &result.n_rows) == ENGINE_DONE)
                sqlite_engine.changes(statement, &result.n_changes, &result.last_rowid);
        result.error = f->error.error;
        sqlite_engine.reset(statement);
        if (saved && result.error == ERROR_NONE)
                g_assert_true(sqlite_engine.keep(f->writer, &f->error));
        else if (saved)
                sqlite_engine.undo(f->writer);
        sqlite_engine.release(statement);
        return result;
}

static int64_t changes_of(Fixture *f, const char *sql) {
        Result result = execute(f, sql);

        g_assert_cmpstr(f->error.message, ==, NULL);
        g_assert_true(result.writes);
        return result.n_changes;
}

/* ---- what clients have counted ---- */

/* Triggers note what they see, before and after each of their statements. */
#define SEEN(what) "INSERT INTO seen SELECT NULL, '" what "', last_insert_rowid(), changes(), total_changes();"

static const char counts_schema[] =
        "CREATE TABLE seen(n INTEGER PRIMARY KEY, what, rowids, changes, total);"
        "CREATE TABLE x(v);"
        "CREATE TABLE middle(id INTEGER PRIMARY KEY, v);"
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE, b DEFAULT (changes()), CHECK(a <> 'bad'));"
        "CREATE TABLE child(id INTEGER PRIMARY KEY, t REFERENCES t ON DELETE CASCADE ON UPDATE SET NULL);"
        "CREATE TABLE plain(id INTEGER PRIMARY KEY, v UNIQUE);"
        "CREATE VIEW view AS SELECT * FROM t;"
        "CREATE TRIGGER t_insert AFTER INSERT ON t BEGIN " SEEN("t 1") "UPDATE x SET v = v + 1;" SEEN("t 2")
        "INSERT INTO middle(v) VALUES(new.id);" SEEN("t 3") "DELETE FROM x WHERE v < 0;" SEEN("t 4") "END;"
        "CREATE TRIGGER m_insert BEFORE INSERT ON middle BEGIN " SEEN("m 1") "INSERT INTO x VALUES(new.v), (0);" SEEN("m 2")
        "SELECT RAISE(ABORT, 'eleven') WHERE new.v % 11 = 0;"
        "SELECT RAISE(IGNORE) WHERE new.v % 7 = 0;"
        "DELETE FROM x WHERE rowid % 3 = 0;" SEEN("m 3") "END;"
        "CREATE TRIGGER t_update AFTER UPDATE ON t BEGIN INSERT INTO x VALUES(changes()); END;"
        "CREATE TRIGGER t_delete AFTER DELETE ON t BEGIN " SEEN("d 1") "UPDATE x SET v = changes();" SEEN("d 2") "END;"
        "CREATE TRIGGER c_delete AFTER DELETE ON child BEGIN " SEEN("c 1") "DELETE FROM plain WHERE id > 1000;" SEEN("c 2")
        "END;"
        "CREATE TRIGGER v_insert INSTEAD OF INSERT ON view BEGIN " SEEN("v 1") "INSERT INTO t(a) VALUES(new.a);" SEEN("v 2")
        "END;"
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 40) INSERT INTO plain SELECT n, n FROM c;"
        "CREATE VIRTUAL TABLE found USING fts5(word);";

/* "#" is a small random number. */
static const char *const counted[] = {
        "INSERT INTO t(a) VALUES(#)",
        "INSERT INTO t(a) VALUES(#), (# + 50), (# + 100)",
        "INSERT OR IGNORE INTO t(a) VALUES(#), (# + 1)",
        "INSERT INTO t(id, a) VALUES(#, #) ON CONFLICT(id) DO UPDATE SET a = a || 'u'",
        "INSERT INTO t(a) VALUES(#) ON CONFLICT(a) DO NOTHING",
        "REPLACE INTO t(id, a) VALUES(#, # + 1)",
        "REPLACE INTO plain VALUES(#, # + 1)",
        "INSERT INTO t(a) VALUES(1000 + #), ('bad')",
        "INSERT INTO view(a) VALUES(#)",
        "INSERT INTO child(t) SELECT id FROM t LIMIT #",
        "INSERT INTO child(t) VALUES(987654)",
        "INSERT INTO plain(v) VALUES(5000 + #) RETURNING id, changes(), last_insert_rowid(), total_changes()",
        "INSERT INTO plain(v) VALUES(changes() * 100000 + last_insert_rowid() * 1000 + total_changes())",
        "UPDATE t SET a = a || 'x' WHERE id < #",
        "UPDATE t SET id = id + 1000 WHERE id = #",
        "UPDATE plain SET v = v || 'p' WHERE id < #",
        "UPDATE plain SET v = v WHERE id = -1",
        "UPDATE plain SET v = 1",
        "DELETE FROM t WHERE id % 5 = # % 5",
        "DELETE FROM plain WHERE id > 40 AND id % 2 = 0",
        "DELETE FROM x",
        "INSERT INTO x SELECT v FROM x UNION ALL SELECT changes() LIMIT 3 * #",
        "INSERT INTO found VALUES('a'), ('b'), (changes())",
        "DELETE FROM found WHERE rowid = #",
        "CREATE TABLE made_#(a)",
        "DROP TABLE IF EXISTS made_#",
        "CREATE TABLE made_# AS SELECT id FROM plain LIMIT #",
        "CREATE TABLE parent(id INTEGER PRIMARY KEY)",
        "CREATE TABLE of_parent(a REFERENCES parent)",
        "INSERT INTO parent SELECT # + id FROM plain LIMIT 3",
        "DROP TABLE parent",
        "CREATE VIRTUAL TABLE found_# USING fts5(word)",
        "ALTER TABLE made_# ADD COLUMN c",
        "PRAGMA user_version = #",
        "INSERT INTO made_#(a) VALUES(1), (2)",
};

static char *with_number(const char *template, int n) {
        g_auto(GStrv) parts = g_strsplit(template, "#", -1);
        g_autofree char *text = g_strdup_printf("%d", n);

        return g_strjoinv(text, parts);
}

#define N_CLIENTS 3

typedef struct Counting {
        Fixture *f;
        sqlite3 *real[N_CLIENTS]; /* as many connections to another file */
        ClientCounts counts[N_CLIENTS];
} Counting;

static const char ask_counts[] = "SELECT last_insert_rowid(), changes(), total_changes()";

static ClientCounts real_counts(sqlite3 *db) {
        sqlite3_stmt *stmt;
        ClientCounts counts;

        g_assert_cmpint(sqlite3_prepare_v2(db, ask_counts, -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        counts = (ClientCounts) { sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1),
                                  sqlite3_column_int64(stmt, 2) };
        (void) sqlite3_finalize(stmt);
        return counts;
}

/* By SQL, on a connection that reads, or on the one that writes. */
static ClientCounts counts_by_sql(Fixture *f, const ClientCounts *counts, EngineConnection *writer) {
        EngineConnection *c = writer;
        EngineStatement *statement;
        RowSink sink = {};
        int64_t values[3];

        if (!writer)
                g_assert_true(sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error));
        sqlite_engine.enter(c, counts);
        g_assert_true(sqlite_engine.compile(c, ask_counts, strlen(ask_counts), false, NULL, &statement, &f->error));
        g_assert_cmpint(sqlite_engine.step(statement, &sink, &f->error), ==, ENGINE_ROW);
        for (unsigned i = 0; i < 3; i++) {
                uint8_t number[8];

                values[i] = (int64_t) load_le64(sqlite_engine.value(statement, i, number, &f->error));
        }
        sqlite_engine.release(statement);
        if (!writer)
                sqlite_engine.disconnect(f->pool, c);
        return (ClientCounts) { values[0], values[1], values[2] };
}

static void check_counts(const char *sql, ClientCounts real, ClientCounts ours) {
        if (real.last_rowid != ours.last_rowid || real.n_changes != ours.n_changes || real.n_total != ours.n_total)
                g_error("%s: rowid %" G_GINT64_FORMAT " %" G_GINT64_FORMAT ", changes %" G_GINT64_FORMAT " %" G_GINT64_FORMAT
                        ", total %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, sql, real.last_rowid, ours.last_rowid,
                        real.n_changes, ours.n_changes, real.n_total, ours.n_total);
}

static void count_statement(Counting *c, unsigned client, const char *sql) {
        int rc = sqlite3_exec(c->real[client], sql, NULL, NULL, NULL);
        ClientCounts *counts = &c->counts[client];
        ErrorNumber error;

        if (!c->f->writer)
                begin(c->f);
        sqlite_engine.enter(c->f->writer, counts);
        error = execute(c->f, sql).error;
        sqlite_engine.leave(c->f->writer, counts);
        if ((rc == SQLITE_OK) != (error == ERROR_NONE))
                g_error("%s: %d, %s", sql, rc, c->f->error.message);
        check_counts(sql, real_counts(c->real[client]), *counts);
        check_counts(sql, *counts, counts_by_sql(c->f, counts, NULL));
        check_counts(sql, *counts, counts_by_sql(c->f, counts, c->f->writer));
}

/* The values that triggers and statements have stored. */
static char *stored(const char *path) {
        static const char *const queries[] = {
                "SELECT group_concat(printf('%d %s %d %d %d', n, what, rowids, changes, total), char(10)) FROM seen",
                "SELECT group_concat(id || ' ' || a || ' ' || b, char(10)) FROM t",
                "SELECT group_concat(id || ' ' || v, char(10)) FROM plain",
                "SELECT group_concat(v) FROM x",
        };
        GString *text = g_string_new(NULL);
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
                sqlite3_stmt *stmt;

                g_assert_cmpint(sqlite3_prepare_v2(db, queries[i], -1, &stmt, NULL), ==, SQLITE_OK);
                g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
                g_string_append_printf(text, "%s\n", (const char *) sqlite3_column_text(stmt, 0));
                (void) sqlite3_finalize(stmt);
        }
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        return g_string_free(text, FALSE);
}

static void open_real(Counting *c, const char *path) {
        for (unsigned i = 0; i < N_CLIENTS; i++) {
                g_assert_cmpint(sqlite3_open(path, &c->real[i]), ==, SQLITE_OK);
                (void) sqlite3_exec(c->real[i], "PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF", NULL, NULL, NULL);
                if (i == 0)
                        g_assert_cmpint(sqlite3_exec(c->real[i], counts_schema, NULL, NULL, NULL), ==, SQLITE_OK);
        }
        for (unsigned i = 0; i < N_CLIENTS; i++) { /* the schema was read, and client 0 begins with its counts */
                c->counts[i] = real_counts(c->real[i]);
                check_counts("SELECT", c->counts[i], real_counts(c->real[i]));
        }
}

static void close_real(Counting *c, const char *path) {
        for (unsigned i = 0; i < N_CLIENTS; i++)
                g_assert_cmpint(sqlite3_close(c->real[i]), ==, SQLITE_OK);
        g_assert_cmpint(g_unlink(path), ==, 0);
}

/* Numbers that are too large to be counted again. */
static void test_large_client_counts(void) {
        static const char *const statements[] = { /* of client 0; between them client 1 changes something */
                "INSERT INTO x SELECT v FROM many LIMIT 120000",
                "INSERT INTO t(a) VALUES(1)",
                "UPDATE many SET v = 1",
                "CREATE TABLE made(a)",
                "ALTER TABLE made ADD COLUMN b",
                "DELETE FROM many WHERE rowid > 1000",
                "CREATE VIRTUAL TABLE made_fts USING fts5(word)",
                "UPDATE x SET v = 2",
                "INSERT INTO t(a) VALUES('bad')",
                "UPDATE x SET v = 3",
                "INSERT INTO t(id, a) VALUES(100, 100)",
        };
        g_autofree char *path = NULL;
        Setup setup = to_write;
        Counting c = {};
        Result result;
        Fixture f;

        setup.write_schema = true;
        setup.sync_full = false;
        set_up(&f, "wal", &setup);
        foreign(&f, counts_schema);
        c.f = &f;
        path = g_build_filename(f.folder, "real.sqlite", NULL);
        open_real(&c, path);
        count_statement(&c, 0, "CREATE TABLE many(v)");
        count_statement(&c, 0, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 120000) "
                               "INSERT INTO many SELECT n FROM c");
        for (size_t i = 0; i < G_N_ELEMENTS(statements); i++) {
                count_statement(&c, 1, "UPDATE plain SET v = v || 'x' WHERE id < 3");
                count_statement(&c, 0, statements[i]);
        }
        /* a trigger's statement changes as many rows as the smaller number */
        count_statement(&c, 0, "CREATE TRIGGER filled AFTER INSERT ON middle WHEN new.v = -1 BEGIN "
                               "INSERT INTO x SELECT v FROM x LIMIT 100000; INSERT INTO x VALUES(changes()); END");
        count_statement(&c, 0, "INSERT INTO x SELECT v FROM x");
        count_statement(&c, 0, "UPDATE x SET v = 4");
        count_statement(&c, 1, "UPDATE plain SET v = v || 'x' WHERE id < 3");
        sqlite_engine.enter(f.writer, &c.counts[0]);
        result = execute(&f, "INSERT INTO middle(v) VALUES(-1)");
        g_assert_cmpint(result.error, ==, ERROR_SQL);
        g_assert_nonnull(strstr(f.error.message, "changes() is not known here"));
        commit(&f);
        close_real(&c, path);
        tear_down(&f);
}

/* Statements of several clients in one transaction, each as if its client had the file to itself. */
static void test_client_counts(void) {
        Setup setup = to_write;

        setup.write_schema = true;
        setup.sync_full = false;
        for (guint32 seed = 0; seed < 12; seed++) {
                g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
                g_autofree char *path = NULL, *real = NULL, *ours = NULL;
                Counting c = {};
                Fixture f;

                set_up(&f, "wal", &setup);
                foreign(&f, counts_schema);
                c.f = &f;
                path = g_build_filename(f.folder, "real.sqlite", NULL);
                open_real(&c, path);
                for (unsigned i = 0; i < 300; i++) {
                        const char *template = counted[g_rand_int_range(rand, 0, G_N_ELEMENTS(counted))];
                        g_autofree char *sql = with_number(template, g_rand_int_range(rand, 1, 30));

                        count_statement(&c, (unsigned) g_rand_int_range(rand, 0, N_CLIENTS), sql);
                        if (g_rand_int_range(rand, 0, 10) == 0)
                                commit(&f);
                }
                if (f.writer)
                        commit(&f);
                real = stored(path);
                ours = stored(f.path);
                g_assert_cmpstr(real, ==, ours);
                close_real(&c, path);
                tear_down(&f);
        }
}

/* ---- what may be written ---- */

static const char *const modes[] = { "delete", "wal" };

static void test_rows(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                Result result;
                Fixture f;

                set_up(&f, modes[i], &to_write);
                begin(&f);
                result = execute(&f, "INSERT INTO album(title) VALUES('third'), ('fourth')");
                g_assert_cmpint(result.error, ==, ERROR_NONE);
                g_assert_true(result.writes);
                g_assert_cmpint(result.n_changes, ==, 2);
                g_assert_cmpint(result.last_rowid, ==, 4);
                g_assert_cmpint(result.n_rows, ==, 0);
                result = execute(&f, "UPDATE album SET title = title || '!' RETURNING id, title");
                g_assert_cmpint(result.n_changes, ==, 4);
                g_assert_cmpint(result.last_rowid, ==, 4); /* of the client, until it inserts another row */
                g_assert_cmpint(result.n_rows, ==, 4);
                g_assert_cmpint(changes_of(&f, "REPLACE INTO album VALUES(1, 'again')"), ==, 1);
                g_assert_cmpint(changes_of(&f, "INSERT INTO album VALUES(2, 'x') ON CONFLICT(id) DO UPDATE SET title = 'y'"),
                                ==, 1);
                g_assert_cmpint(changes_of(&f, "WITH a AS (SELECT 'cte') INSERT INTO album(title) SELECT * FROM a"), ==,
                                1);
                g_assert_cmpint(changes_of(&f, "INSERT INTO titles VALUES('by view')"), ==, 0); /* SQLite's rule */
                g_assert_cmpint(changes_of(&f, "INSERT INTO place VALUES(1, 2, 3)"), ==, 1);
                g_assert_cmpint(changes_of(&f, "INSERT INTO words VALUES('word')"), ==, 1);
                g_assert_cmpint(changes_of(&f, "DELETE FROM album WHERE id = 1"), ==, 1);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM album"), ==, 2);
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM album"), ==, 5);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM log WHERE what = 'new by view'"), ==, 1);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM track"), ==, 1); /* the others were deleted with album 1 */
                g_assert_cmpint(number(&f, "SELECT count(*) FROM words('word')"), ==, 1);
                tear_down(&f);
        }
}

static void refused(Fixture *f, const char *sql, ErrorNumber error, const char *sentence) {
        EngineStatement *statement;
        EngineConnection *connection = f->writer;

        sql_error_done(&f->error);
        if (!connection)
                g_assert_true(sqlite_engine.connect(f->pool, "", 0, NULL, &connection, &f->error));
        if (sqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &f->error))
                g_error("this was compiled: %s", sql);
        if (f->error.error != error || !strstr(f->error.message, sentence))
                g_error("%s: %d, %s", sql, f->error.error, f->error.message);
        sql_error_done(&f->error);
        if (!f->writer)
                sqlite_engine.disconnect(f->pool, connection);
}

typedef struct Refusal {
        const char *sql, *sentence;
} Refusal;

/* On the connection that writes, and on one that reads. */
static void all_refused(const Setup *setup, const Refusal *refusals, size_t n) {
        Fixture f;

        set_up(&f, "wal", setup);
        for (size_t i = 0; i < n; i++)
                refused(&f, refusals[i].sql, ERROR_NOT_ALLOWED, refusals[i].sentence);
        begin(&f);
        for (size_t i = 0; i < n; i++)
                refused(&f, refusals[i].sql, ERROR_NOT_ALLOWED, refusals[i].sentence);
        commit(&f);
        tear_down(&f);
}

/* Only the service uses it. */
static void test_table_of_counts(void) {
        static const char *const statements[] = { "INSERT INTO \"" ACCESS_COUNTS_TABLE "\" VALUES(1)",
                                                  "DELETE FROM \"" ACCESS_COUNTS_TABLE "\"",
                                                  "SELECT count(*) FROM \"" ACCESS_COUNTS_TABLE "\"",
                                                  "SELECT n FROM \"" ACCESS_COUNTS_TABLE "\" AS a" };
        Fixture f;

        set_up(&f, "wal", &to_write);
        begin(&f);
        for (size_t i = 0; i < G_N_ELEMENTS(statements); i++)
                refused(&f, statements[i], ERROR_NOT_ALLOWED, "it is for the service");
        commit(&f);
        tear_down(&f);
}

/* Even a user who may change the schema may not do these. */
static void test_never_allowed(void) {
        static const Refusal refusals[] = {
                { "BEGIN", "BEGIN is not allowed: the service runs each statement in a transaction" },
                { "COMMIT", "COMMIT is not allowed" },
                { "ROLLBACK", "ROLLBACK is not allowed" },
                { "SAVEPOINT s", "SAVEPOINT is not allowed" },
                { "RELEASE statement", "RELEASE is not allowed" },
                { "ROLLBACK TO statement", "ROLLBACK TO is not allowed" },
                { "VACUUM INTO 'x'", "VACUUM INTO is not allowed, nor VACUUM of an attached database: a" },
                { "-- all\n /* of it */\tvacuum INTO 'x'", "VACUUM INTO is not allowed" },
                { "VACUUM INTO hex('x')", "VACUUM INTO is not allowed" },
                { " \vVACUUM main INTO 'x'", "VACUUM INTO is not allowed" },
                { "\xef\xbb\xbf VACUUM INTO NULL", "VACUUM INTO is not allowed" },
                { "PRAGMA case_sensitive_like = 1", "setting PRAGMA case_sensitive_like is not allowed" },
                { "PRAGMA query_only = true", "setting PRAGMA query_only is not allowed" },
                { "PRAGMA incremental_vacuum", "PRAGMA incremental_vacuum is not allowed: VACUUM and" },
                { "PRAGMA defer_foreign_keys = 1", "setting PRAGMA defer_foreign_keys is not allowed: it needs a" },
                { "PRAGMA schema_version = 1", "setting PRAGMA schema_version is not allowed" },
                { "PRAGMA max_page_count = 9999", "setting PRAGMA max_page_count is not allowed" },
                { "SELECT load_extension('x')", "function load_extension is not allowed" },
                { "UPDATE log SET what = load_extension('x')", "function load_extension is not allowed" },
                { "SELECT optimize(notes) FROM notes", "function optimize is not allowed: it writes" },
                { "INSERT INTO log SELECT optimize(notes) FROM notes", "function optimize is not allowed" },
                { "INSERT INTO sqlite_schema VALUES(1, 2, 3, 4, 5)", "a direct change of sqlite_schema is not allowed" },
                { "UPDATE sqlite_schema SET sql = ''", "a direct change of sqlite_schema is not allowed" },
                { "DELETE FROM sqlite_master", "a direct change of sqlite_schema is not allowed" },
                { "DELETE FROM temp.sqlite_schema", "a direct change of sqlite_schema is not allowed" },
                { "UPDATE temp.sqlite_schema SET sql = ''", "a direct change of sqlite_schema is not allowed" },
        };
        Setup setup = to_write;

        setup.write_schema = true;
        all_refused(&setup, refusals, G_N_ELEMENTS(refusals));
}

static void test_schema_not_allowed(void) {
        static const char sentence[] = "a change of the schema is not allowed: "
                                       "WriteSchema= of this database does not allow it";
        static const Refusal refusals[] = {
                { "CREATE TABLE t(x)", sentence },
                { "CREATE TABLE IF NOT EXISTS t(x)", sentence },
                { "CREATE VIEW IF NOT EXISTS v AS SELECT 1", sentence },
                { "CREATE INDEX IF NOT EXISTS i ON log(what)", sentence },
                { "CREATE TRIGGER IF NOT EXISTS t AFTER INSERT ON log BEGIN SELECT 1; END", sentence },
                { "CREATE VIRTUAL TABLE IF NOT EXISTS t USING fts5(x)", sentence },
                { "DROP TABLE IF EXISTS log", sentence },
                { "PRAGMA writable_schema = ON", "setting PRAGMA writable_schema is not allowed: a direct change" },
                { "DROP TABLE IF EXISTS words", sentence },
                { "DROP VIEW IF EXISTS titles", sentence },
                { "DROP TRIGGER IF EXISTS noted", sentence },
                { "CREATE INDEX i ON log(what)", sentence },
                { "CREATE VIEW v AS SELECT 1", sentence },
                { "CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT 1; END", sentence },
                { "CREATE VIRTUAL TABLE t USING fts5(x)", sentence },
                { "ALTER TABLE log RENAME TO diary", sentence },
                { "ALTER TABLE log ADD COLUMN x", sentence },
                { "DROP TABLE log", sentence },
                { "DROP TABLE words", sentence },
                { "DROP VIEW titles", sentence },
                { "DROP TRIGGER noted", sentence },
                { "REINDEX", sentence },
                { "ANALYZE", sentence },
                { "VACUUM", sentence },
                { "UPDATE sqlite_sequence SET seq = 0", "writing to sqlite_sequence is not allowed: WriteSchema=" },
                { "UPDATE sqlite_sequence SET seq = (SELECT count(*) FROM place)", "writing to sqlite_sequence" },
                { "PRAGMA user_version = 7", "setting PRAGMA user_version is not allowed: WriteSchema=" },
        };

        all_refused(&to_write, refusals, G_N_ELEMENTS(refusals));
}

/* SQLite itself compiles a statement again if the schema has changed. That must not give more rights. */
static void test_schema_changes_later(void) {
        static const struct {
                const char *drop, *create;
        } statements[] = {
                { "DROP TABLE IF EXISTS later", "CREATE TABLE later(x)" },
                { "DROP VIEW IF EXISTS later", "CREATE VIEW later AS SELECT 1" },
                { "DROP INDEX IF EXISTS later", "CREATE INDEX later ON log(what)" },
                { "DROP TRIGGER IF EXISTS later", "CREATE TRIGGER later AFTER INSERT ON log BEGIN SELECT 1; END" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(statements); i++) {
                Fixture f;

                set_up(&f, "wal", &to_write);
                begin(&f);
                g_assert_cmpint(execute(&f, statements[i].drop).error, ==, ERROR_NONE);
                commit(&f);
                foreign(&f, statements[i].create);
                begin(&f);
                g_assert_cmpint(execute(&f, statements[i].drop).error, ==, ERROR_NOT_ALLOWED);
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM sqlite_schema WHERE name = 'later'"), ==, 1);
                tear_down(&f);
        }
}

static void test_schema(void) {
        static const char *const statements[] = {
                "CREATE TABLE IF NOT EXISTS t(x, y NOT NULL DEFAULT 1 CHECK(y > 0))", "CREATE INDEX i ON t(x)",
                "CREATE VIEW v AS SELECT x FROM t", "REINDEX t", "ANALYZE",
                "CREATE TRIGGER tt AFTER INSERT ON t BEGIN INSERT INTO log VALUES(new.x); END",
                "ALTER TABLE t ADD COLUMN z NOT NULL DEFAULT 3", "ALTER TABLE t RENAME COLUMN x TO xx",
                "ALTER TABLE t DROP COLUMN z", "ALTER TABLE t RENAME TO u", "DROP VIEW v", "DROP INDEX i", "DROP TRIGGER tt",
                "CREATE TABLE copy AS SELECT * FROM album", "DROP TABLE copy", "DROP TABLE IF EXISTS u",
                "CREATE VIRTUAL TABLE f USING fts5(x)", "INSERT INTO f(f) VALUES('optimize')", "DROP TABLE f",
                "CREATE VIRTUAL TABLE g USING fts4(x)", "INSERT INTO g(g) VALUES('optimize')", "ALTER TABLE g RENAME TO h",
                "DROP TABLE h", "DROP TABLE track", "DELETE FROM sqlite_sequence", "PRAGMA user_version = 7",
                "PRAGMA application_id = 8",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                Setup setup = to_write;
                Fixture f;

                setup.write_schema = true;
                set_up(&f, modes[i], &setup);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "UPDATE log SET what = 1"), ==, 2);
                for (size_t j = 0; j < G_N_ELEMENTS(statements); j++) {
                        Result result = execute(&f, statements[j]);

                        if (result.error != ERROR_NONE || !result.writes)
                                g_error("%s: %d, %s", statements[j], result.error, f.error.message);
                        g_assert_cmpint(result.n_changes, ==, strstr(statements[j], "optimize") ? 1 : 0);
                }
                commit(&f);
                g_assert_cmpint(number(&f, "PRAGMA user_version"), ==, 7);
                g_assert_cmpint(number(&f, "PRAGMA application_id"), ==, 8);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM sqlite_stat1"), >, 0);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM sqlite_schema WHERE name = 'track'"), ==, 0);
                tear_down(&f);
        }
}

/* A transaction larger than the cache, in which pages are freed, used again and read back from the file. */
static void test_large(void) {
        static const char *const statements[] = {
                ("INSERT INTO log WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
                 " SELECT printf('%06d', i) || hex(zeroblob(1000)) FROM n"),
                "DELETE FROM log WHERE rowid % 3 = 0",
                "INSERT INTO log SELECT what FROM log",
                "UPDATE log SET what = what || '!'",
                "DELETE FROM log WHERE rowid > 2000",
        };
        static const char fails[] = "INSERT INTO album SELECT NULL, what FROM log UNION ALL SELECT 1, 1";

        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                Fixture f;

                set_up(&f, modes[i], &to_write);
                begin(&f);
                for (size_t j = 0; j < G_N_ELEMENTS(statements); j++) {
                        g_assert_cmpint(changes_of(&f, statements[j]), >, 0);
                        g_assert_cmpint(execute(&f, fails).error, ==, ERROR_SQL);
                        g_assert_cmpuint(execute(&f, "SELECT * FROM log").n_rows, >, 1000);
                }
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM log"), ==, 1334);
                g_assert_cmpint(number(&f, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), ==, 1);
                tear_down(&f);
        }
}

/* ---- statements that do nothing ---- */

/* Without a right to the schema, or to write at all. Another program may have made or removed the object since the last
 * time, so each is compiled again. */
static void test_no_ops(void) {
        static const struct {
                const char *sql, *change; /* after which it does something */
        } statements[] = {
                { "CREATE TABLE IF NOT EXISTS log(x)", "DROP TABLE log" },
                { "CREATE TABLE IF NOT EXISTS log AS SELECT * FROM album", "DROP TABLE log" },
                { "; /* one */; -- two\n create view if not exists titles AS SELECT 1; -- three", "DROP VIEW titles" },
                { "CREATE UNIQUE INDEX IF NOT EXISTS main.names ON track(album)", "DROP INDEX names" },
                { "CREATE TRIGGER IF NOT EXISTS noted AFTER INSERT ON album BEGIN SELECT 1; END", "DROP TRIGGER noted" },
                { "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(x)", "DROP TABLE words" },
                { "CREATE VIRTUAL TABLE IF NOT EXISTS place USING rtree(a, b, c)", "DROP TABLE place" },
                { "DROP TABLE IF EXISTS later", "CREATE TABLE later(x)" },
                { "DROP TABLE IF EXISTS main.later", "CREATE VIRTUAL TABLE later USING fts5(x)" },
                { "DROP VIEW IF EXISTS later", "CREATE VIEW later AS SELECT 1" },
                { "DROP INDEX IF EXISTS later", "CREATE INDEX later ON log(what)" },
                { "DROP TRIGGER IF EXISTS later", "CREATE TRIGGER later AFTER INSERT ON log BEGIN SELECT 1; END" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(statements) * 2; i++) {
                const char *sql = statements[i / 2].sql;
                bool writes = i % 2;
                EngineStatement *statement;
                EngineConnection *reader;
                Setup setup = to_write;
                Fixture f;

                setup.writes = writes;
                set_up(&f, "wal", &setup);
                foreign(&f, "CREATE INDEX names ON track(name)");
                g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
                if (!sqlite_engine.compile(reader, sql, strlen(sql), true, NULL, &statement, &f.error))
                        g_error("%s: %s", sql, f.error.message);
                g_assert_true(sqlite_engine.does_nothing(statement));
                g_assert_false(sqlite_engine.writes(statement));
                foreign(&f, statements[i / 2].change);
                g_assert_cmpint(step_all(&f, statement, &(uint64_t) { 0 }), ==, ENGINE_DONE);
                sqlite_engine.release(statement);
                sqlite_engine.disconnect(f.pool, reader);
                refused(&f, sql, writes ? ERROR_NOT_ALLOWED : ERROR_READ_ONLY,
                        writes ? "WriteSchema=" : "this statement writes");
                tear_down(&f);
        }
}

/* None of these is one. */
static void test_not_no_ops(void) {
        static const char *const statements[] = {
                "CREATE TABLE IF NOT EXISTS t(x)", "DROP TABLE IF EXISTS log", "DROP VIEW IF EXISTS titles", "REINDEX",
                "PRAGMA user_version = 1", "DELETE FROM log WHERE false", "ANALYZE log", "SELECT 1",
                "EXPLAIN DROP TABLE log",
        };
        Setup setup = to_write;
        Fixture f;

        setup.write_schema = true;
        set_up(&f, "wal", &setup);
        begin(&f);
        for (size_t i = 0; i < G_N_ELEMENTS(statements); i++) {
                const char *sql = statements[i];
                EngineStatement *statement;

                if (!sqlite_engine.compile(f.writer, sql, strlen(sql), false, NULL, &statement, &f.error))
                        g_error("%s: %s", sql, f.error.message);
                g_assert_false(sqlite_engine.does_nothing(statement));
                sqlite_engine.release(statement);
        }
        commit(&f);
        tear_down(&f);
}

/* ---- PRAGMAs ---- */

/* The names of all PRAGMAs of this SQLite. */
static GPtrArray *all_pragmas(void) {
        GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
        sqlite3_stmt *stmt;
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_prepare_v2(db, "PRAGMA pragma_list", -1, &stmt, NULL), ==, SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW)
                g_ptr_array_add(names, g_strdup((const char *) sqlite3_column_text(stmt, 0)));
        g_assert_cmpint(sqlite3_finalize(stmt), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        g_assert_cmpuint(names->len, >, 50);
        return names;
}

/* Arguments are read as SQLite reads them: of another value, SQLite could forget violations of foreign keys. */
static void test_pragma_arguments(void) {
        static const char *const arguments[] = {
                "0", "1", "2", "00", "01", "256", "257", "2147483647", "2147483648", "2147483649", "4294967295",
                "4294967297", "99999999999", "99999999999999999999999", "0x0", "0x1", "0X10", "0x100", "0x7fffffff",
                "0x80000001", "0x100000001", "0x", "-1", "on", "ON", "off", "yes", "no", "true", "false", "full", "xyz",
                "1.5", "1e3",
        };
        sqlite3_stmt *stmt;
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
        for (size_t i = 0; i < G_N_ELEMENTS(arguments); i++) {
                g_autofree char *set = g_strdup_printf("PRAGMA recursive_triggers = %s", arguments[i]);

                g_assert_cmpint(sqlite3_exec(db, "PRAGMA recursive_triggers = 0", NULL, NULL, NULL), ==, SQLITE_OK);
                if (sqlite3_exec(db, set, NULL, NULL, NULL) != SQLITE_OK)
                        continue; /* "0x" is no token */
                g_assert_cmpint(sqlite3_prepare_v2(db, "PRAGMA recursive_triggers", -1, &stmt, NULL), ==, SQLITE_OK);
                g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
                if (pragma_is_on(arguments[i]) != sqlite3_column_int(stmt, 0))
                        g_error("%s is not read as SQLite reads it", arguments[i]);
                (void) sqlite3_finalize(stmt);
        }
        g_assert_cmpint(pragma_integer("-5"), ==, -5);
        g_assert_cmpint(pragma_integer("99999999999"), ==, 0);
        (void) sqlite3_close(db);
}

/* If this fails for a new SQLite, decide what the PRAGMA means here (pragma.c), and say it in sqlipc-sql(7). */
static void test_pragmas_listed(void) {
        g_autoptr(GPtrArray) names = all_pragmas();

        for (guint i = 0; i < names->len; i++) {
                g_autofree char *upper = g_ascii_strup(names->pdata[i], -1);
                const PragmaRule *rule = pragma_find(upper);

                if (!rule || strcmp(rule->name, names->pdata[i]) != 0)
                        g_error("PRAGMA %s is not listed", upper);
        }
        g_assert_null(pragma_find("no_pragma"));
}

/* The rows of a statement, encoded; NULL: it fails. */
static GBytes *encoded_rows(Fixture *f, EngineConnection *connection, const char *sql) {
        static uint8_t memory[PAGE_SIZE];
        static const PageWriter writer = { .fd = -1 };
        PageEncoder encoder;
        RowSink sink = { .encoder = &encoder, .writer = &writer, .row_size_max = PAGE_SIZE, .n_rows_max = UINT64_MAX };
        EngineStatement *statement;
        EngineResult result;

        sql_error_done(&f->error);
        if (!sqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &f->error))
                return NULL;
        page_encoder_init(&encoder, memory, sizeof memory, 1);
        result = sqlite_engine.step(statement, &sink, &f->error);
        while (result == ENGINE_ROW || result == ENGINE_PAGE_FULL) /* a page is called full after some time, too */
                result = sqlite_engine.fill(statement, &sink, &f->error);
        sqlite_engine.release(statement);
        if (result != ENGINE_DONE && result != ENGINE_NO_ROOM)
                return NULL;
        return g_bytes_new(memory, page_encoder_finish(&encoder));
}

static void same_rows(Fixture *f, EngineConnection *connection, const char *sql, const char *expected) {
        g_autoptr(GBytes) rows = encoded_rows(f, connection, sql), wanted = NULL;

        if (!rows)
                g_error("%s: %s", sql, f->error.message);
        wanted = encoded_rows(f, connection, expected);
        if (!g_bytes_equal(rows, wanted))
                g_error("%s: not as %s", sql, expected);
}

#define NOTHING "SELECT 1 WHERE false"

/* With these a program begins that was written for SQLite. */
static void test_pragmas(void) {
        static const char *const cases[][2] = {
                { "PRAGMA foreign_keys = ON", NOTHING },
                { "PRAGMA foreign_keys(TRUE)", NOTHING },
                { "PRAGMA foreign_keys", "SELECT 1" },
                { "PRAGMA journal_mode = DELETE", "SELECT 'wal'" },
                { "PRAGMA main.journal_mode('wal')", "SELECT 'wal'" },
                { "PRAGMA \"temp\".journal_mode = wal", "PRAGMA temp.journal_mode" },
                { "/* fast */ ; pragma synchronous = NORMAL; -- and unsafe", NOTHING },
                { "PRAGMA synchronous", "SELECT 3" },
                { "PRAGMA busy_timeout = 5000", "SELECT 5000" },
                { "PRAGMA busy_timeout(-1)", "SELECT 0" },
                { "PRAGMA busy_timeout", "SELECT 7000" },
                { "PRAGMA cache_size = -64000", NOTHING },
                { "PRAGMA temp_store = MEMORY", NOTHING },
                { "PRAGMA mmap_size = 268435456", "SELECT 0" },
                { "PRAGMA recursive_triggers = off", NOTHING },
                { "PRAGMA case_sensitive_like = 0", NOTHING },
                { "PRAGMA case_sensitive_like", NOTHING },
                { "PRAGMA query_only = 0", NOTHING },
                { "PRAGMA defer_foreign_keys = OFF", NOTHING },
                { "PRAGMA defer_foreign_keys", "SELECT 0" },
                { "PRAGMA optimize", NOTHING },
                { "PRAGMA wal_checkpoint(TRUNCATE)", "SELECT 0, -1, -1" },
                { "PRAGMA wal_autocheckpoint = 10000", "SELECT 1000" },
                { "PRAGMA encoding = 'UTF-16'", NOTHING },
                { "PRAGMA encoding", "SELECT 'UTF-8'" },
                { "PRAGMA page_size = 65536", NOTHING },
                { "PRAGMA locking_mode = EXCLUSIVE", "SELECT 'normal'" },
                { "PRAGMA threads = 4", "SELECT 0" },
                { "PRAGMA database_list", "SELECT 0, 'main', ''" },
                { "PRAGMA no_such_pragma = 1", NOTHING },
                { "PRAGMA no_such_pragma", NOTHING },
        };
        EngineConnection *reader;
        Setup setup = to_write;
        Fixture f;

        setup.busy_usec = 7 * G_USEC_PER_SEC;
        set_up(&f, "wal", &setup);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
        begin(&f);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                same_rows(&f, reader, cases[i][0], cases[i][1]);
                same_rows(&f, f.writer, cases[i][0], cases[i][1]);
        }
        sqlite_engine.allow_savepoints(f.writer);
        same_rows(&f, f.writer, "PRAGMA foreign_keys = OFF", NOTHING); /* as SQLite, in a transaction */
        same_rows(&f, f.writer, "PRAGMA foreign_keys", "SELECT 1");
        commit(&f);
        sqlite_engine.disconnect(f.pool, reader);
        tear_down(&f);
}

/* The values that SQLite itself tells of its connection and of the file. */
static GPtrArray *all_values(Fixture *f, EngineConnection *connection, const GPtrArray *names) {
        GPtrArray *values = g_ptr_array_new_with_free_func((GDestroyNotify) g_bytes_unref);

        for (guint i = 0; i < names->len; i++) {
                g_autofree char *sql = g_strdup_printf("PRAGMA %s", (const char *) names->pdata[i]);
                GBytes *value = encoded_rows(f, connection, sql);

                g_ptr_array_add(values, value ?: g_bytes_new(NULL, 0));
        }
        return values;
}

/* Others use the same connection, so no setting of a client reaches it, accepted or refused. */
static void test_pragmas_change_nothing(void) {
        static const char *const arguments[] = { "", " = 0", " = 1", "(2)", " = ON", " = OFF", " = 'x'", " = 1000",
                                                 " = DELETE" };
        g_autoptr(GPtrArray) names = all_pragmas();

        for (int writes = 0; writes < 2; writes++) {
                g_autoptr(GPtrArray) before = NULL, after = NULL;
                EngineConnection *connection;
                Fixture f;

                set_up(&f, "wal", &to_write);
                if (writes)
                        begin(&f);
                else
                        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &connection, &f.error));
                connection = writes ? f.writer : connection;
                before = all_values(&f, connection, names);
                for (size_t i = 0; i < names->len * G_N_ELEMENTS(arguments); i++) {
                        g_autofree char *sql = g_strconcat("PRAGMA ", names->pdata[i / G_N_ELEMENTS(arguments)],
                                                           arguments[i % G_N_ELEMENTS(arguments)], NULL);
                        GBytes *rows = encoded_rows(&f, connection, sql);

                        if (rows)
                                g_bytes_unref(rows);
                        else if (f.error.error != ERROR_NOT_ALLOWED && f.error.error != ERROR_NEEDS_PIN &&
                                 !strstr(f.error.message, "no such table"))
                                g_error("%s: %s", sql, f.error.message);
                }
                after = all_values(&f, connection, names);
                for (guint i = 0; i < names->len; i++)
                        if (!g_bytes_equal(before->pdata[i], after->pdata[i]))
                                g_error("PRAGMA %s", (const char *) names->pdata[i]);
                same_rows(&f, connection, "SELECT 'a' LIKE 'A'", "SELECT 1");
                if (writes)
                        commit(&f);
                else
                        sqlite_engine.disconnect(f.pool, connection);
                tear_down(&f);
        }
}

/* A user who cannot write may set all that matters to those who write. */
static void test_pragmas_of_reader(void) {
        EngineConnection *reader;
        Setup setup = to_write;
        Fixture f;

        setup.writes = false;
        set_up(&f, "wal", &setup);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
        same_rows(&f, reader, "PRAGMA foreign_keys = OFF", NOTHING);
        same_rows(&f, reader, "PRAGMA query_only = ON", NOTHING);
        same_rows(&f, reader, "PRAGMA secure_delete = ON", "PRAGMA secure_delete");
        refused(&f, "PRAGMA user_version = 1", ERROR_NOT_ALLOWED, "databases are shared for reading");
        refused(&f, "PRAGMA case_sensitive_like = 1", ERROR_NOT_ALLOWED, "use GLOB");
        sqlite_engine.disconnect(f.pool, reader);
        tear_down(&f);
}

/* A statement that only reads is not one that writes, EXPLAIN among them. */
static void test_reads(void) {
        static const struct {
                const char *sql;
                bool writes;
        } statements[] = {
                { "SELECT * FROM album", false },
                { "SELECT * FROM place", false },
                { "PRAGMA journal_mode", false },
                { "PRAGMA user_version", false },
                { "EXPLAIN INSERT INTO log VALUES(1)", false },
                { "EXPLAIN QUERY PLAN DELETE FROM log", false },
                { "INSERT INTO log VALUES(1)", true },
                { "INSERT INTO log VALUES(1) RETURNING what", true },
                { "INSERT INTO place VALUES(1, 2, 3)", true },
                { "DELETE FROM log WHERE false", true },
        };
        EngineConnection *reader;
        Fixture f;

        set_up(&f, "wal", &to_write);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
        for (size_t i = 0; i < G_N_ELEMENTS(statements); i++) {
                EngineStatement *statement;
                const char *sql = statements[i].sql;

                g_assert_true(sqlite_engine.compile(reader, sql, strlen(sql), true, NULL, &statement, &f.error));
                if (sqlite_engine.writes(statement) != statements[i].writes)
                        g_error("%s", sql);
                sqlite_engine.release(statement);
        }
        sqlite_engine.disconnect(f.pool, reader);
        tear_down(&f);
}

/* Without the right nothing is different from a database that is shared for reading. */
static void test_may_not_write(void) {
        Bytes exposed[] = { { "album", 5 } };
        Setup setup = to_write;
        Fixture f;

        setup.writes = false;
        set_up(&f, "wal", &setup);
        refused(&f, "INSERT INTO log VALUES(1)", ERROR_READ_ONLY, "you may only read this database");
        refused(&f, "EXPLAIN INSERT INTO log VALUES(1)", ERROR_READ_ONLY, "you may only read this database");
        refused(&f, "CREATE TEMP TABLE t(x)", ERROR_NEEDS_PIN, "a TEMP table or view needs a connection");
        refused(&f, "CREATE TEMP VIEW v AS SELECT 1", ERROR_NEEDS_PIN, "a TEMP table or view needs a connection");
        refused(&f, "CREATE TABLE temp.t AS SELECT 1", ERROR_NEEDS_PIN, "a TEMP table or view needs a connection");
        refused(&f, "PRAGMA main.recursive_triggers(yes)", ERROR_NEEDS_PIN, "setting PRAGMA recursive_triggers needs a");
        refused(&f, "PRAGMA short_column_names = 0", ERROR_NEEDS_PIN, "setting PRAGMA short_column_names needs a");
        refused(&f, "BEGIN", ERROR_NOT_ALLOWED, "BEGIN is not allowed: databases are shared for reading");
        tear_down(&f);

        setup.writes = true;
        setup.n_exposed = 1;
        setup.exposed = exposed;
        set_up(&f, "wal", &setup);
        refused(&f, "INSERT INTO album VALUES(1, 2)", ERROR_NOT_ALLOWED, "Expose= is shared for reading only");
        refused(&f, "DELETE FROM album", ERROR_NOT_ALLOWED, "Expose= is shared for reading only");
        refused(&f, "CREATE TABLE t(x)", ERROR_NOT_ALLOWED, "Expose= is shared for reading only");
        refused(&f, "INSERT INTO log VALUES(1)", ERROR_SQL, "no such table: log");
        tear_down(&f);
}

/* A statement writes to a listed table; triggers, foreign keys and views then write to any. */
static void test_write_tables(void) {
        static const Refusal refusals[] = {
                { "INSERT INTO log VALUES(1)", "writing to log is not allowed: WriteTables= of this" },
                { "INSERT INTO main.LOG VALUES(1)", "writing to log is not allowed" },
                { "WITH album AS (SELECT 1) DELETE FROM log", "writing to log is not allowed" },
                { "DELETE FROM track", "writing to track is not allowed" },
                { "UPDATE track SET name = (SELECT count(*) FROM place)", "writing to track is not allowed" },
                { "UPDATE log AS album SET what = 1", "writing to log is not allowed" },
                { "REPLACE INTO track VALUES(1, 1, 1)", "writing to track is not allowed" },
                { "INSERT INTO words VALUES('x')", "writing to words is not allowed" },
        };
        Bytes tables[] = { { "Album", 5 }, { "titles", 6 }, { "place", 5 } };
        Setup setup = to_write;
        Fixture f;

        setup.n_write_tables = G_N_ELEMENTS(tables);
        setup.write_tables = tables;
        all_refused(&setup, refusals, G_N_ELEMENTS(refusals));

        set_up(&f, "wal", &setup);
        foreign(&f, "CREATE TABLE \"\"(x)"); /* SQLite allows this name */
        begin(&f);
        refused(&f, "INSERT INTO \"\" VALUES(1)", ERROR_NOT_ALLOWED, "WriteTables=");
        g_assert_cmpint(changes_of(&f, "INSERT INTO place SELECT 1, 2, 3"), ==, 1);
        g_assert_cmpint(changes_of(&f, "INSERT INTO album(title) VALUES('x')"), ==, 1);
        g_assert_cmpint(changes_of(&f, "INSERT INTO titles VALUES('y')"), ==, 0);
        g_assert_cmpint(changes_of(&f, "DELETE FROM album WHERE id = 1"), ==, 1);
        g_assert_cmpint(changes_of(&f, "REPLACE INTO album VALUES(2, 'z')"), ==, 1);
        commit(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM log"), ==, 5);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM track"), ==, 0);
        tear_down(&f);
}

static void expect_written(Fixture *f, const char *sql, unsigned n, const char *first) {
        EngineTables read = {}, written = {};
        EngineStatement *statement;

        g_assert_true(sqlite_engine.compile(f->writer, sql, strlen(sql), false, NULL, &statement, &f->error));
        g_assert_true(sqlite_engine.tables(statement, &read, &written, &f->error));
        g_assert_cmpuint(written.n, ==, n);
        g_assert_cmpstr(written.names[0], ==, first);
        engine_tables_done(&read);
        engine_tables_done(&written);
        sqlite_engine.release(statement);
}

static void test_written_tables(void) {
        Fixture f;

        set_up(&f, "wal", &to_write);
        begin(&f);
        expect_written(&f, "INSERT INTO log VALUES(1)", 1, "log");
        expect_written(&f, "INSERT INTO album VALUES(9, 9)", 2, "album");
        expect_written(&f, "DELETE FROM album", 2, "album");
        commit(&f);
        tear_down(&f);
}

/* ---- transactions ---- */

static void test_undo(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                Fixture f;

                set_up(&f, modes[i], &to_write);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO album(title) VALUES('kept')"), ==, 1);
                g_assert_cmpint(execute(&f, "INSERT INTO album(title) VALUES('half'), ('first')").error, ==, ERROR_SQL);
                g_assert_cmpint(f.error.extended_code, ==, SQLITE_CONSTRAINT_UNIQUE);
                g_assert_cmpstr(f.error.message, ==, "UNIQUE constraint failed: album.title");
                g_assert_true(sqlite_engine.is_in_transaction(f.writer));
                g_assert_cmpint(changes_of(&f, "INSERT INTO album(title) VALUES('kept, too')"), ==, 1);
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM album"), ==, 4);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "DELETE FROM album"), ==, 4);
                sqlite_engine.rollback(f.writer);
                g_assert_false(sqlite_engine.is_in_transaction(f.writer));
                end(&f);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "DELETE FROM album"), ==, 4);
                end(&f); /* without commit() */
                g_assert_cmpint(number(&f, "SELECT count(*) FROM album"), ==, 4);
                tear_down(&f);
        }
}

/* A client's savepoints, in a transaction of its own. Their names may be any, also that of the worker's. */
static void test_savepoints(void) {
        Setup setup = to_write;
        Fixture f;

        setup.write_schema = true;
        set_up(&f, "wal", &setup);
        begin(&f);
        sqlite_engine.allow_savepoints(f.writer);
        g_assert_cmpint(changes_of(&f, "DELETE FROM album WHERE id = 1"), ==, 1);
        g_assert_cmpint(changes_of(&f, "SAVEPOINT statement"), ==, 0);
        g_assert_cmpint(changes_of(&f, "INSERT INTO album(title) VALUES('third')"), ==, 1);
        g_assert_cmpint(changes_of(&f, "SAVEPOINT inner"), ==, 0);
        g_assert_cmpint(changes_of(&f, "CREATE TABLE later(x)"), ==, 0);
        g_assert_cmpint(changes_of(&f, "ROLLBACK TO inner"), ==, 0);
        g_assert_cmpint(execute(&f, "INSERT INTO later VALUES(1)").error, ==, ERROR_SQL);
        g_assert_cmpint(changes_of(&f, "INSERT INTO album(title) VALUES('fourth')"), ==, 1);
        g_assert_cmpint(changes_of(&f, "RELEASE statement"), ==, 0);
        g_assert_cmpint(execute(&f, "ROLLBACK TO inner").error, ==, ERROR_SQL);
        g_assert_cmpstr(f.error.message, ==, "no such savepoint: inner");
        g_assert_cmpint(execute(&f, "EXPLAIN SAVEPOINT inner").error, ==, ERROR_NONE);
        g_assert_cmpint(execute(&f, "COMMIT").error, ==, ERROR_NOT_ALLOWED);
        g_assert_cmpint(execute(&f, "ROLLBACK").error, ==, ERROR_NOT_ALLOWED);
        commit(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM album"), ==, 3);
        begin(&f); /* a statement that was allowed is not kept for others */
        g_assert_cmpint(execute(&f, "SAVEPOINT inner").error, ==, ERROR_NOT_ALLOWED);
        g_assert_cmpstr(f.error.message, ==, "SAVEPOINT is not allowed: savepoints need a transaction");
        end(&f);
        tear_down(&f);
}

/* The failure of one statement takes back the transaction of all. */
static void test_statement_rolls_back(void) {
        Fixture f;

        set_up(&f, "wal", &to_write);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO album(title) VALUES('lost')"), ==, 1);
        g_assert_cmpint(execute(&f, "INSERT OR ROLLBACK INTO album(title) VALUES('first')").error, ==, ERROR_SQL);
        g_assert_false(sqlite_engine.is_in_transaction(f.writer));
        end(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM album"), ==, 2);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO album(title) VALUES('again')"), ==, 1);
        commit(&f);
        tear_down(&f);
}

/* A commit that finds deferred keys violated is refused, and the transaction goes on. SQLite has two counts of violations,
 * of which only the sum matters. */
static void test_commit_fails(void) {
        Fixture f;

        set_up(&f, "wal", &to_write);
        foreign(&f, "CREATE TABLE late(album REFERENCES album DEFERRABLE INITIALLY DEFERRED)");
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO late VALUES(99)"), ==, 1);
        g_assert_cmpint(execute(&f, "BEGIN").error, ==, ERROR_NOT_ALLOWED); /* the commit does not fail for this */
        sql_error_done(&f.error);
        for (int i = 0; i < 2; i++) {
                g_assert_false(sqlite_engine.commit(f.writer, &f.error));
                g_assert_cmpint(f.error.error, ==, ERROR_COMMIT_REFUSED);
                g_assert_cmpint(f.error.extended_code, ==, SQLITE_CONSTRAINT_FOREIGNKEY);
                g_assert_true(sqlite_engine.is_in_transaction(f.writer));
                sql_error_done(&f.error);
        }
        g_assert_cmpint(changes_of(&f, "UPDATE late SET album = 1"), ==, 1);
        commit(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM late"), ==, 1);

        begin(&f);
        sqlite_engine.allow_savepoints(f.writer);
        g_assert_cmpint(changes_of(&f, "INSERT INTO late VALUES(99)"), ==, 1);
        g_assert_cmpint(execute(&f, "PRAGMA defer_foreign_keys = ON").error, ==, ERROR_NONE);
        g_assert_cmpint(changes_of(&f, "INSERT INTO album VALUES(99, 'late')"), ==, 1);
        commit(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM late"), ==, 2);

        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO late VALUES(98)"), ==, 1);
        g_assert_false(sqlite_engine.commit(f.writer, &f.error));
        end(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM late"), ==, 2);
        tear_down(&f);
}

/* In its transaction a client may defer all foreign keys. No other transaction has them deferred. To take that back, with
 * which SQLite forgets the violations so far, it needs the right to turn keys off. */
static void test_deferral(void) {
        static const char defer[] = "PRAGMA defer_foreign_keys = ON";
        Setup setup = to_write;
        Fixture f;

        set_up(&f, "wal", &to_write);
        foreign(&f, "CREATE TABLE child(album REFERENCES album)");
        for (int keeps = 0; keeps < 2; keeps++) {
                begin(&f);
                g_assert_cmpint(execute(&f, defer).error, ==, ERROR_NOT_ALLOWED);
                g_assert_cmpstr(f.error.message, ==,
                                "setting PRAGMA defer_foreign_keys is not allowed: it needs a transaction that writes");
                g_assert_cmpint(execute(&f, "INSERT INTO child VALUES(99)").error, ==, ERROR_SQL);
                sqlite_engine.allow_savepoints(f.writer);
                g_assert_cmpint(execute(&f, defer).error, ==, ERROR_NONE);
                g_assert_cmpint(execute(&f, "PRAGMA defer_foreign_keys = OFF").error, ==, ERROR_NOT_ALLOWED);
                g_assert_cmpint(changes_of(&f, "INSERT INTO child VALUES(99)"), ==, 1);
                if (keeps)
                        g_assert_cmpint(changes_of(&f, "INSERT INTO album VALUES(99, 'late')"), ==, 1);
                g_assert_cmpint(sqlite_engine.commit(f.writer, &f.error), ==, keeps);
                end(&f);
        }
        g_assert_cmpint(number(&f, "SELECT count(*) FROM child"), ==, 1);
        tear_down(&f);

        setup.write_schema = true;
        set_up(&f, "wal", &setup);
        foreign(&f, "CREATE TABLE child(album REFERENCES album)");
        begin(&f);
        sqlite_engine.allow_savepoints(f.writer);
        g_assert_cmpint(execute(&f, defer).error, ==, ERROR_NONE);
        g_assert_cmpint(changes_of(&f, "INSERT INTO child VALUES(99)"), ==, 1);
        g_assert_cmpint(execute(&f, "PRAGMA defer_foreign_keys = OFF").error, ==, ERROR_NONE);
        g_assert_cmpint(execute(&f, "INSERT INTO child VALUES(99)").error, ==, ERROR_SQL);
        commit(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM child"), ==, 1);
        tear_down(&f);
}

/* The setting that the PRAGMA makes for its client, on a connection that reads. */
static uint64_t setting(Fixture *f, const char *sql, bool in_transaction) {
        EngineConnection *connection;
        EngineStatement *statement;
        EndCounters counters = {};

        g_assert_true(sqlite_engine.connect(f->pool, "", 0, NULL, &connection, &f->error));
        sqlite_engine.set_client(connection, FOREIGN_KEYS_CONFIGURED, true, in_transaction);
        g_assert_true(sqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &f->error));
        g_assert_true(sqlite_engine.does_nothing(statement));
        sqlite_engine.counters(statement, &counters);
        sqlite_engine.release(statement);
        sqlite_engine.disconnect(f->pool, connection);
        return counters.foreign_keys;
}

/* Which of them a user may set, by ForeignKeys=, WriteSchema= and WriteTables=. */
static void test_foreign_keys_rights(void) {
        static Bytes tables[] = { { "album", 5 } };

        for (unsigned i = 0; i < 8; i++) {
                Setup setup = to_write;
                Fixture f;

                setup.foreign_keys = i & 1;
                setup.write_schema = i & 2;
                setup.n_write_tables = i & 4 ? 1 : 0;
                setup.write_tables = tables;
                set_up(&f, "wal", &setup);
                if (setup.foreign_keys && !setup.write_schema) {
                        refused(&f, "PRAGMA foreign_keys = OFF", ERROR_NOT_ALLOWED,
                                "setting PRAGMA foreign_keys is not allowed: ForeignKeys= of this");
                        refused(&f, "PRAGMA foreign_keys = 256", ERROR_NOT_ALLOWED, "PRAGMA foreign_keys");
                } else
                        g_assert_cmpuint(setting(&f, "PRAGMA foreign_keys = 256", false), ==, FOREIGN_KEYS_OFF);
                if (!setup.foreign_keys && !setup.write_schema && setup.n_write_tables > 0)
                        refused(&f, "PRAGMA main.foreign_keys(yes)", ERROR_NOT_ALLOWED, "ForeignKeys= of this");
                else
                        g_assert_cmpuint(setting(&f, "PRAGMA main.foreign_keys(yes)", false), ==, FOREIGN_KEYS_ON);
                g_assert_cmpuint(setting(&f, "PRAGMA foreign_keys = OFF", true), ==, FOREIGN_KEYS_CONFIGURED);
                for (unsigned wanted = 0; wanted < FOREIGN_KEYS_MAX_; wanted++) {
                        bool on = wanted == FOREIGN_KEYS_CONFIGURED ? setup.foreign_keys : wanted == FOREIGN_KEYS_ON;
                        bool may = on == setup.foreign_keys || setup.write_schema || (on && setup.n_write_tables == 0);

                        sql_error_done(&f.error);
                        g_assert_cmpint(engine_enforces(&setup, wanted), ==, on);
                        g_assert_cmpint(engine_check_foreign_keys(&sqlite_engine, &setup, wanted, &f.error), ==, may);
                        g_assert_cmpint(f.error.error, ==, may ? ERROR_NONE : ERROR_NOT_ALLOWED);
                }
                tear_down(&f);
        }
}

/* Each transaction has the setting with which it begins, also for statements that were compiled before, and after one that
 * was taken back. A table without keys is dropped without the rows that refer to it. */
static void test_foreign_keys_of_each(void) {
        static const char orphan[] = "INSERT INTO child VALUES(99)";
        Setup setup = to_write;

        setup.write_schema = true;
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                Fixture f;

                set_up(&f, modes[i], &setup);
                foreign(&f, "CREATE TABLE child(album REFERENCES album ON DELETE CASCADE);"
                            "INSERT INTO child VALUES(1), (2)");
                for (int on = 0; on < 6; on++) {
                        g_assert_true(sqlite_engine.begin(f.pool, on % 2, &f.writer, &f.error));
                        g_assert_cmpint(execute(&f, orphan).error, ==, on % 2 ? ERROR_SQL : ERROR_NONE);
                        same_rows(&f, f.writer, "PRAGMA foreign_keys", on % 2 ? "SELECT 1" : "SELECT 0");
                        if (on > 2)
                                sqlite_engine.rollback(f.writer);
                        end(&f);
                }
                g_assert_true(sqlite_engine.begin(f.pool, false, &f.writer, &f.error));
                g_assert_cmpint(changes_of(&f, "DELETE FROM child WHERE album = 99"), ==, 0);
                g_assert_cmpint(execute(&f, "DROP TABLE album").error, ==, ERROR_NONE);
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM child"), ==, 2);
                tear_down(&f);
        }
}

/* A cancelled statement takes back the transaction. A commit is never cancelled. */
static void test_interrupt(void) {
        Fixture f;

        set_up(&f, "wal", &to_write);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(1)"), ==, 1);
        interrupts = true;
        g_assert_cmpint(execute(&f, "INSERT INTO log SELECT 1 FROM album a, album b, album c, album d, album e, album f,"
                                    " album g, album h, album i, album j, album k").error, ==, ERROR_CANCELLED);
        g_assert_false(sqlite_engine.is_in_transaction(f.writer));
        end(&f);
        for (unsigned n = 0; n < 1000; n++) {
                sql_error_done(&f.error);
                begin(&f);
                g_assert_true(sqlite_engine.save(f.writer, &f.error));
                g_assert_true(sqlite_engine.keep(f.writer, &f.error));
                commit(&f);
        }
        interrupts = false;
        tear_down(&f);
}

static void test_foreign_writer(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                sqlite3 *other;
                Fixture f;

                set_up(&f, modes[i], &to_write);
                other = foreign_open(&f);
                g_assert_cmpint(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), ==, SQLITE_OK);
                g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
                g_assert_false(sqlite_engine.others_commit(f.pool));
                g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
                g_assert_false(sqlite_engine.others_commit(f.pool));
                g_assert_cmpint(sqlite3_exec(other, "DELETE FROM log; COMMIT; BEGIN IMMEDIATE", NULL, NULL, NULL), ==,
                                SQLITE_OK);
                g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
                g_assert_true(sqlite_engine.others_commit(f.pool));
                g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
                g_assert_false(sqlite_engine.others_commit(f.pool));
                g_assert_cmpint(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
                sql_error_done(&f.error);
                begin(&f);
                g_assert_cmpint(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), ==, SQLITE_BUSY);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(1)"), ==, 1);
                commit(&f);
                g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
                tear_down(&f);
        }
}

/* In rollback mode a reader is in the way of a commit, which goes on afterwards. */
static void test_foreign_reader(void) {
        sqlite3_stmt *stmt;
        sqlite3 *other;
        Fixture f;

        set_up(&f, "delete", &to_write);
        other = foreign_open(&f);
        g_assert_cmpint(sqlite3_prepare_v2(other, "SELECT * FROM album", -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(1)"), ==, 1);
        for (unsigned n = 0; n < 2; n++) {
                g_assert_false(sqlite_engine.commit(f.writer, &f.error));
                g_assert_cmpint(f.error.error, ==, ERROR_BUSY);
                g_assert_true(sqlite_engine.is_in_transaction(f.writer));
                sql_error_done(&f.error);
        }
        g_assert_cmpint(sqlite3_finalize(stmt), ==, SQLITE_OK);
        commit(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM log"), ==, 3);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        tear_down(&f);
}

/* A lock keeps a connection from seeing that the schema has changed. SQL that fails to compile then may be right. */
static void test_schema_unseen(void) {
        static const char sql[] = "SELECT name FROM album";
        EngineStatement *statement;
        EngineConnection *reader;
        sqlite3 *other;
        Fixture f;

        set_up(&f, "delete", &to_write);
        other = foreign_open(&f);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
        g_assert_false(sqlite_engine.compile(reader, sql, strlen(sql), false, NULL, &statement, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_SQL);
        sql_error_done(&f.error);
        g_assert_cmpint(sqlite3_exec(other, "ALTER TABLE album ADD COLUMN name; BEGIN EXCLUSIVE", NULL, NULL, NULL), ==,
                        SQLITE_OK);
        g_assert_false(sqlite_engine.compile(reader, sql, strlen(sql), false, NULL, &statement, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_BUSY);
        sql_error_done(&f.error);
        g_assert_cmpint(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_true(sqlite_engine.compile(reader, sql, strlen(sql), false, NULL, &statement, &f.error));
        sqlite_engine.release(statement);
        sqlite_engine.disconnect(f.pool, reader);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        tear_down(&f);
}

/* ---- transactions that read ---- */

static int64_t rows_of(Fixture *f, EngineConnection *c, const char *sql) {
        EngineStatement *statement;
        uint64_t n_rows;

        g_assert_true(sqlite_engine.compile(c, sql, strlen(sql), false, NULL, &statement, &f->error));
        g_assert_cmpint(step_all(f, statement, &n_rows), ==, ENGINE_DONE);
        sqlite_engine.release(statement);
        return (int64_t) n_rows;
}

/* All statements read what was there when the transaction began, although each is compiled in it. */
static void test_snapshot(void) {
        EngineConnection *c;
        Fixture f;

        set_up(&f, "wal", &to_write);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &c, &f.error));
        g_assert_true(sqlite_engine.snapshot(c, &f.error));
        g_assert_true(sqlite_engine.is_in_transaction(c));
        foreign(&f, "INSERT INTO album(title) VALUES('third')");
        g_assert_cmpint(rows_of(&f, c, "SELECT * FROM album"), ==, 2);
        foreign(&f, "CREATE TABLE later(x)");
        g_assert_cmpint(rows_of(&f, c, "SELECT id FROM album"), ==, 2);
        g_assert_cmpint(rows_of(&f, c, "SELECT * FROM sqlite_schema WHERE name = 'later'"), ==, 0);
        sqlite_engine.disconnect(f.pool, c);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &c, &f.error));
        g_assert_false(sqlite_engine.is_in_transaction(c));
        g_assert_cmpint(rows_of(&f, c, "SELECT * FROM album"), ==, 3);
        sqlite_engine.disconnect(f.pool, c);
        tear_down(&f);
}

/* In rollback mode a snapshot keeps writers out. */
static void test_snapshot_locks(void) {
        EngineConnection *c;
        sqlite3 *other;
        Fixture f;

        set_up(&f, "delete", &to_write);
        other = foreign_open(&f);
        g_assert_cmpint(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &c, &f.error));
        g_assert_false(sqlite_engine.keeps_writers_out(c));
        g_assert_cmpint(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_false(sqlite_engine.snapshot(c, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_BUSY);
        g_assert_false(sqlite_engine.is_in_transaction(c));
        sql_error_done(&f.error);
        g_assert_cmpint(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_true(sqlite_engine.snapshot(c, &f.error));
        g_assert_true(sqlite_engine.keeps_writers_out(c));
        g_assert_cmpint(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_BUSY);
        sqlite_engine.disconnect(f.pool, c);
        g_assert_cmpint(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        tear_down(&f);
}

static void write_a_megabyte(sqlite3 *db) {
        g_assert_cmpint(sqlite3_exec(db, "INSERT INTO log VALUES(zeroblob(1100000))", NULL, NULL, NULL), ==, SQLITE_OK);
}

static void checkpoint(sqlite3 *db) {
        g_assert_cmpint(sqlite3_exec(db, "PRAGMA wal_checkpoint", NULL, NULL, NULL), ==, SQLITE_OK);
}

static EngineConnection *begin_snapshot(Fixture *f) {
        EngineConnection *c;

        g_assert_true(sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error));
        g_assert_false(sqlite_engine.keeps_log(c));
        g_assert_true(sqlite_engine.snapshot(c, &f->error));
        g_assert_false(sqlite_engine.keeps_writers_out(c));
        g_assert_true(sqlite_engine.keeps_log(c));
        g_assert_false(sqlite_engine.writer_waits(c));
        return c;
}

/* In WAL mode a snapshot is in the way if it alone keeps more than WalSizeMax= of another program's log from being written
 * back. */
static void snapshot_keeps_log(bool writes) {
        Setup setup = to_write;
        EngineConnection *first, *second;
        sqlite3 *other;
        Fixture f;

        setup.writes = writes;
        set_up(&f, "wal", &setup);
        other = foreign_open(&f);
        g_assert_cmpint(sqlite3_exec(other, "PRAGMA wal_autocheckpoint = 0; INSERT INTO log VALUES(1)", NULL, NULL, NULL),
                        ==, SQLITE_OK);
        first = begin_snapshot(&f);
        write_a_megabyte(other);
        g_assert_false(sqlite_engine.writer_waits(first)); /* there was no checkpoint */
        second = begin_snapshot(&f);
        checkpoint(other);
        g_assert_true(sqlite_engine.writer_waits(first));
        g_assert_false(sqlite_engine.writer_waits(second));
        write_a_megabyte(other);
        sqlite_engine.disconnect(f.pool, first);
        checkpoint(other);
        g_assert_true(sqlite_engine.writer_waits(second));
        sqlite_engine.disconnect(f.pool, second);
        checkpoint(other);
        first = begin_snapshot(&f); /* reads the file alone, which cannot be written meanwhile */
        write_a_megabyte(other);
        checkpoint(other);
        g_assert_true(sqlite_engine.writer_waits(first));
        sqlite_engine.disconnect(f.pool, first);
        checkpoint(other);
        first = begin_snapshot(&f);
        sqlite_engine.disconnect(f.pool, first);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        tear_down(&f);
}

static void test_snapshot_keeps_log(void) {
        snapshot_keeps_log(true);
}

static void test_snapshot_keeps_log_of_others(void) {
        snapshot_keeps_log(false);
}

/* ---- limits ---- */

static int64_t size_of(const Fixture *f, const char *suffix) {
        g_autofree char *name = g_strconcat(f->path, suffix, NULL);
        struct stat st;

        return stat(name, &st) < 0 ? -1 : st.st_size;
}

static void test_database_size_max(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                Setup setup = to_write;
                Fixture f;

                setup.database_size_max = 200000;
                set_up(&f, modes[i], &setup);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(zeroblob(60000))"), ==, 1);
                g_assert_cmpint(execute(&f, "INSERT INTO log VALUES(zeroblob(150000))").error, ==, ERROR_LIMITS_EXCEEDED);
                g_assert_nonnull(strstr(f.error.message, "200000 bytes of DatabaseSizeMax="));
                end(&f);
                sql_error_done(&f.error);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES('small')"), ==, 1);
                commit(&f);
                tear_down(&f);
        }
}

/* A table that has had the largest rowid takes no row without a rowid, for which SQLite says that the disk is full. */
static void test_rowids_used_up(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                Fixture f;

                set_up(&f, modes[i], &to_write);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO track(id) VALUES(9223372036854775807)"), ==, 1);
                g_assert_cmpint(changes_of(&f, "DELETE FROM track WHERE id > 9"), ==, 1);
                commit(&f);
                begin(&f);
                g_assert_cmpint(execute(&f, "INSERT INTO track(name) VALUES('late')").error, ==, ERROR_LIMITS_EXCEEDED);
                g_assert_nonnull(strstr(f.error.message, "AUTOINCREMENT has no rowid left for this table"));
                g_assert_cmpint(f.error.extended_code, ==, SQLITE_FULL);
                end(&f);
                sql_error_done(&f.error);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO track(id, name) VALUES(4, 'late')"), ==, 1);
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM track"), ==, 4);
                tear_down(&f);
        }
}

/* A small file system of its own. False, and the test is skipped, if this process may not mount one. */
static bool mount_small(const char *folder) {
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", folder, "tmpfs", 0, "size=1m") < 0) {
                g_test_skip("this process may not mount a file system");
                return false;
        }
        return true;
}

static void test_disk_full(void) {
        g_autofree char *disk = g_dir_make_tmp("sqlipc-disk-XXXXXX", NULL);
        bool mounted = mount_small(disk);

        for (size_t i = 0; mounted && i < G_N_ELEMENTS(modes); i++) {
                Fixture f;

                set_up_in(&f, g_mkdtemp(g_build_filename(disk, "XXXXXX", NULL)), modes[i], &to_write);
                begin(&f);
                (void) execute(&f, "INSERT INTO log VALUES(randomblob(3000000))");
                if (f.error.error == ERROR_NONE) /* it still fitted into memory */
                        g_assert_false(sqlite_engine.commit(f.writer, &f.error));
                g_assert_cmpint(f.error.error, ==, ERROR_NO_SPACE);
                g_assert_nonnull(strstr(f.error.message, "the disk of this database is full"));
                end(&f);
                sql_error_done(&f.error);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES('small')"), ==, 1);
                commit(&f);
                tear_down(&f);
        }
        if (mounted)
                g_assert_cmpint(umount(disk), ==, 0);
        g_assert_cmpint(g_rmdir(disk), ==, 0);
}

static int write_fails_with; /* errno */

static ssize_t fault_write(int fd, const void *bytes, size_t size, off_t offset) {
        errno = write_fails_with;
        return write_fails_with == 0 ? pwrite(fd, bytes, size, offset) : -1;
}

/* Before the engine puts its own calls in front of them. */
static void install_fault(void) {
        static const char *const names[] = { "pwrite", "pwrite64" };
        sqlite3_vfs *vfs = sqlite3_vfs_find("unix");

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
                if (vfs->xGetSystemCall(vfs, names[i]))
                        g_assert_cmpint(vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr) fault_write), ==,
                                        SQLITE_OK);
        g_assert_cmpint(sqlite3_shutdown(), ==, SQLITE_OK); /* the engine configures SQLite before it is initialized */
}

/* Each errno has its own error, when the database is opened and later. Afterwards it is written to. */
static void test_write_fails(void) {
        static const struct {
                int error;
                ErrorNumber number;
                const char *sentence;
        } faults[] = {
                { ENOSPC, ERROR_NO_SPACE, "the disk of this database is full" },
                { EDQUOT, ERROR_NO_SPACE, "the disk of this database is full" },
                { EFBIG, ERROR_NO_SPACE, "a file may not grow any more" },
                { EROFS, ERROR_READ_ONLY, "database read-only: mount it read-write" },
                { EIO, ERROR_INPUT_OUTPUT, "disk I/O error" },
        };

        for (size_t n = 0; n < G_N_ELEMENTS(modes) * G_N_ELEMENTS(faults) * 2; n++) {
                const size_t i = n / 2 % G_N_ELEMENTS(faults);
                Fixture f;

                set_up(&f, modes[n / 2 / G_N_ELEMENTS(faults)], &to_write);
                if (n % 2 == 0) {
                        begin(&f);
                        commit(&f);
                }
                write_fails_with = faults[i].error;
                if (sqlite_engine.begin(f.pool, true, &f.writer, &f.error)) {
                        (void) execute(&f, "INSERT INTO log VALUES(zeroblob(100000))");
                        if (f.error.error == ERROR_NONE)
                                g_assert_false(sqlite_engine.commit(f.writer, &f.error));
                        end(&f);
                }
                write_fails_with = 0;
                g_assert_cmpint(f.error.error, ==, faults[i].number);
                g_assert_nonnull(strstr(f.error.message, faults[i].sentence));
                sql_error_done(&f.error);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES('small')"), ==, 1);
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM log"), ==, 3);
                tear_down(&f);
        }
}

static int sync_fails_with; /* errno; 0: it does not fail */

static int fault_sync(int fd, long number) {
        errno = sync_fails_with;
        return sync_fails_with == 0 ? (int) syscall(number, fd) : -1;
}

/* SQLite calls these instead of those of the C library. */
int fdatasync(int fd) {
        return fault_sync(fd, SYS_fdatasync);
}

int fsync(int fd) {
        return fault_sync(fd, SYS_fsync);
}

/* Some file systems notice only then that the disk is full. */
static void test_sync_fails(void) {
        static const struct {
                int error;
                ErrorNumber number;
        } faults[] = { { ENOSPC, ERROR_NO_SPACE }, { EDQUOT, ERROR_NO_SPACE }, { EIO, ERROR_INPUT_OUTPUT } };

        for (size_t n = 0; n < G_N_ELEMENTS(modes) * G_N_ELEMENTS(faults); n++) {
                const size_t i = n % G_N_ELEMENTS(faults);
                Fixture f;

                set_up(&f, modes[n / G_N_ELEMENTS(faults)], &to_write);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES('lost')"), ==, 1);
                sync_fails_with = faults[i].error;
                g_assert_false(sqlite_engine.commit(f.writer, &f.error));
                end(&f);
                sync_fails_with = 0;
                g_assert_cmpint(f.error.error, ==, faults[i].number);
                g_assert_cmpint(f.error.extended_code, ==, SQLITE_IOERR_FSYNC);
                sql_error_done(&f.error);
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES('small')"), ==, 1);
                commit(&f);
                g_assert_cmpint(number(&f, "SELECT count(*) FROM log"), ==, 3);
                tear_down(&f);
        }
}

/* While a reader stays, the log cannot be truncated; the next transaction afterwards does it. */
static void test_wal_size_max(void) {
        sqlite3_stmt *stmt;
        sqlite3 *other;
        Fixture f;

        set_up(&f, "wal", &to_write);
        other = foreign_open(&f);
        g_assert_cmpint(sqlite3_prepare_v2(other, "SELECT * FROM album", -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        for (unsigned n = 0; n < 3; n++) {
                begin(&f);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(zeroblob(500000))"), ==, 1);
                commit(&f);
        }
        g_assert_cmpint(size_of(&f, "-wal"), >, 1 << 20);
        g_assert_cmpint(sqlite3_finalize(stmt), ==, SQLITE_OK);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(1)"), ==, 1);
        commit(&f);
        g_assert_cmpint(size_of(&f, "-wal"), <, 1 << 20);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        tear_down(&f);
}

static sqlite3_stmt *read_on(sqlite3 *other) {
        sqlite3_stmt *stmt;

        g_assert_cmpint(sqlite3_prepare_v2(other, "SELECT * FROM album", -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        return stmt;
}

static void make_log_large(Fixture *f) {
        begin(f);
        g_assert_cmpint(changes_of(f, "INSERT INTO log VALUES(zeroblob(1500000))"), ==, 1);
        commit(f);
        g_assert_cmpint(size_of(f, "-wal"), >, 1 << 20);
}

/* Readers that overlap never leave the log. The writer pauses until a reader has begun that does not use it. */
static void test_wal_readers_overlap(void) {
        sqlite3_stmt *readers[2];
        sqlite3 *others[2];
        Fixture f;

        set_up(&f, "wal", &to_write);
        f.setup.busy_usec = UINT64_MAX / 4;
        for (size_t i = 0; i < 2; i++)
                others[i] = foreign_open(&f);
        readers[0] = read_on(others[0]);
        make_log_large(&f);
        readers[1] = read_on(others[1]); /* uses the log, which is written back only in part */
        g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
        g_assert_cmpint(sqlite3_finalize(readers[0]), ==, SQLITE_OK);
        g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
        readers[0] = read_on(others[0]); /* does not use it */
        g_assert_cmpint(sqlite3_finalize(readers[1]), ==, SQLITE_OK);
        sql_error_done(&f.error);
        begin(&f);
        g_assert_cmpint(size_of(&f, "-wal"), ==, 0);
        g_assert_cmpint(sqlite3_finalize(readers[0]), ==, SQLITE_OK);
        end(&f);
        for (size_t i = 0; i < 2; i++)
                g_assert_cmpint(sqlite3_close(others[i]), ==, SQLITE_OK);
        tear_down(&f);
}

/* A reader that stays for longer than half of BusyTimeoutSec= stops writers only once for each WalSizeMax=. */
static void test_wal_reader_stays(void) {
        sqlite3_stmt *reader;
        sqlite3 *other;
        Fixture f;

        set_up(&f, "wal", &to_write);
        f.setup.busy_usec = 2000;
        other = foreign_open(&f);
        reader = read_on(other);
        make_log_large(&f);
        g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
        g_usleep(1000);
        sql_error_done(&f.error);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(1)"), ==, 1);
        commit(&f);
        make_log_large(&f);
        g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
        g_assert_cmpint(sqlite3_finalize(reader), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        tear_down(&f);
}

/* ---- files ---- */

/* The last connection leaves one file. An idle one that reads is closed before it, because it would leave the log. */
static void test_one_file(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                EngineConnection *reader;
                Fixture f;

                set_up(&f, modes[i], &to_write);
                begin(&f);
                g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
                sqlite_engine.disconnect(f.pool, reader);
                g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES(1)"), ==, 1);
                g_assert_cmpint(size_of(&f, i == 0 ? "-journal" : "-wal"), >=, 0);
                commit(&f);
                g_assert_cmpint(size_of(&f, "-journal"), ==, -1);
                g_assert_cmpuint(sqlite_engine.expire(f.pool, UINT64_MAX), ==, UINT64_MAX);
                g_assert_cmpint(size_of(&f, "-wal"), ==, -1);
                g_assert_cmpint(size_of(&f, "-shm"), ==, -1);
                tear_down(&f);
        }
}

/* A program that dies in the middle of a transaction, of which pages are in the file already. */
static void leave_hot_journal(const Fixture *f) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                sqlite3 *db;

                if (sqlite3_open(f->path, &db) == SQLITE_OK &&
                    sqlite3_exec(db, "PRAGMA cache_size = 1; BEGIN; UPDATE album SET title = 'half ' || id;"
                                     "INSERT INTO log VALUES(zeroblob(100000))", NULL, NULL, NULL) == SQLITE_OK)
                        _exit(EXIT_SUCCESS);
                _exit(EXIT_FAILURE);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
        g_assert_cmpint(size_of(f, "-journal"), >, 0);
}

static uint64_t count_first(Fixture *f, EngineConnection *reader) {
        static const char sql[] = "SELECT title FROM album WHERE title = 'first'";
        EngineStatement *statement;
        uint64_t n_rows;
        EngineResult result;

        g_assert_true(sqlite_engine.compile(reader, sql, strlen(sql), false, NULL, &statement, &f->error));
        while ((result = step_all(f, statement, &n_rows)) == ENGINE_BUSY) {
                sql_error_done(&f->error);
                sqlite_engine.reset(statement);
        }
        g_assert_cmpstr(f->error.message, ==, NULL);
        g_assert_cmpint(result, ==, ENGINE_DONE);
        sqlite_engine.release(statement);
        return n_rows;
}

/* It is rolled back when this worker opens the database, to read or to write, and while it has it open. */
static void test_hot_journal(void) {
        EngineConnection *reader;
        Fixture f;

        set_up(&f, "delete", &to_write);
        leave_hot_journal(&f);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
        g_assert_cmpint(size_of(&f, "-journal"), ==, -1);
        g_assert_cmpuint(count_first(&f, reader), ==, 1);
        leave_hot_journal(&f);
        g_assert_cmpuint(count_first(&f, reader), ==, 1);
        g_assert_cmpint(size_of(&f, "-journal"), ==, -1);
        sqlite_engine.disconnect(f.pool, reader);
        leave_hot_journal(&f);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "UPDATE album SET title = 'new' WHERE title = 'first'"), ==, 1);
        commit(&f);
        tear_down(&f);
}

/* A worker that may not write leaves it alone. */
static void test_hot_journal_of_owner(void) {
        EngineConnection *reader;
        Setup setup = to_write;
        Fixture f;

        setup.writes = false;
        set_up(&f, "delete", &setup);
        leave_hot_journal(&f);
        g_assert_false(sqlite_engine.connect(f.pool, "", 0, NULL, &reader, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_NEEDS_RECOVERY);
        g_assert_cmpint(size_of(&f, "-journal"), >, 0);
        tear_down(&f);
}

static void test_not_owned(void) {
        Fixture f;

        if (geteuid() != 0) {
                g_test_skip("only root can give files to another user");
                return;
        }
        set_up(&f, "wal", &to_write);
        for (unsigned n = 0; n < 2; n++) {
                const char *name = n == 0 ? f.path : f.folder;

                g_assert_cmpint(chown(name, 65534, 65534), ==, 0);
                g_assert_cmpint(begin_error(&f), ==, ERROR_READ_ONLY);
                g_assert_nonnull(strstr(f.error.message, "if its user owns the file and the folder"));
                g_assert_cmpint(chown(name, 0, 0), ==, 0);
        }
        g_assert_cmpint(size_of(&f, "-wal"), ==, -1);
        sql_error_done(&f.error);
        begin(&f);
        commit(&f);
        tear_down(&f);
}

/* Another file at the path: what the connection to the old one closes with must not touch the log of the new one. */
static void test_replaced(void) {
        g_autofree char *new_path = NULL;
        sqlite3 *other;
        Fixture f, next;

        set_up(&f, "wal", &to_write);
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO log VALUES('old')"), ==, 1);
        commit(&f);
        set_up(&next, "wal", &to_write);
        g_assert_cmpint(rename(next.path, f.path), ==, 0);
        new_path = g_strconcat(f.path, "-wal", NULL);
        g_assert_cmpint(g_unlink(new_path), ==, 0);
        other = foreign_open(&f);
        g_assert_cmpint(sqlite3_exec(other, "INSERT INTO log VALUES('new')", NULL, NULL, NULL), ==, SQLITE_OK);
        begin(&f);
        g_assert_cmpint(size_of(&f, "-wal"), >, 0);
        g_assert_cmpint(changes_of(&f, "UPDATE log SET what = 1 WHERE what = 'new'"), ==, 1);
        commit(&f);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        tear_down(&next);
        tear_down(&f);
}

int main(int argc, char **argv) {
        const Setup limits = { .heap_size_max = 64 << 20, .temp_size_max = 64 << 20 };

        g_test_init(&argc, &argv, NULL);
        install_fault();
        g_assert_cmpint(sqlite_engine.init(&limits), ==, 0);
        g_test_add_func("/worker/writes/client-counts", test_client_counts);
        g_test_add_func("/worker/writes/large-client-counts", test_large_client_counts);
        g_test_add_func("/worker/writes/table-of-counts", test_table_of_counts);
        g_test_add_func("/worker/writes/rows", test_rows);
        g_test_add_func("/worker/writes/never-allowed", test_never_allowed);
        g_test_add_func("/worker/writes/schema-not-allowed", test_schema_not_allowed);
        g_test_add_func("/worker/writes/schema-changes-later", test_schema_changes_later);
        g_test_add_func("/worker/writes/schema", test_schema);
        g_test_add_func("/worker/writes/large", test_large);
        g_test_add_func("/worker/writes/no-ops", test_no_ops);
        g_test_add_func("/worker/writes/not-no-ops", test_not_no_ops);
        g_test_add_func("/worker/writes/pragma-arguments", test_pragma_arguments);
        g_test_add_func("/worker/writes/pragmas-listed", test_pragmas_listed);
        g_test_add_func("/worker/writes/pragmas", test_pragmas);
        g_test_add_func("/worker/writes/pragmas-change-nothing", test_pragmas_change_nothing);
        g_test_add_func("/worker/writes/pragmas-of-reader", test_pragmas_of_reader);
        g_test_add_func("/worker/writes/reads", test_reads);
        g_test_add_func("/worker/writes/may-not-write", test_may_not_write);
        g_test_add_func("/worker/writes/write-tables", test_write_tables);
        g_test_add_func("/worker/writes/written-tables", test_written_tables);
        g_test_add_func("/worker/writes/undo", test_undo);
        g_test_add_func("/worker/writes/savepoints", test_savepoints);
        g_test_add_func("/worker/writes/statement-rolls-back", test_statement_rolls_back);
        g_test_add_func("/worker/writes/commit-fails", test_commit_fails);
        g_test_add_func("/worker/writes/deferral", test_deferral);
        g_test_add_func("/worker/writes/foreign-keys-rights", test_foreign_keys_rights);
        g_test_add_func("/worker/writes/foreign-keys-of-each", test_foreign_keys_of_each);
        g_test_add_func("/worker/writes/interrupt", test_interrupt);
        g_test_add_func("/worker/writes/foreign-writer", test_foreign_writer);
        g_test_add_func("/worker/writes/foreign-reader", test_foreign_reader);
        g_test_add_func("/worker/writes/schema-unseen", test_schema_unseen);
        g_test_add_func("/worker/writes/snapshot", test_snapshot);
        g_test_add_func("/worker/writes/snapshot-locks", test_snapshot_locks);
        g_test_add_func("/worker/writes/snapshot-keeps-log", test_snapshot_keeps_log);
        g_test_add_func("/worker/writes/snapshot-keeps-log-of-others", test_snapshot_keeps_log_of_others);
        g_test_add_func("/worker/writes/database-size-max", test_database_size_max);
        g_test_add_func("/worker/writes/rowids-used-up", test_rowids_used_up);
        g_test_add_func("/worker/writes/write-fails", test_write_fails);
        g_test_add_func("/worker/writes/sync-fails", test_sync_fails);
        g_test_add_func("/worker/writes/wal-size-max", test_wal_size_max);
        g_test_add_func("/worker/writes/wal-readers-overlap", test_wal_readers_overlap);
        g_test_add_func("/worker/writes/wal-reader-stays", test_wal_reader_stays);
        g_test_add_func("/worker/writes/one-file", test_one_file);
        g_test_add_func("/worker/writes/hot-journal", test_hot_journal);
        g_test_add_func("/worker/writes/hot-journal-of-owner", test_hot_journal_of_owner);
        g_test_add_func("/worker/writes/not-owned", test_not_owned);
        g_test_add_func("/worker/writes/replaced", test_replaced);
        g_test_add_func("/worker/writes/disk-full", test_disk_full);
        return g_test_run();
}
