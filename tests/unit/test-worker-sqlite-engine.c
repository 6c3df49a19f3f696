/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite as an engine: the tables of a statement; and a schema that changes at any moment. */
#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>

#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/rigs/engine-rows.h"

static const char schema[] =
        "CREATE TABLE album(id INTEGER PRIMARY KEY, title);"
        "CREATE TABLE track(id INTEGER PRIMARY KEY, album, name);"
        "CREATE TABLE hidden(x);"
        "CREATE VIEW pairs AS SELECT title, name FROM album JOIN track ON album.id = track.album;";

typedef struct Fixture {
        char *folder, *path;
        Setup setup;
        EnginePool *pool;
        EngineConnection *connection;
        SqlError error;
} Fixture;

static int go_on(void *userdata) {
        (void) userdata;
        return 0;
}

/* In memory if there is such a place: the tests below commit some thousand times. */
static char *make_folder(void) {
        char *folder = g_strdup("/dev/shm/sqlipc-engine-XXXXXX");

        if (g_mkdtemp(folder))
                return folder;
        g_free(folder);
        return g_dir_make_tmp("sqlipc-engine-XXXXXX", NULL);
}

static void set_up(Fixture *f, Bytes *exposed, uint32_t n_exposed) {
        sqlite3 *db;

        *f = (Fixture) { .folder = make_folder(), .error = SQL_ERROR_INIT };
        f->path = g_build_filename(f->folder, "music.sqlite", NULL);
        g_assert_cmpint(sqlite3_open(f->path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, schema, NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        f->setup = (Setup) {
                .path = f->path,
                .heap_size_max = 64 << 20,
                .temp_size_max = 64 << 20,
                .sql_size_max = 10000,
                .expression_depth_max = 100,
                .compound_selects_max = 10,
                .vdbe_ops_max = 100000,
                .variables_max = 100,
                .n_exposed = n_exposed,
                .exposed = exposed,
        };
        g_assert_cmpint(sqlite_engine.start(&f->setup, go_on, NULL, &f->pool), ==, 0);
        g_assert_true(sqlite_engine.connect(f->pool, "", 0, NULL, &f->connection, &f->error));
}

static void tear_down(Fixture *f) {
        g_autofree char *log = g_strconcat(f->path, "-wal", NULL), *index = g_strconcat(f->path, "-shm", NULL);

        sqlite_engine.disconnect(f->pool, f->connection);
        sqlite_engine.stop(f->pool);
        (void) g_unlink(log);
        (void) g_unlink(index);
        g_assert_cmpint(g_unlink(f->path), ==, 0);
        g_assert_cmpint(g_rmdir(f->folder), ==, 0);
        g_free(f->path);
        g_free(f->folder);
}

static int compare(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* The tables that `sql` reads, in alphabetical order, with a blank between them. */
static char *read_by(Fixture *f, const char *sql) {
        EngineTables read = {}, written = {};
        EngineStatement *statement;
        g_autoptr(GString) names = g_string_new(NULL);

        g_assert_true(sqlite_engine.compile(f->connection, sql, strlen(sql), false, NULL, &statement, &f->error));
        g_assert_true(sqlite_engine.tables(statement, &read, &written, &f->error));
        g_assert_cmpuint(written.n, ==, 0);
        if (read.n > 0)
                qsort(read.names, read.n, sizeof *read.names, compare);
        for (size_t i = 0; i < read.n; i++)
                g_string_append_printf(names, "%s%s", i > 0 ? " " : "", read.names[i]);
        engine_tables_done(&read);
        engine_tables_done(&written);
        sqlite_engine.release(statement);
        return g_string_free(g_steal_pointer(&names), FALSE);
}

static void expect(Fixture *f, const char *sql, const char *tables) {
        g_autofree char *got = read_by(f, sql);

        g_assert_cmpstr(got, ==, tables);
}

static void test_tables(void) {
        Fixture f;

        set_up(&f, NULL, 0);
        expect(&f, "SELECT 1", "");
        expect(&f, "SELECT count(*) FROM album", "album");
        expect(&f, "SELECT name FROM track WHERE album IN (SELECT id FROM album) AND name IN (SELECT name FROM track)",
               "album track");
        expect(&f, "WITH c AS (SELECT * FROM hidden) SELECT * FROM c", "hidden");
        expect(&f, "SELECT * FROM pairs", "album pairs track");
        tear_down(&f);
}

/* The tables below an exposed view stay hidden. */
static void test_exposed_tables(void) {
        Bytes exposed[] = { { "pairs", 5 } };
        Fixture f;

        set_up(&f, exposed, 1);
        expect(&f, "SELECT * FROM pairs", "pairs");
        tear_down(&f);
}

/* ---- a schema that changes between any two calls of SQLite ---- */

/* SQLite compiles statements again when it has loaded a schema, also those that the worker keeps, and those that FTS and
 * R-Tree keep. The view is deeper than a client's statement may be. */
static const char modules[] =
        "CREATE TABLE plain(x);"
        "CREATE VIRTUAL TABLE notes USING fts5(body);"
        "CREATE VIRTUAL TABLE old USING fts4(body);"
        "CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);"
        "CREATE VIEW found AS SELECT x FROM plain;"
        "CREATE VIEW deep AS SELECT 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1 AS x;"
        "INSERT INTO plain VALUES(1);"
        "INSERT INTO notes VALUES('one');"
        "INSERT INTO old VALUES('one');"
        "INSERT INTO boxes VALUES(1, 0, 1);";

/* The program beside the worker that changes the schema. */
static struct {
        sqlite3 *db;
        unsigned n_calls, from, until; /* it changes the schema before these of the worker's calls */
        bool busy;
        unsigned n_changes;
} foreign;

static void before_call(void) {
        if (!foreign.db || foreign.busy)
                return;
        foreign.n_calls++;
        if (foreign.n_calls < foreign.from || foreign.n_calls >= foreign.until)
                return;
        foreign.busy = true;
        /* a lock of the worker may keep it from doing so */
        foreign.n_changes += sqlite3_exec(foreign.db, "DROP TABLE IF EXISTS changed; CREATE TABLE changed(x)", NULL, NULL,
                                          NULL) == SQLITE_OK;
        foreign.busy = false;
}

int __real_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **ret, const char **tail);
int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **ret, const char **tail);
int __real_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int size, unsigned flags, sqlite3_stmt **ret, const char **tail);
int __wrap_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int size, unsigned flags, sqlite3_stmt **ret, const char **tail);
int __real_sqlite3_step(sqlite3_stmt *stmt);
int __wrap_sqlite3_step(sqlite3_stmt *stmt);
int __real_sqlite3_reset(sqlite3_stmt *stmt);
int __wrap_sqlite3_reset(sqlite3_stmt *stmt);
int __real_sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *data, char **error);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *data, char **error);

