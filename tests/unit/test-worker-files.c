/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker: files that change, are locked, or belong to another user (I12). */
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/rigs/worker-rig.h"

/* Another program changes the schema between two runs of a compiled statement, and its column count. */
static void test_schema_change(void) {
        Rig rig;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        exec_sql(rig.database, "ALTER TABLE t ADD COLUMN extra; INSERT INTO t(i, extra) VALUES(5, 6)");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        exec_sql(rig.database, "DROP TABLE t; CREATE TABLE t(only)");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 0);
        exec_sql(rig.database, "DROP TABLE t");
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_SQL);
        rig_done(&rig);
}

static void test_file_replaced(void) {
        Rig rig;
        g_autofree char *other = NULL;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        other = g_build_filename(rig.folder, "other.db", NULL);
        exec_sql(other, "CREATE TABLE t(i); INSERT INTO t VALUES(1), (2), (3)");
        g_assert_cmpint(g_rename(other, rig.database), ==, 0);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        g_assert_cmpint(g_unlink(rig.database), ==, 0);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_FILE_MISSING);
        g_assert_cmpint(g_mkdir(rig.database, 0700), ==, 0);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_CANNOT_OPEN);
        g_assert_cmpint(g_rmdir(rig.database), ==, 0);
        g_assert_true(
                g_file_set_contents(rig.database, "this is no database, and long enough to be seen as none.....", -1, NULL));
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_CORRUPT);
        rig_done(&rig);
}

/* A writer holds the file: tried again until it lets go, or the time for that is over. */
static void test_busy(void) {
        Setup setup = wide;
        Rig rig;
        sqlite3 *writer;
        uint64_t number;
        int fd;

        setup.busy_usec = 100000;
        rig_init(&rig, setup);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_BUSY);
        rig_stop(&rig);

        setup.busy_usec = LATER;
        rig_start(&rig, setup);
        fd = send_run(&rig, "SELECT * FROM t", &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        g_assert_cmpint(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpuint(read_stream(fd, number).n_rows, ==, 2);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        close(fd);
        sqlite3_close(writer);
        rig_done(&rig);
}

static unsigned n_columns_of(Rig *rig, const char *sql) {
        ReceivedMessage m;
        uint64_t number;
        unsigned n;

        g_assert_true(send_prepare(rig, sql, &number));
        expect_number(rig, number, MESSAGE_TAKEN);
        m = next_report(rig, number, MESSAGE_STARTED);
        n = m.message.started.n_columns;
        received_message_done(&m);
        return n;
}

/* The description of a statement is that of the current schema, compiled before or not. */
static void test_schema_change_before_prepare(void) {
        uint64_t number;
        Rig rig;

        rig_init(&rig, wide);
        g_assert_cmpuint(n_columns_of(&rig, "SELECT * FROM t"), ==, 5);
        exec_sql(rig.database, "ALTER TABLE t ADD COLUMN extra");
        g_assert_cmpuint(n_columns_of(&rig, "SELECT * FROM t"), ==, 6);
        g_assert_cmpuint(n_columns_of(&rig, "SELECT *, 1 FROM t"), ==, 7);
        exec_sql(rig.database, "ALTER TABLE t ADD COLUMN another");
        g_assert_cmpuint(n_columns_of(&rig, "SELECT *, 2 FROM t"), ==, 8);
        exec_sql(rig.database, "DROP TABLE t");
        g_assert_true(send_prepare(&rig, "SELECT * FROM t", &number));
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_ended(&rig, number, ERROR_SQL);
        rig_done(&rig);
}

/* The look at the schema before a statement takes a lock, which a statement that reads no table does not keep. */
static void test_reads_nothing_locks_nobody_out(void) {
        Rig rig;

        rig_init(&rig, wide);
        rig.describe = true;
        for (int i = 0; i < 2; i++) { /* compiled just now, and before */
                ReceivedMessage m;
                uint64_t number;
                int fd = send_run(&rig, MANY, &number);

                expect_number(&rig, number, MESSAGE_TAKEN);
                expect_started(&rig, number);
                m = next_report(&rig, number, MESSAGE_PARKED);
                received_message_done(&m);
                exec_sql(rig.database, "UPDATE t SET n = 1");
                close(fd);
                expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        }
        rig_done(&rig);
}

/* The lowest descriptor that is free in the worker. */
static unsigned lowest_free_fd(const Rig *rig) {
        for (unsigned fd = 0;; fd++) {
                g_autofree char *name = g_strdup_printf("/proc/%d/fd/%u", rig->pid, fd);

                if (access(name, F_OK) < 0 && readlink(name, (char[1]) {}, 1) < 0)
                        return fd;
        }
}

/* A temporary file that cannot be made is no matter of the database's permissions. */
static void test_no_temporary_file(void) {
        struct rlimit limit;
        Outcome o;
        Rig rig;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2); /* the database is open now, the pipe closed */
        limit.rlim_cur = limit.rlim_max = lowest_free_fd(&rig) + 1;   /* room for the pipe of the next */
        g_assert_cmpint(prlimit(rig.pid, RLIMIT_NOFILE, &limit, NULL), ==, 0);
        o = run(&rig, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) "
                      "SELECT hex(randomblob(100)) FROM c ORDER BY 1");
        g_assert_cmpint(o.error, ==, ERROR_INPUT_OUTPUT);
        g_assert_nonnull(strstr(o.message, "temporary file"));
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

