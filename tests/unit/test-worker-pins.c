/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/transaction: pins, and the transactions and statements on them, with the engine of SQLite. Time is the
 * test's (tests/rigs/writing-rig.h).
 */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <unistd.h>

#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/rigs/writing-rig.h"

#define MSEC UINT64_C(1000)
#define SEC (1000 * MSEC)
#define LONG (60 * SEC)

#define SLOW "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c, temp.t"

static char *folder, *path;

/* ---- the engine: time passes while a statement computes ---- */

static EngineProgress progress;
static unsigned n_progress;

static int on_progress(void *userdata) {
        g_assert_cmpuint(++n_progress, <, 10000);
        writing.clock_usec += MSEC;
        return progress(userdata);
}

static int start(const Setup *setup, EngineProgress p, void *userdata, EnginePool **ret) {
        progress = p;
        return sqlite_engine.start(setup, on_progress, userdata, ret);
}

/* ---- SQLite without memory ---- */

static const char *without_memory; /* the next statement that begins like this fails; NULL: none does */

int __real_sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *data, char **error);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *data, char **error);

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *data, char **error) {
        if (!without_memory || !g_str_has_prefix(sql, without_memory))
                return __real_sqlite3_exec(db, sql, row, data, error);
        without_memory = NULL;
        return SQLITE_NOMEM;
}

/* ---- life of a test ---- */

static void begin(const char *journal_mode, bool writes) {
        g_autofree char *sql = g_strdup_printf("PRAGMA journal_mode = %s; CREATE TABLE note(n); CREATE TABLE single(n)",
                                               journal_mode);
        static Engine engine;
        Setup setup = wide;

        folder = g_dir_make_tmp("sqlipc-pins-XXXXXX", NULL);
        path = g_build_filename(folder, "notes.sqlite", NULL);
        exec_sql(path, sql);
        setup.path = path;
        setup.database_size_max = UINT64_MAX;
        setup.writes = setup.write_schema = writes;
        engine = sqlite_engine;
        engine.start = start;
        n_progress = 0;
        writing_begin_on(&engine, &setup);
}

static void end(void) {
        static const char *const files[] = { "notes.sqlite", "notes.sqlite-wal", "notes.sqlite-shm" };

        writing_end();
        for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
                g_autofree char *file = g_build_filename(folder, files[i], NULL);

                (void) g_unlink(file);
        }
        g_assert_cmpint(g_rmdir(folder), ==, 0);
        g_free(path);
        g_free(folder);
}

/* The worker with a pin, whose number is 1. */
static void begin_pinned(const char *journal_mode, bool writes) {
        begin(journal_mode, writes);
        writing.pin = writing_open_pin(0);
        writing_expect("started 1; ");
}

static int64_t count(const char *table) {
        g_autofree char *sql = g_strdup_printf("SELECT count(*) FROM %s", table);
        sqlite3_stmt *stmt;
        sqlite3 *db;
        int64_t n;

        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        n = sqlite3_column_int64(stmt, 0);
        (void) sqlite3_finalize(stmt);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        return n;
}

/* ---- the end of a pin ---- */

/* A transaction that writes, of another client: it has the turn to write. The worker gets the lease if it wants that. */
static uint64_t begin_other(const char *expected) {
        uint64_t pin = writing.pin, other;

        writing.pin = 0;
        other = writing_open(true, LONG);
        writing.pin = pin;
        writing_settle();
        if (g_str_has_prefix(expected, "wanted"))
                writing_say(MESSAGE_LEASE);
        writing_expect(expected);
        return other;
}

/* Another client's new pin may have the memory of the one that has ended. */
static void test_transaction_that_waits(void) {
        uint64_t other, t, pin;

        begin_pinned("wal", true);
        other = begin_other("wanted; started 2 to write; ");
        t = writing_open(true, LONG);
        writing_expect("");
        writing_cancel(writing.pin);
        writing_expect("ended 3 error 45; ended 1 error 30; ");
        pin = writing_open_pin(0);
        writing_expect("started 4; ");
        writing_commit(other);
        writing_expect("committing 2; ended 2 wrote 0 0; ");
        writing.transaction = t;
        (void) writing_execute("CREATE TEMP TABLE t(a)");
        writing_expect("ended 5 error 40; ");
        writing.transaction = 0;
        writing.pin = pin;
        (void) writing_execute("SELECT * FROM temp.t");
        writing_expect("ended 6 error 11; ");
        end();
}

static void cancel_pin(void) {
        writing_cancel(writing.pin);
}

/* A statement that computes: of the pin, and of transactions that read and that write. It is interrupted at once, and the
 * pin ends. Otherwise the supervisor would kill the worker, with the pins of others. */
static void test_statement_that_computes(void) {
        for (unsigned mode = 0; mode < 4; mode++) {
                const char *expected;
                uint64_t t = 0;
                int fd;

                begin_pinned("wal", true);
                (void) writing_execute("CREATE TEMP TABLE t(a)");
                (void) writing_execute("INSERT INTO t VALUES(1)");
                if (mode > 0)
                        t = mode == 1 ? writing_open_deferred(LONG) : writing_open(mode == 2, LONG);
                writing_settle();
                if (mode == 2)
                        writing_say(MESSAGE_LEASE);
                writing_settle();
                g_free(writing_reports());
                writing.transaction = t;
                (void) writing_run(SLOW, &fd);
                writing.later = cancel_pin;
                writing.later_usec = writing.clock_usec + 100 * MSEC;
                expected = t > 0 ? "started 5; ended 5 error 40; ended 4 error 40; ended 1 error 30; "
                                 : "started 4; ended 4 error 45; ended 1 error 30; ";
                writing_expect(expected);
                close(fd);
                writing.transaction = 0;
                end();
        }
}