int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **ret, const char **tail) {
        before_call();
        return __real_sqlite3_prepare_v2(db, sql, size, ret, tail);
}

int __wrap_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int size, unsigned flags, sqlite3_stmt **ret,
                              const char **tail) {
        before_call();
        return __real_sqlite3_prepare_v3(db, sql, size, flags, ret, tail);
}

int __wrap_sqlite3_step(sqlite3_stmt *stmt) {
        before_call();
        return __real_sqlite3_step(stmt);
}

int __wrap_sqlite3_reset(sqlite3_stmt *stmt) {
        before_call();
        return __real_sqlite3_reset(stmt);
}

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *data, char **error) {
        before_call();
        return __real_sqlite3_exec(db, sql, row, data, error);
}

static void run_foreign(const char *sql) {
        foreign.busy = true;
        g_assert_cmpint(sqlite3_exec(foreign.db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
        foreign.busy = false;
}

/* ---- what the worker does meanwhile ---- */

/* Compiles and runs it. `rows`: as engine_rows_read() writes them. False: with f->error. */
static bool run(Fixture *f, EngineConnection *c, const char *sql, const char *rows) {
        static const JobSpec no_parameters = {};
        g_autofree char *got = NULL;
        EngineStatement *statement;

        if (!sqlite_engine.compile(c, sql, strlen(sql), false, NULL, &statement, &f->error))
                return false;
        g_assert_true(sqlite_engine.bind(statement, &no_parameters, &f->error));
        got = engine_rows_read(&sqlite_engine, statement, &f->error);
        sqlite_engine.release(statement);
        if (got)
                g_assert_cmpstr(got, ==, rows);
        return got != NULL;
}

static bool read_all(Fixture *f, EngineConnection *c) {
        return run(f, c, "SELECT body FROM notes WHERE notes MATCH 'one'", "t:one") &&
                run(f, c, "SELECT x FROM plain", "i:1") && run(f, c, "SELECT id FROM boxes WHERE x0 < 5", "i:1") &&
                run(f, c, "SELECT body FROM old WHERE old MATCH 'one'", "t:one");
}

static bool do_read(Fixture *f) {
        EngineConnection *c;
        bool ok;

        if (!sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error))
                return false;
        ok = read_all(f, c);
        sqlite_engine.disconnect(f->pool, c);
        return ok;
}

/* A transaction that reads. */
static bool do_snapshot(Fixture *f) {
        EngineConnection *c;
        bool ok;

        if (!sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error))
                return false;
        ok = sqlite_engine.snapshot(c, &f->error) && read_all(f, c);
        sqlite_engine.disconnect(f->pool, c);
        return ok;
}