/* An empty database with an old log beside it is an empty database; SQLite would remove the log, a reader leaves it. */
static void test_empty_with_log(void) {
        g_autofree char *wal = NULL;
        Rig rig;

        rig_init_folder(&rig);
        wal = g_strconcat(rig.database, "-wal", NULL);
        g_assert_true(g_file_set_contents(rig.database, "", 0, NULL));
        g_assert_true(g_file_set_contents(wal, "an old log", -1, NULL));
        rig_start(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT count(*) FROM sqlite_schema").n_rows, ==, 1);
        g_assert_cmpint(access(wal, F_OK), ==, 0);
        rig_done(&rig);
}

/* Immutable=: no lock is held, so the shorter time for databases whose writers wait does not apply. */
static void test_immutable_locks_nobody_out(void) {
        Setup setup = wide;
        ReceivedMessage m;
        uint64_t number;
        struct pollfd p;
        Rig rig;
        int fd;

        setup.immutable = true;
        setup.park_rollback_usec = 50000;
        rig_init(&rig, setup);
        fd = send_run(&rig, MANY, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        m = next_report(&rig, number, MESSAGE_PARKED);
        received_message_done(&m);
        p = (struct pollfd) { .fd = rig.control_fd, .events = POLLIN };
        g_assert_cmpint(poll(&p, 1, 500), ==, 0);
        close(fd);
        expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        rig_done(&rig);
}

/* Nobody waits for a lock any more. */
static void test_reader_leaves_busy(void) {
        sqlite3 *writer;
        uint64_t number;
        Rig rig;
        int fd;

        rig_init(&rig, wide);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        fd = send_run(&rig, "SELECT * FROM t", &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        close(fd);
        expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        sqlite3_close(writer);
        rig_done(&rig);
}

/* ---- writers that wait for readers (I6) ---- */

#define ENDLESS_ON_FILE "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM t, c"

/* In rollback mode a run that computes keeps writers out: for as long as none waits, then for ParkTimeoutRollbackSec=. */
static void test_computing_reader_and_writer(void) {
        Setup setup = wide;
        sqlite3 *writer;
        uint64_t number;
        Outcome o;
        Rig rig;
        int fd;

        setup.park_rollback_usec = 100000;
        rig_init(&rig, setup);
        fd = send_run(&rig, ENDLESS_ON_FILE, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        rig_wait_computing(&rig, rig_cpu_usec(&rig) + 2 * setup.park_rollback_usec);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_busy_timeout(writer, 60000), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "INSERT INTO t(i) VALUES(3)", NULL, NULL, NULL), ==, SQLITE_OK);
        o = read_stream(fd, number);
        g_assert_cmpint(o.error, ==, ERROR_TIMED_OUT);
        g_assert_nonnull(strstr(o.message, "ParkTimeoutRollbackSec="));
        expect_ended(&rig, number, ERROR_TIMED_OUT);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        close(fd);
        sqlite3_close(writer);
        rig_done(&rig);
}

/* In WAL mode it keeps the log from being written back: for as long as that is small, then for the same time. */
static void test_computing_reader_and_log(void) {
        Setup setup = wide;
        sqlite3 *writer;
        uint64_t number;
        Outcome o;
        Rig rig;
        int fd;

        setup.park_rollback_usec = 100000;
        setup.wal_size_max = 1 << 20;
        rig_init_folder(&rig);
        exec_sql(rig.database, "PRAGMA journal_mode = WAL; CREATE TABLE t(i); INSERT INTO t VALUES(1)");
        rig_start(&rig, setup);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "INSERT INTO t VALUES(2)", NULL, NULL, NULL), ==, SQLITE_OK);
        fd = send_run(&rig, ENDLESS_ON_FILE, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        g_assert_cmpint(sqlite3_exec(writer, "INSERT INTO t VALUES(3); PRAGMA wal_checkpoint", NULL, NULL, NULL), ==,
                        SQLITE_OK);
        rig_wait_computing(&rig, rig_cpu_usec(&rig) + 2 * setup.park_rollback_usec);
        g_assert_cmpint(sqlite3_exec(writer, "INSERT INTO t VALUES(zeroblob(1100000)); PRAGMA wal_checkpoint", NULL, NULL,
                                     NULL), ==, SQLITE_OK);
        o = read_stream(fd, number);
        g_assert_cmpint(o.error, ==, ERROR_TIMED_OUT);
        g_assert_nonnull(strstr(o.message, "WalSizeMax="));
        expect_ended(&rig, number, ERROR_TIMED_OUT);
        close(fd);
        sqlite3_close(writer);
        rig_done(&rig);
}

/* A writer that waits gets its turn although runs of the worker overlap: none of them joins the lock of the one before. */
static void test_reader_waits_behind_writer(void) {
        ReceivedMessage parked;
        Setup setup = wide;
        sqlite3 *writer;
        uint64_t number;
        Rig rig;
        int fd;

        setup.busy_usec = 50000;
        rig_init(&rig, setup);
        fd = send_run(&rig,
                      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000) SELECT x, i FROM t, c",
                      &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        parked = next_report(&rig, number, MESSAGE_PARKED);
        received_message_done(&parked);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "BEGIN; INSERT INTO t(i) VALUES(3)", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), ==, SQLITE_BUSY); /* and waits, with PENDING */
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_BUSY);
        g_assert_cmpuint(read_stream(fd, number).n_rows, ==, 200000);
        expect_ended(&rig, number, ERROR_NONE);
        g_assert_cmpint(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        close(fd);
        sqlite3_close(writer);
        rig_done(&rig);
}

