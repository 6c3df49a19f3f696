/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite as an engine that writes: statements, rights, transactions and files. */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/core/row-sink.h"
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

static int go_on(void *userdata) {
        (void) userdata;
        return 0;
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

static void set_up(Fixture *f, const char *journal_mode, const Setup *setup) {
        g_autofree char *pragma = g_strdup_printf("PRAGMA journal_mode = %s", journal_mode);

        *f = (Fixture) { .folder = g_dir_make_tmp("sqlipc-writes-XXXXXX", NULL), .setup = *setup, .error = SQL_ERROR_INIT };
        f->path = g_build_filename(f->folder, "music.sqlite", NULL);
        foreign(f, pragma);
        foreign(f, schema);
        f->setup.path = f->path;
        g_assert_cmpint(sqlite_engine.start(&f->setup, go_on, NULL, &f->pool), ==, 0);
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
        g_assert_true(sqlite_engine.begin(f->pool, &f->writer, &f->error));
}

/* The error of begin(). */
static ErrorNumber begin_error(Fixture *f) {
        sql_error_done(&f->error);
        g_assert_false(sqlite_engine.begin(f->pool, &f->writer, &f->error));
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

/* Runs one statement in a savepoint, as the core does. */
static Result execute(Fixture *f, const char *sql) {
        EngineStatement *statement;
        Result result = {};

        sql_error_done(&f->error);
        if (!sqlite_engine.compile(f->writer, sql, strlen(sql), false, NULL, &statement, &f->error))
                return (Result) { .error = f->error.error };
        result.writes = sqlite_engine.writes(statement);
        g_assert_true(sqlite_engine.save(f->writer, &f->error));
        if (step_all(f, statement, &result.n_rows) == ENGINE_DONE)
                sqlite_engine.changes(statement, &result.n_changes, &result.last_rowid);
        result.error = f->error.error;
        sqlite_engine.reset(statement);
        if (result.error == ERROR_NONE)
                g_assert_true(sqlite_engine.keep(f->writer, &f->error));
        else
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
                g_assert_cmpint(result.last_rowid, ==, 0);
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

/* A deferred constraint fails at the commit, which takes the transaction back. */
static void test_commit_fails(void) {
        Fixture f;

        set_up(&f, "wal", &to_write);
        foreign(&f, "CREATE TABLE late(album REFERENCES album DEFERRABLE INITIALLY DEFERRED)");
        begin(&f);
        g_assert_cmpint(changes_of(&f, "INSERT INTO late VALUES(99)"), ==, 1);
        g_assert_false(sqlite_engine.commit(f.writer, &f.error));
        g_assert_cmpint(f.error.error, ==, ERROR_SQL);
        g_assert_cmpint(f.error.extended_code, ==, SQLITE_CONSTRAINT_FOREIGNKEY);
        g_assert_false(sqlite_engine.is_in_transaction(f.writer));
        end(&f);
        g_assert_cmpint(number(&f, "SELECT count(*) FROM late"), ==, 0);
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
                g_assert_cmpint(begin_error(&f), ==, ERROR_BUSY);
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

int main(int argc, char **argv) {
        const Setup limits = { .heap_size_max = 64 << 20, .temp_size_max = 64 << 20 };

        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(sqlite_engine.init(&limits), ==, 0);
        g_test_add_func("/worker/writes/rows", test_rows);
        g_test_add_func("/worker/writes/undo", test_undo);
        g_test_add_func("/worker/writes/statement-rolls-back", test_statement_rolls_back);
        g_test_add_func("/worker/writes/commit-fails", test_commit_fails);
        g_test_add_func("/worker/writes/foreign-writer", test_foreign_writer);
        g_test_add_func("/worker/writes/foreign-reader", test_foreign_reader);
        return g_test_run();
}
