/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/sqlite/attached and daemon/worker/core/transaction: ATTACH on a pin, with the engine of SQLite. Time is the
 * test's, which is the supervisor, too (tests/rigs/writing-rig.h).
 */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <unistd.h>

#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/rigs/writing-rig.h"

#define SEC UINT64_C(1000000)
#define LONG (60 * SEC)

static char *folder, *path, *far;

/* ---- life of a test ---- */

static void remove_files(void) {
        GDir *dir = g_dir_open(folder, 0, NULL);
        const char *name;

        while ((name = g_dir_read_name(dir))) {
                g_autofree char *file = g_build_filename(folder, name, NULL);

                g_assert_cmpint(g_unlink(file), ==, 0);
        }
        g_dir_close(dir);
        g_assert_cmpint(g_rmdir(folder), ==, 0);
}

static void make_far(const char *journal_mode) {
        g_autofree char *sql = g_strdup_printf("PRAGMA journal_mode = %s; CREATE TABLE f(n); INSERT INTO f VALUES(1), (2)",
                                               journal_mode);

        exec_sql(far, sql);
}

/* A worker with a pin, whose number is 1. */
static void begin(const char *journal_mode, bool writes) {
        g_autofree char *sql = g_strdup_printf("PRAGMA journal_mode = %s; CREATE TABLE note(n)", journal_mode);
        Setup setup = wide;

        folder = g_dir_make_tmp("sqlipc-attach-XXXXXX", NULL);
        path = g_build_filename(folder, "notes.sqlite", NULL);
        far = g_build_filename(folder, "far.sqlite", NULL);
        exec_sql(path, sql);
        make_far(journal_mode);
        setup.path = path;
        setup.database_size_max = UINT64_MAX;
        setup.writes = setup.write_schema = writes;
        writing_begin_on(&sqlite_engine, &setup);
        writing.pin = writing_open_pin(0);
        writing_expect("started 1; ");
}

static void end(void) {
        writing_end();
        remove_files();
        g_clear_pointer(&folder, g_free);
        g_clear_pointer(&path, g_free);
        g_clear_pointer(&far, g_free);
}

/* ---- statements ---- */

/* Executes SQL that attaches or detaches; the answer comes when the worker has asked. */
static void attach(const char *sql, const char *name, const char *file, const char *expected) {
        g_autofree char *asks = g_strdup_printf("asks 1 for %s; ", name);

        (void) writing_execute(sql);
        writing_expect(asks);
        writing_attach(1, name, file);
        writing_expect(expected);
}

/* Runs a statement on the pin to its end. Returns how many rows it has; -1: it has failed, with this error and sentence. */
static int run_to_end(const char *sql, ErrorNumber *ret_error, char **ret_sentence) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        bool has_ended = false, has_started = false;
        uint64_t number;
        Outcome o = {};
        int fd;

        number = writing_run(sql, &fd);
        writing_settle();
        while (message_receive(writing.rig.control_fd, &m) > 0) {
                bool is_end = m.message.kind == MESSAGE_ENDED && m.message.ended.number == number;

                has_started |= m.message.kind == MESSAGE_STARTED;
                if (is_end && m.message.ended.failure.error != ERROR_NONE) {
                        *ret_error = (ErrorNumber) m.message.ended.failure.error;
                        *ret_sentence = g_strdup(m.message.ended.failure.message);
                }
                has_ended |= is_end;
                received_message_done(&m);
        }
        if (!has_ended)
                g_error("%s has not ended", sql);
        if (has_started)
                o = writing_read(fd, number);
        else
                close(fd);
        return *ret_sentence ? -1 : (int) o.n_rows;
}

static void check_rows(const char *sql, int expected) {
        g_autofree char *sentence = NULL;
        ErrorNumber error = ERROR_NONE;
        int n = run_to_end(sql, &error, &sentence);

        if (n != expected)
                g_error("%s: %i rows, not %i: %s", sql, n, expected, sentence ?: "");
}

static void check_fails(const char *sql, ErrorNumber expected, const char *pattern) {
        g_autofree char *sentence = NULL;
        ErrorNumber error = ERROR_NONE;

        if (run_to_end(sql, &error, &sentence) >= 0 || error != expected || !g_pattern_match_simple(pattern, sentence))
                g_error("%s: error %u: %s", sql, error, sentence ?: "");
}

/* ---- tests ---- */