/* ---- whose files (I12) ---- */

/* The names in the folder, sorted. */
static char *list_folder(const Rig *rig) {
        g_autoptr(GDir) folder = g_dir_open(rig->folder, 0, NULL);
        GList *names = NULL;
        GString *list = g_string_new(NULL);

        for (const char *name; (name = g_dir_read_name(folder));)
                names = g_list_insert_sorted(names, g_strdup(name), (GCompareFunc) strcmp);
        for (GList *i = names; i; i = i->next)
                g_string_append_printf(list, "%s\n", (char *) i->data);
        g_list_free_full(names, g_free);
        return g_string_free(list, FALSE);
}

static void chmod_beside(const Rig *rig, const char *suffix, mode_t mode) {
        g_autofree char *name = g_strconcat(rig->database, suffix, NULL);

        g_assert_cmpint(chmod(name, mode), ==, 0);
}

/* A program that opens the database, does `sql` and dies without closing it. */
static void killed_writer(const Rig *rig, const char *sql) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                sqlite3 *db;

                if (sqlite3_open(rig->database, &db) == SQLITE_OK && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
                        (void) raise(SIGKILL);
                _exit(1);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_true(WIFSIGNALED(status));
}

#define IN_WAL_MODE "PRAGMA journal_mode = WAL; CREATE TABLE t(i); INSERT INTO t VALUES(1), (2);"
#define IN_ROLLBACK_MODE "CREATE TABLE t(i); INSERT INTO t VALUES(1), (2);"
/* Spills to the file, so the journal is synced and hot. */
#define HALF_A_TRANSACTION                                                                                            \
        "PRAGMA cache_size = 1; BEGIN; WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000) " \
        "INSERT INTO t SELECT randomblob(500) FROM c"