/* The commands of the transaction are kept while the connection serves another statement. */
static bool do_both(Fixture *f) {
        return do_snapshot(f) && do_read(f) && do_snapshot(f);
}

static bool do_read_exposed(Fixture *f) {
        EngineConnection *c;
        bool ok;

        if (!sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error))
                return false;
        ok = sqlite_engine.snapshot(c, &f->error) && run(f, c, "SELECT body FROM notes", "t:one") &&
                run(f, c, "SELECT x FROM plain", "i:1") &&
                run(f, c, "SELECT found.x, notes.body FROM found, notes", "i:1|t:one") &&
                run(f, c, "SELECT id FROM boxes WHERE x0 < 5", "i:1");
        sqlite_engine.disconnect(f->pool, c);
        return ok;
}

static bool watch(Fixture *f, const char *sql) {
        EngineWatched watched;
        EngineConnection *c;
        bool ok;

        if (!sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error))
                return false;
        ok = sqlite_engine.watched(c, sql, strlen(sql), false, &watched, &f->error);
        sqlite_engine.disconnect(f->pool, c);
        if (ok) {
                engine_tables_done(&watched.tables);
                engine_tables_done(&watched.names);
        }
        return ok;
}

static bool do_watch(Fixture *f) {
        return watch(f, "SELECT * FROM notes, plain");
}

static bool do_watch_exposed(Fixture *f) {
        return watch(f, "SELECT * FROM found, notes");
}

static bool do_observe(Fixture *f) {
        Observed observed;

        run_foreign("UPDATE plain SET x = x + 1"); /* SQLite is asked only if there is something new */
        sqlite_engine.observe(f->pool, -1, &observed);
        return observed.state.kind != FILE_STATE_UNKNOWN || sql_error_set(&f->error, ERROR_BUSY, "nothing was seen");
}

/* A statement that writes is compiled on a connection that reads first. */
static bool do_compile(Fixture *f) {
        static const char *const sql[] = { "INSERT INTO boxes VALUES(3, 1, 2)", "INSERT INTO notes VALUES('x')",
                                           "INSERT INTO old VALUES('x')" };
        EngineStatement *statement;
        EngineConnection *c;
        bool ok = true;

        if (!sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error))
                return false;
        for (size_t i = 0; ok && i < G_N_ELEMENTS(sql); i++) {
                ok = sqlite_engine.compile(c, sql[i], strlen(sql[i]), false, NULL, &statement, &f->error);
                if (ok)
                        sqlite_engine.release(statement);
        }
        sqlite_engine.disconnect(f->pool, c);
        return ok;
}

static bool change(Fixture *f, EngineConnection *c, const char *sql, bool keep) {
        bool ok = sqlite_engine.save(c, &f->error) && run(f, c, sql, "");

        if (!ok || !keep)
                sqlite_engine.undo(c);
        return ok && (!keep || sqlite_engine.keep(c, &f->error));
}

static bool do_write(Fixture *f) {
        EngineConnection *c;
        bool ok;

        if (!sqlite_engine.begin(f->pool, true, &c, &f->error))
                return false;
        ok = change(f, c, "INSERT INTO notes VALUES('two')", true) && change(f, c, "INSERT INTO old VALUES('two')", true) &&
                change(f, c, "UPDATE plain SET x = 5", false) && change(f, c, "INSERT INTO boxes VALUES(2, 8, 9)", true) &&
                change(f, c, "INSERT INTO notes(notes) VALUES('integrity-check')", true) && read_all(f, c) &&
                change(f, c, "DELETE FROM notes WHERE notes MATCH 'two'", true) &&
                change(f, c, "DELETE FROM old WHERE old MATCH 'two'", true) &&
                change(f, c, "DELETE FROM boxes WHERE id = 2", true) && sqlite_engine.commit(c, &f->error);
        sqlite_engine.disconnect(f->pool, c);
        return ok;
}

static bool on_committing(void *userdata) {
        (void) userdata;
        return true;
}