/* A statement and a load of the pin have transactions of which their client knows nothing. */
static void test_own_transactions(void) {
        int fd, pipe_fd;

        begin_pinned("wal", true);
        (void) begin_other("wanted; started 2 to write; ");
        (void) writing_execute("INSERT INTO note VALUES(1)");
        writing_expect("");
        writing_cancel(writing.pin);
        writing_expect("ended 3 error 45; ended 1 error 30; ");
        writing.pin = writing_open_pin(0);
        writing_expect("started 4; ");
        (void) writing_execute("CREATE TEMP TABLE t(a)");
        writing_expect("ended 5 wrote 0 0; ");
        (void) writing_load("INSERT INTO t VALUES(?)", &pipe_fd);
        writing_expect("started 6 to write; ");
        writing_cancel(writing.pin);
        writing_expect("ended 6 error 45; ended 4 error 30; ");
        close(pipe_fd);
        writing.pin = writing_open_pin(0);
        writing_expect("started 7; ");
        (void) writing_execute("CREATE TEMP TABLE t AS SELECT 1");
        writing_expect("ended 8 wrote 0 0; ");
        (void) writing_run("INSERT INTO temp.t " SLOW, &fd);
        writing.later = cancel_pin;
        writing.later_usec = writing.clock_usec + 100 * MSEC;
        writing_expect("started 9 to write; ended 7 error 30; ended 9 error 45; ");
        close(fd);
        g_assert_cmpint(count("note"), ==, 0);
        end();
}

/* ---- turns ---- */

/* Two transactions that are asked for at once: the second is refused, though the first has not begun. */
static void test_one_transaction(void) {
        uint64_t t;

        begin_pinned("wal", true);
        (void) writing_execute("INSERT INTO note VALUES(1)");
        t = writing_open(true, LONG);
        (void) writing_open(false, LONG);
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("ended 4 error 27; wanted; committing 2; ended 2 wrote 1 1; started 3 to write; ");
        writing_cancel(t);
        writing_expect("ended 3 error 30; ");
        (void) writing_open(false, LONG);
        writing_expect("started 5; ");
        end();
}

/* A statement of the pin that came before a transaction waits for its turn to write, and one that comes after it: none waits
 * for another that waits for it. */
static void test_turns(void) {
        uint64_t t;

        begin_pinned("wal", true);
        (void) begin_other("wanted; started 2 to write; ");
        (void) writing_execute("INSERT INTO note VALUES(1)");
        t = writing_open(true, LONG);
        writing_expect("");
        writing_commit(2);
        writing_expect("committing 2; ended 2 wrote 0 0; committing 3; ended 3 wrote 1 1; started 4 to write; ");
        writing_commit(t);
        writing_expect("committing 4; ended 4 wrote 0 0; ");
        (void) begin_other("started 5 to write; ");
        t = writing_open(true, LONG);
        writing_expect("");
        (void) writing_execute("INSERT INTO note VALUES(2)");
        writing_expect("");
        writing_commit(5);
        writing_expect("committing 5; ended 5 wrote 0 0; started 6 to write; ");
        writing_commit(t);
        writing_expect("committing 6; ended 6 wrote 0 0; committing 7; ended 7 wrote 1 2; ");
        g_assert_cmpint(count("note"), ==, 2);
        (void) begin_other("started 8 to write; ");
        (void) writing_open(true, LONG); /* the worker ends while it waits */
        writing_expect("");
        end();
}

/* ---- the beginning to write ---- */

/* The engine makes a savepoint for that. If it cannot, one of the client with the same name stays as it is. */
static void test_savepoint_of_the_engine(void) {
        begin_pinned("wal", true);
        (void) writing_execute("CREATE TEMP TABLE t(a)");
        writing_expect("ended 2 wrote 0 0; ");
        writing.transaction = writing_open_deferred(LONG);
        writing_expect("started 3 to write; ");
        (void) writing_execute("SAVEPOINT lock");
        (void) writing_execute("INSERT INTO t VALUES(1)");
        writing_expect("ended 4 wrote 0 0; ended 5 wrote 1 1; ");
        (void) writing_execute("INSERT INTO note VALUES(1)");
        without_memory = "SAVEPOINT lock";
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; ended 6 error 25; ");
        g_assert_null(without_memory);
        (void) writing_execute("INSERT INTO note SELECT a FROM t");
        (void) writing_execute("RELEASE lock");
        writing_expect("ended 7 wrote 1 1; ended 8 wrote 0 0; ");
        writing_commit(3);
        writing_expect("committing 3; ended 3 wrote 0 0; ");
        g_assert_cmpint(count("note"), ==, 1);
        end();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(sqlite_engine.init(&wide), ==, 0);
        g_test_add_func("/worker/pins/transaction-that-waits", test_transaction_that_waits);
        g_test_add_func("/worker/pins/statement-that-computes", test_statement_that_computes);
        g_test_add_func("/worker/pins/own-transactions", test_own_transactions);
        g_test_add_func("/worker/pins/one-transaction", test_one_transaction);
        g_test_add_func("/worker/pins/turns", test_turns);
        g_test_add_func("/worker/pins/savepoint-of-the-engine", test_savepoint_of_the_engine);
        return g_test_run();
}