/* root's database in root's folder, which all may read; the worker runs as another user. */
static bool foreign_init(Rig *rig, const char *sql) {
        if (!rig_can_change_uid())
                return false;
        rig_init_folder(rig);
        g_assert_cmpint(chmod(rig->folder, 0755), ==, 0);
        exec_sql(rig->database, sql);
        rig->uid = NOBODY;
        return true;
}

/* One query of a fresh worker, which leaves the folder as it was. */
static void expect_foreign(Rig *rig, ErrorNumber error, const char *part_of_message) {
        g_autofree char *before = list_folder(rig), *after = NULL;
        Outcome o;

        rig_start(rig, wide);
        o = run(rig, "SELECT count(*) FROM t");
        g_test_message("%s", o.message);
        rig_stop(rig);
        after = list_folder(rig);
        g_assert_cmpstr(after, ==, before);
        g_assert_cmpint(o.error, ==, error);
        if (part_of_message)
                g_assert_nonnull(strstr(o.message, part_of_message));
}

static void test_foreign_rollback(void) {
        Rig rig;

        if (!foreign_init(&rig, IN_ROLLBACK_MODE))
                return;
        expect_foreign(&rig, ERROR_NONE, NULL);
        chmod_beside(&rig, "", 0600);
        expect_foreign(&rig, ERROR_CANNOT_OPEN, "may not read");
        g_assert_cmpint(chmod(rig.folder, 0700), ==, 0);
        expect_foreign(&rig, ERROR_CANNOT_OPEN, "cannot be reached");
        rig_done_folder(&rig);
}

static void test_foreign_hot_journal(void) {
        Rig rig;

        if (!foreign_init(&rig, IN_ROLLBACK_MODE))
                return;
        killed_writer(&rig, HALF_A_TRANSACTION);
        expect_foreign(&rig, ERROR_NEEDS_RECOVERY, "hot journal");
        rig.uid = geteuid(); /* nor does its owner write, as a reader */
        expect_foreign(&rig, ERROR_NEEDS_RECOVERY, "hot journal");
        exec_sql(rig.database, "SELECT * FROM t"); /* as the sentence says */
        rig.uid = NOBODY;
        expect_foreign(&rig, ERROR_NONE, NULL);
        rig_done_folder(&rig);
}