/* One query joins tables of both. The name is any expression of SQL. */
static void test_join(void) {
        begin("wal", true);
        attach("ATTACH 'far' AS x", "far", far, "ended 2; ");
        check_rows("SELECT * FROM x.f", 2);
        check_rows("SELECT 1 FROM f JOIN x.f AS g ON f.n = g.n", 2);
        (void) writing_execute("INSERT INTO note SELECT n FROM x.f");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; committing 5; ended 5 wrote 2 2; ");
        check_rows("SELECT 1 FROM note JOIN x.f USING(n)", 2);
        (void) writing_execute("DETACH x");
        writing_expect("ended 7; ");
        check_fails("SELECT * FROM x.f", ERROR_SQL, "no such table: x.f");
        attach("ATTACH substr('a far', 3) AS \"x y\"", "far", far, "ended 9; ");
        check_rows("SELECT * FROM \"x y\".f", 2);
        check_fails("SELECT file FROM pragma_database_list", ERROR_NOT_ALLOWED, "*as a function*");
        check_rows("PRAGMA database_list", 2);
        end();
}

static void begin_attached(const char *journal_mode, bool writes) {
        begin(journal_mode, writes);
        attach("ATTACH 'far' AS x", "far", far, "ended 2; ");
}

/* By SQLite itself, by the supervisor, and by attached.c. */
static void test_refusals(void) {
        g_autofree char *long_name = g_strnfill(300, 'n'), *of_long = g_strdup_printf("ATTACH '%s' AS y", long_name);

        begin("wal", true);
        attach("ATTACH 'gone' AS x", "gone", NULL, "ended 2 error 1; ");
        attach("ATTACH 'far' AS x", "far", "/nowhere/at/all", "ended 3 error 18; ");
        attach("ATTACH 'far' AS x", "far", far, "ended 4; ");
        check_fails("ATTACH 'far' AS x", ERROR_SQL, "database x is already in use");
        check_fails("DETACH gone", ERROR_SQL, "no such database: gone");
        check_fails("DETACH main", ERROR_SQL, "cannot detach database main");
        check_fails("ATTACH '' AS y", ERROR_NOT_ALLOWED, "ATTACH of a new database*");
        check_fails("ATTACH ':memory:' AS y", ERROR_NOT_ALLOWED, "ATTACH of a new database*");
        check_fails(of_long, ERROR_UNKNOWN_DATABASE, "*");
        check_rows("PRAGMA database_list", 2);
        (void) writing_execute_batch("INSERT INTO note VALUES(1); ATTACH 'far' AS y");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; ended 12 error 16; ");
        end();
}

/* Neither a path nor a name of SQLite's own, as file-names.h makes them, opens a file. */
static void test_names(void) {
        static const char *const names[] = { "/sqlipc-database:1", "file:far?mode=rw", "file:/etc/passwd?vfs=unix", "/far" };
        uint64_t number;

        begin("wal", true);
        for (size_t i = 0; i <= G_N_ELEMENTS(names); i++) {
                const char *name = i < G_N_ELEMENTS(names) ? names[i] : far;
                g_autofree char *sql = g_strdup_printf("ATTACH '%s' AS x", name);
                g_autofree char *asks = g_strdup_printf("asks 1 for %s; ", name), *ended = NULL;

                number = writing_execute(sql);
                writing_expect(asks);
                writing_attach(1, "far", far); /* no answer to this */
                writing_settle();
                g_free(writing_reports());
                writing_attach(1, name, NULL);
                ended = g_strdup_printf("ended %u error 1; ", (unsigned) number);
                writing_expect(ended);
        }
        end();
}

/* The name is asked for again, until there is an answer or BusyTimeoutSec= has passed. */
static void test_no_answer(void) {
        g_autofree char *reports = NULL;

        begin("wal", true);
        writing.job_lock_wait_usec = 0; /* no lock is in the way */
        (void) writing_execute("ATTACH 'far' AS x");
        writing_pass(SEC);
        reports = writing_reports();
        g_assert_true(g_str_has_prefix(reports, "asks 1 for far; asks 1 for far; "));
        g_assert_null(strstr(reports, "ended"));
        writing_attach(7, "far", far); /* of no pin */
        writing_attach(2, "far", far); /* nor is this one */
        writing_pass(wide.busy_usec);
        g_free(reports);
        reports = writing_reports();
        g_assert_true(g_str_has_suffix(reports, "asks 1 for far; ended 2 error 27; "));
        (void) writing_execute("ATTACH 'far' AS x");
        writing_expect("asks 1 for far; ");
        writing_cancel(3);
        writing_expect("ended 3 error 30; ");
        writing_attach(1, "far", far);
        writing_expect("");
        end();
}