/* It is compiled on a connection that reads first, as do_compile() does. */
static bool do_vacuum(Fixture *f) {
        EngineStatement *statement;
        EngineConnection *c;
        bool ok;

        if (!sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error))
                return false;
        sqlite_engine.set_client(c, FOREIGN_KEYS_CONFIGURED, false, false);
        ok = sqlite_engine.compile(c, "VACUUM", strlen("VACUUM"), false, NULL, &statement, &f->error);
        if (ok) {
                g_assert_true(sqlite_engine.runs_alone(statement));
                sqlite_engine.release(statement);
        }
        sqlite_engine.disconnect(f->pool, c);
        if (!ok || !sqlite_engine.begin(f->pool, true, &c, &f->error))
                return false;
        ok = sqlite_engine.leave_transaction(c, on_committing, NULL, &f->error) && run(f, c, "VACUUM", "") &&
                sqlite_engine.commit(c, &f->error);
        sqlite_engine.disconnect(f->pool, c);
        return ok;
}

/* A statement that must fail, on a connection that reads or that writes. */
static const char *attack;

static bool do_attack(Fixture *f) {
        g_autofree char *rows = NULL;
        EngineStatement *statement;
        EngineConnection *c;
        bool begun = f->setup.writes;

        if (!(begun ? sqlite_engine.begin(f->pool, true, &c, &f->error)
                    : sqlite_engine.connect(f->pool, "", 0, NULL, &c, &f->error)))
                return false;
        if (sqlite_engine.compile(c, attack, strlen(attack), false, NULL, &statement, &f->error)) {
                rows = engine_rows_read(&sqlite_engine, statement, &f->error);
                sqlite_engine.release(statement);
        }
        g_assert_null(rows);
        g_assert_cmpint(f->error.error, !=, ERROR_NONE);
        if (f->error.error != ERROR_BUSY)
                sql_error_done(&f->error);
        sqlite_engine.disconnect(f->pool, c);
        return f->error.error == ERROR_NONE;
}

typedef bool (*Work)(Fixture *f);

/* Does the work on connections of its own, or on those of work before it, while the schema changes before the worker's calls
 * `from` to `until` - 1. Returns the number of calls. */
static unsigned work_beside_changes(Fixture *f, Work work, bool again, unsigned from, unsigned until) {
        unsigned n;
        bool ok;

        g_assert_cmpint(sqlite_engine.start(&f->setup, go_on, NULL, &f->pool), ==, 0);
        foreign.from = foreign.until = 0;
        if (again)
                g_assert_true(work(f));
        foreign.n_calls = 0;
        foreign.from = from;
        foreign.until = until;
        ok = work(f);
        n = foreign.n_calls;
        foreign.from = foreign.until = 0;
        if (!ok && f->error.error != ERROR_BUSY)
                g_error("changes before calls %u to %u: error %d: %s", from, until, (int) f->error.error, f->error.message);
        sql_error_done(&f->error);
        if (!work(f))
                g_error("after changes before calls %u to %u: %s", from, until, f->error.message);
        sqlite_engine.stop(f->pool);
        return n;
}

static void try_all_moments(Fixture *f, Work work) {
        for (unsigned again = 0; again < 2; again++) {
                unsigned n = work_beside_changes(f, work, again, UINT_MAX, UINT_MAX);

                g_assert_cmpuint(n, >, 0);
                foreign.n_changes = 0;
                for (unsigned i = 1; i <= n; i++) {
                        (void) work_beside_changes(f, work, again, i, i + 1);
                        if (again) /* statements that are kept */
                                (void) work_beside_changes(f, work, again, i, i + 8);
                }
                (void) work_beside_changes(f, work, again, 1, UINT_MAX);
                g_assert_cmpuint(foreign.n_changes, >, 0);
        }
}

static void beside_changes(const char *mode, bool writes, Bytes *exposed, uint32_t n_exposed, const Work *works) {
        static Bytes write_tables[] = { { "notes", 5 }, { "old", 3 }, { "boxes", 5 }, { "plain", 5 } };
        Fixture f;

        set_up(&f, NULL, 0);
        sqlite_engine.disconnect(f.pool, f.connection);
        sqlite_engine.stop(f.pool);
        f.setup.exposed = exposed;
        f.setup.n_exposed = n_exposed;
        f.setup.expression_depth_max = 20;
        f.setup.writes = writes;
        f.setup.write_schema = *works == do_vacuum;
        f.setup.n_write_tables = writes ? G_N_ELEMENTS(write_tables) : 0;
        f.setup.write_tables = write_tables;
        f.setup.database_size_max = UINT64_MAX;
        f.setup.wal_size_max = UINT64_MAX;
        g_assert_cmpint(sqlite3_open_v2(f.path, &foreign.db, SQLITE_OPEN_READWRITE, NULL), ==, SQLITE_OK);
        run_foreign(mode);
        run_foreign("PRAGMA synchronous = OFF");
        run_foreign(modules);
        for (; *works; works++)
                try_all_moments(&f, *works);
        g_assert_cmpint(sqlite3_close(foreign.db), ==, SQLITE_OK);
        foreign.db = NULL;
        g_assert_cmpint(sqlite_engine.start(&f.setup, go_on, NULL, &f.pool), ==, 0);
        g_assert_true(sqlite_engine.connect(f.pool, "", 0, NULL, &f.connection, &f.error));
        tear_down(&f);
}