static void test_foreign_wal_at_rest(void) {
        Setup immutable = wide;
        Rig rig;

        if (!foreign_init(&rig, IN_WAL_MODE))
                return;
        expect_foreign(&rig, ERROR_NEEDS_OWNER, "\"-wal\" file cannot be read");
        immutable.immutable = true; /* as the sentence says */
        rig_start(&rig, immutable);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

static void test_foreign_wal_with_writer(void) {
        sqlite3 *writer;
        Rig rig;

        if (!foreign_init(&rig, IN_WAL_MODE))
                return;
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "INSERT INTO t VALUES(3)", NULL, NULL, NULL), ==, SQLITE_OK);
        chmod_beside(&rig, "-wal", 0600);
        expect_foreign(&rig, ERROR_NEEDS_OWNER, "\"-wal\" file cannot be read");
        chmod_beside(&rig, "-wal", 0644);
        chmod_beside(&rig, "-shm", 0600);
        expect_foreign(&rig, ERROR_NEEDS_OWNER, "\"-shm\" file cannot be read");
        chmod_beside(&rig, "-shm", 0644);
        rig_start(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        g_assert_cmpint(sqlite3_exec(writer, "INSERT INTO t VALUES(4)", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 4);
        g_assert_cmpint(sqlite3_exec(writer, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "INSERT INTO t VALUES(5)", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 5);
        g_assert_cmpint(sqlite3_close(writer), ==, SQLITE_OK); /* it sees us, and leaves the files */
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 5);
        rig_done(&rig);
}

/* The writer died, its files are there: nothing that is committed is missing. */
static void test_foreign_wal_of_the_dead(void) {
        g_autofree char *shm = NULL;
        Rig rig;

        if (!foreign_init(&rig, IN_WAL_MODE))
                return;
        killed_writer(&rig, "INSERT INTO t VALUES(3)");
        rig_start(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        rig_stop(&rig);
        shm = g_strconcat(rig.database, "-shm", NULL);
        g_assert_cmpint(g_unlink(shm), ==, 0);
        expect_foreign(&rig, ERROR_NEEDS_OWNER, "\"-shm\" file cannot be read");
        rig_done_folder(&rig);
}

/* The worker of the database's owner may create the files of WAL, if the folder permits it. */
static void test_own_wal(void) {
        Rig rig;

        if (!foreign_init(&rig, IN_WAL_MODE))
                return;
        g_assert_cmpint(chown(rig.database, NOBODY, NOBODY), ==, 0);
        expect_foreign(&rig, ERROR_NEEDS_OWNER, "write to the folder");
        g_assert_cmpint(chown(rig.folder, NOBODY, NOBODY), ==, 0);
        rig_start(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/worker/schema-change", test_schema_change);
        g_test_add_func("/worker/file-replaced", test_file_replaced);
        g_test_add_func("/worker/busy", test_busy);
        g_test_add_func("/worker/schema-change-before-prepare", test_schema_change_before_prepare);
        g_test_add_func("/worker/no-temporary-file", test_no_temporary_file);
        g_test_add_func("/worker/empty-with-log", test_empty_with_log);
        g_test_add_func("/worker/immutable-locks-nobody-out", test_immutable_locks_nobody_out);
        g_test_add_func("/worker/reads-nothing-locks-nobody-out", test_reads_nothing_locks_nobody_out);
        g_test_add_func("/worker/foreign-rollback", test_foreign_rollback);
        g_test_add_func("/worker/foreign-hot-journal", test_foreign_hot_journal);
        g_test_add_func("/worker/foreign-wal-at-rest", test_foreign_wal_at_rest);
        g_test_add_func("/worker/foreign-wal-with-writer", test_foreign_wal_with_writer);
        g_test_add_func("/worker/foreign-wal-of-the-dead", test_foreign_wal_of_the_dead);
        g_test_add_func("/worker/own-wal", test_own_wal);
        g_test_add_func("/worker/reader-leaves-busy", test_reader_leaves_busy);
        g_test_add_func("/worker/computing-reader-and-writer", test_computing_reader_and_writer);
        g_test_add_func("/worker/computing-reader-and-log", test_computing_reader_and_log);
        g_test_add_func("/worker/reader-waits-behind-writer", test_reader_waits_behind_writer);
        return g_test_run();
}