static ErrorNumber expected_of(const char *sql, bool writes) {
        if (writes)
                return ERROR_NOT_ALLOWED;
        return strstr(sql, "sqlite_schema") ? ERROR_SQL : strstr(sql, "VACUUM") ? ERROR_READ_ONLY : ERROR_NOT_ALLOWED;
}

/* A client that may write the database of the connection can only read others. */
static void test_only_reads(void) {
        static const char *const changes[] = {
                "INSERT INTO x.f VALUES(3)", "INSERT INTO f VALUES(3)", "UPDATE x.f SET n = 5", "DELETE FROM x.f",
                "REPLACE INTO x.f SELECT * FROM note", "CREATE TABLE x.t(a)", "CREATE TABLE x.t AS SELECT 1",
                "DROP TABLE x.f",
                "ALTER TABLE x.f RENAME TO g", "ALTER TABLE x.f ADD COLUMN m", "CREATE INDEX x.j ON f(n)",
                "CREATE VIEW x.v AS SELECT 1", "CREATE VIRTUAL TABLE x.s USING fts5(a)", "ANALYZE x", "REINDEX x.i",
                "CREATE TRIGGER x.r AFTER INSERT ON f BEGIN SELECT 1; END", "PRAGMA x.user_version = 5",
                "PRAGMA x.application_id = 5", "DELETE FROM x.sqlite_schema", "VACUUM x", "VACUUM x INTO 'copy'",
        };

        for (int writes = 0; writes <= 1; writes++) {
                begin("wal", writes);
                exec_sql(far, "CREATE INDEX i ON f(n)");
                attach("ATTACH 'far' AS x", "far", far, "ended 2; ");
                for (size_t i = 0; i < G_N_ELEMENTS(changes); i++)
                        check_fails(changes[i], expected_of(changes[i], writes), "*");
                check_rows("SELECT * FROM x.f", 2);
                check_rows("PRAGMA x.user_version", 1);
                check_rows("PRAGMA x.table_info(f)", 1);
                end();
        }
}

static void test_in_transactions(void) {
        begin_attached("wal", true);
        (void) writing_execute("DETACH x");
        writing_expect("ended 3; ");
        writing.transaction = writing_open(true, LONG);
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; started 4 to write; ");
        (void) writing_execute("INSERT INTO note VALUES(7)");
        writing_expect("ended 5 wrote 1 1; ");
        attach("ATTACH 'far' AS x", "far", far, "ended 6; ");
        (void) writing_execute("INSERT INTO note SELECT n FROM x.f");
        writing_expect("ended 7 wrote 2 3; ");
        check_fails("DETACH x", ERROR_SQL, "database x is locked"); /* as SQLite, which reads there now */
        writing_commit(4);
        writing_expect("committing 4; ended 4 wrote 0 0; ");
        writing.transaction = 0;
        check_rows("SELECT * FROM note", 3);
        (void) writing_execute("DETACH x");
        writing_settle();
        g_free(writing_reports());
        writing.transaction = writing_open(false, LONG);
        writing_expect("started 11; ");
        attach("ATTACH 'far' AS x", "far", far, "ended 12; ");
        check_rows("SELECT * FROM x.f", 2);
        writing_commit(11);
        writing_expect("ended 11; ");
        end();
}