#define WAL "PRAGMA journal_mode = WAL"
#define ROLLBACK "PRAGMA journal_mode = DELETE"

static void test_changes_beside_readers(void) {
        static const Work works[] = { do_both, do_watch, NULL };

        beside_changes(WAL, false, NULL, 0, works);
        beside_changes(ROLLBACK, false, NULL, 0, works);
}

/* With a rollback journal the observer reads the file without SQLite. */
static void test_changes_beside_observer(void) {
        static const Work works[] = { do_observe, NULL };

        beside_changes(WAL, false, NULL, 0, works);
}

/* The connections that read, of a user who may write. */
static void test_changes_beside_writers(void) {
        static const Work works[] = { do_compile, do_write, do_both, NULL };

        beside_changes(WAL, true, NULL, 0, works);
        beside_changes(ROLLBACK, true, NULL, 0, works);
}

static void test_changes_beside_vacuum(void) {
        static const Work works[] = { do_vacuum, do_write, do_both, NULL };

        beside_changes(WAL, true, NULL, 0, works);
        beside_changes(ROLLBACK, true, NULL, 0, works);
}

static void test_changes_beside_exposed(void) {
        static Bytes exposed[] = { { "found", 5 }, { "notes", 5 }, { "plain", 5 }, { "boxes", 5 } };
        static const Work works[] = { do_read_exposed, do_watch_exposed, NULL };

        beside_changes(WAL, false, exposed, G_N_ELEMENTS(exposed), works);
        beside_changes(ROLLBACK, false, exposed, G_N_ELEMENTS(exposed), works);
}

/* However often SQLite compiles, a client's statement is never taken for one of the worker or of a module. */
static void test_changes_beside_attacks(void) {
        static const char *const attacks[] = {
                "BEGIN",
                "SAVEPOINT a",
                "ATTACH ':memory:' AS a",
                "ATTACH '' AS vacuum_db",
                "VACUUM",
                "VACUUM INTO 'x'",
                "PRAGMA incremental_vacuum",
                "SELECT * FROM pragma_optimize",
                "CREATE TABLE IF NOT EXISTS plainer(x)",
                "DROP TABLE IF EXISTS plain",
                "SELECT optimize(old) FROM old",
                "INSERT INTO notes_data VALUES(9, 'x')",
                "UPDATE boxes_node SET data = x'00'",
                "CREATE TABLE temp.t(x)",
                "DROP TABLE plain",
                "INSERT INTO track(name) VALUES('x')",
        };
        static const Work works[] = { do_attack, NULL };

        for (size_t i = 0; i < G_N_ELEMENTS(attacks); i++) {
                attack = attacks[i];
                beside_changes(WAL, false, NULL, 0, works);
                beside_changes(WAL, true, NULL, 0, works);
        }
}

int main(int argc, char **argv) {
        const Setup limits = { .heap_size_max = 64 << 20, .temp_size_max = 64 << 20 };

        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(sqlite_engine.init(&limits), ==, 0);
        g_test_add_func("/worker/sqlite-engine/tables", test_tables);
        g_test_add_func("/worker/sqlite-engine/exposed-tables", test_exposed_tables);
        g_test_add_func("/worker/sqlite-engine/changes-beside-readers", test_changes_beside_readers);
        g_test_add_func("/worker/sqlite-engine/changes-beside-observer", test_changes_beside_observer);
        g_test_add_func("/worker/sqlite-engine/changes-beside-writers", test_changes_beside_writers);
        g_test_add_func("/worker/sqlite-engine/changes-beside-vacuum", test_changes_beside_vacuum);
        g_test_add_func("/worker/sqlite-engine/changes-beside-exposed", test_changes_beside_exposed);
        g_test_add_func("/worker/sqlite-engine/changes-beside-attacks", test_changes_beside_attacks);
        return g_test_run();
}