/* The file of a program that writes in rollback mode. */
static void test_locks(void) {
        sqlite3 *other;

        begin("delete", true);
        writing.job_lock_wait_usec = SEC;
        g_assert_cmpint(sqlite3_open(far, &other), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        (void) writing_execute("ATTACH 'far' AS x");
        writing_expect("asks 1 for far; ");
        writing_attach(1, "far", far);
        writing_expect("");
        writing_pass(2 * SEC);
        writing_expect("ended 2 error 27; ");
        (void) writing_execute("ATTACH 'far' AS x"); /* the supervisor would have ended the pin with the right */
        writing_expect("");
        g_assert_cmpint(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        writing_pass(SEC / 2);
        writing_expect("ended 3; ");
        check_rows("SELECT * FROM x.f", 2);
        exec_sql(far, "INSERT INTO f VALUES(3); CREATE TABLE g(a, b)");
        check_rows("SELECT * FROM x.f", 3);
        check_rows("SELECT a, b FROM x.g", 0);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        end();
}

/* Another statement that is Busy asks for no database, although the last ATTACH got no answer. */
static void test_lock_after_no_answer(void) {
        sqlite3 *other;

        begin("delete", true);
        (void) writing_execute("ATTACH 'far' AS x");
        writing_expect("asks 1 for far; ");
        writing_cancel(2);
        writing_expect("ended 2 error 30; ");
        g_assert_cmpint(sqlite3_open(path, &other), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        writing.job_lock_wait_usec = SEC;
        (void) writing_execute("INSERT INTO note VALUES(1)");
        writing_pass(SEC / 2);
        writing_expect("");
        g_assert_cmpint(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        writing_pass(SEC / 2);
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 3; ended 3 wrote 1 1; ");
        end();
}

/* TEMP tables, statements and transactions of the pin go on after an ATTACH that fails. */
static void test_broken_files(void) {
        g_autofree char *text = NULL, *other = NULL;

        begin("wal", true);
        (void) writing_execute("CREATE TEMP TABLE t(a)");
        writing_expect("ended 2 wrote 0 0; ");
        text = g_build_filename(folder, "text", NULL);
        other = g_build_filename(folder, "utf16.sqlite", NULL);
        g_assert_true(g_file_set_contents(text, "This is no database, although it is longer than the header.\n", -1, NULL));
        exec_sql(other, "PRAGMA encoding = 'UTF-16'; CREATE TABLE u(n)");
        attach("ATTACH 'text' AS x", "text", text, "ended 3 error 17; ");
        attach("ATTACH 'utf16' AS x", "utf16", other, "ended 4 error 11; ");
        attach("ATTACH 'folder' AS x", "folder", folder, "ended 5 error 19; ");
        check_rows("SELECT * FROM temp.t", 0);
        check_rows("PRAGMA database_list", 2); /* main and temp */
        end();
}

/* A program that copies a new file over the old one. */
static void test_replaced(void) {
        g_autofree char *fresh = NULL;

        begin_attached("wal", true);
        check_rows("SELECT * FROM x.f", 2);
        fresh = g_build_filename(folder, "fresh.sqlite", NULL);
        exec_sql(fresh, "CREATE TABLE f(n)");
        g_assert_cmpint(g_rename(fresh, far), ==, 0);
        check_fails("SELECT * FROM x.f", ERROR_PIN_LOST, "*was replaced*");
        end();
}

static void test_many(void) {
        begin("wal", false);
        for (unsigned i = 0; i < 10; i++) {
                g_autofree char *sql = g_strdup_printf("ATTACH 'far' AS x%u", i);
                g_autofree char *ended = g_strdup_printf("ended %u; ", i + 2);

                attach(sql, "far", far, ended);
        }
        check_rows("SELECT 1 FROM x0.f, x9.f", 4);
        check_fails("ATTACH 'far' AS y", ERROR_SQL, "too many attached databases - max 10");
        end();
}

/* VACUUM needs no more than the client has left. */
static void test_vacuum(void) {
        begin_attached("wal", true);
        (void) writing_execute("VACUUM");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; committing 3; ended 3 wrote 0 0; ");
        check_rows("SELECT * FROM x.f", 2);
        check_fails("ATTACH '' AS vacuum_db", ERROR_NOT_ALLOWED, "ATTACH of a new database*");
        attach("ATTACH 'far' AS y", "far", far, "ended 6; ");
        end();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(sqlite_engine.init(&wide), ==, 0);
        g_test_add_func("/worker/attach/join", test_join);
        g_test_add_func("/worker/attach/refusals", test_refusals);
        g_test_add_func("/worker/attach/names", test_names);
        g_test_add_func("/worker/attach/no-answer", test_no_answer);
        g_test_add_func("/worker/attach/only-reads", test_only_reads);
        g_test_add_func("/worker/attach/in-transactions", test_in_transactions);
        g_test_add_func("/worker/attach/locks", test_locks);
        g_test_add_func("/worker/attach/lock-after-no-answer", test_lock_after_no_answer);
        g_test_add_func("/worker/attach/broken-files", test_broken_files);
        g_test_add_func("/worker/attach/replaced", test_replaced);
        g_test_add_func("/worker/attach/many", test_many);
        g_test_add_func("/worker/attach/vacuum", test_vacuum);
        return g_test_run();
}
