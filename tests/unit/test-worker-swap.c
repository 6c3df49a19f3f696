/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A user exchanges a directory of Path=, or the file itself, at the very moment at which SQLite asks the kernel for a file:
 * before each system call in turn, and back after it. The worker reads the published file, or nothing. Also: the files that
 * it opens beside a database are regular files, and open() never blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/sqlite/sqlite-connection.h"
#include "daemon/worker/sqlite/sqlite-engine.h"

#define ANY_CALL (-1)

typedef struct Fixture {
        char *root, *path; /* ROOT/real/db */
        Setup setup;
} Fixture;

/* The two files to exchange before call number `at`; true: they are exchanged back after the call. */
static struct {
        char *one, *other;
        int at, n_calls;
        bool back;
} swap;

static int (*real_open)(const char *, int, int);
static int (*real_stat)(const char *, struct stat *);
static int (*real_lstat)(const char *, struct stat *);
static int (*real_access)(const char *, int);

static void exchange(void) {
        g_assert_cmpint(renameat2(AT_FDCWD, swap.one, AT_FDCWD, swap.other, RENAME_EXCHANGE), ==, 0);
}

static bool begin_call(void) {
        bool now = ++swap.n_calls == swap.at;

        if (now)
                exchange();
        return now && swap.back;
}

static int end_call(bool exchanged, int r) {
        int error = errno;

        if (exchanged)
                exchange();
        errno = error;
        return r;
}

static int swapping_open(const char *path, int flags, int mode) {
        bool exchanged = begin_call();

        return end_call(exchanged, real_open(path, flags, mode));
}

static int swapping_stat(const char *path, struct stat *st) {
        bool exchanged = begin_call();

        return end_call(exchanged, real_stat(path, st));
}

static int swapping_lstat(const char *path, struct stat *st) {
        bool exchanged = begin_call();

        return end_call(exchanged, real_lstat(path, st));
}

static int swapping_access(const char *path, int mode) {
        bool exchanged = begin_call();

        return end_call(exchanged, real_access(path, mode));
}

static sqlite3_syscall_ptr intercept(const char *name, sqlite3_syscall_ptr call) {
        sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
        sqlite3_syscall_ptr real = vfs->xGetSystemCall(vfs, name);

        g_assert_nonnull(real);
        g_assert_cmpint(vfs->xSetSystemCall(vfs, name, call), ==, SQLITE_OK);
        return real;
}

static int never(void *userdata) {
        (void) userdata;
        return 0;
}

/* By sqlite3's own VFS in another process: its locks would be ours in this one. */
static void exec(const char *path, const char *sql) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                sqlite3 *db;
                int rc = sqlite3_open(path, &db);

                if (rc == SQLITE_OK)
                        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
                _exit(sqlite3_close(db) == SQLITE_OK && rc == SQLITE_OK ? 0 : 1);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
}

static char *under(const Fixture *f, const char *name) {
        return g_build_filename(f->root, name, NULL);
}

static void make_database(const Fixture *f, const char *name, const char *mode, const char *row) {
        g_autofree char *path = under(f, name);
        g_autofree char *sql = g_strdup_printf("PRAGMA journal_mode = %s; CREATE TABLE t(s); INSERT INTO t VALUES('%s')",
                                               mode, row);

        exec(path, sql);
}

static void set_up(Fixture *f, const char *mode) {
        g_autofree char *made = g_dir_make_tmp("sqlipc-swap-XXXXXX", NULL), *real = NULL, *foreign = NULL, *way = NULL;

        *f = (Fixture) { .root = realpath(made, NULL) };
        f->path = under(f, "real/db");
        real = under(f, "real");
        foreign = under(f, "foreign");
        way = under(f, "way");
        g_assert_cmpint(g_mkdir(real, 0755), ==, 0);
        g_assert_cmpint(g_mkdir(foreign, 0755), ==, 0);
        g_assert_cmpint(symlink("foreign", way), ==, 0);
        make_database(f, "real/db", mode, "own");
        make_database(f, "real/other", mode, "foreign");
        make_database(f, "foreign/db", mode, "foreign");
        f->setup = (Setup) {
                .path = f->path, .heap_size_max = 64 << 20, .temp_size_max = 64 << 20, .sql_size_max = 10000,
                .expression_depth_max = 100, .compound_selects_max = 10, .vdbe_ops_max = 100000, .variables_max = 100,
        };
}

static void tear_down(Fixture *f) {
        g_autofree char *command = g_strdup_printf("rm -rf '%s'", f->root);

        g_assert_cmpint(system(command), ==, 0);
        free(f->root);
        g_free(f->path);
}

/* The first row; NULL with *ret_error if there is none. */
static char *read_row(const Fixture *f, ErrorNumber *ret_error) {
        SqlError error = SQL_ERROR_INIT;
        sqlite3_stmt *stmt = NULL;
        char *row = NULL;
        SqliteConnection d;

        *ret_error = ERROR_NONE;
        if (!sqlite_connection_open(&d, &f->setup, never, NULL, &error)) {
                *ret_error = error.error;
                sql_error_done(&error);
                return NULL;
        }
        if (sqlite3_prepare_v2(d.db, "SELECT s FROM t", -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
                row = g_strdup((const char *) sqlite3_column_text(stmt, 0));
        sqlite3_finalize(stmt);
        sqlite_connection_close(&d);
        return row;
}

/* Exchanges `one` and `other` at each call in turn. How many of these runs brought the published row. */
static int try_all(const Fixture *f, const char *one, const char *other, bool back) {
        int n_read = 0;

        swap.one = under(f, one);
        swap.other = under(f, other);
        swap.back = back;
        for (swap.at = 1, swap.n_calls = 1; swap.n_calls >= swap.at; swap.at++) {
                g_autofree char *row = NULL;
                ErrorNumber error;

                swap.n_calls = 0;
                row = read_row(f, &error);
                if (!back && swap.n_calls >= swap.at)
                        exchange();
                g_test_message("%s and %s, call %d: %s, error %d", one, other, swap.at, row ? row : "nothing", error);
                g_assert_cmpstr(row, !=, "foreign");
                n_read += row != NULL;
        }
        g_assert_cmpint(swap.at, >, 3); /* calls were seen */
        swap.at = ANY_CALL;
        g_free(swap.one);
        g_free(swap.other);
        return n_read;
}

static void try_mode(const char *mode) {
        Fixture f;

        set_up(&f, mode);
        g_assert_cmpint(try_all(&f, "real", "way", true), >, 0);
        g_assert_cmpint(try_all(&f, "real", "way", false), >, 0);
        g_assert_cmpint(try_all(&f, "real", "foreign", true), >, 0);
        g_assert_cmpint(try_all(&f, "real/db", "real/other", true), >, 0);
        g_assert_cmpint(try_all(&f, "real/db", "real/other", false), >, 0);
        tear_down(&f);
}

static void test_rollback(void) {
        try_mode("DELETE");
}

static void test_wal(void) {
        try_mode("WAL");
}

/* True if this process has a lock on the file that would stop another process. */
static bool is_locked(const char *path) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
                int fd = open(path, O_RDWR | O_CLOEXEC);

                _exit(fcntl(fd, F_GETLK, &all) == 0 && all.l_type != F_UNLCK);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        return status != 0;
}

/* A file that is not the one that was checked is given back without a close() that drops locks of other connections. */
static void test_refused_file_keeps_locks(void) {
        SqlError error = SQL_ERROR_INIT;
        g_autofree char *other = NULL;
        SqliteConnection reader, d;
        sqlite3_stmt *stmt;
        int n = 0;
        Fixture f;

        set_up(&f, "DELETE");
        other = under(&f, "real/other");
        g_assert_true(sqlite_connection_open(&reader, &f.setup, never, NULL, &error));
        g_assert_cmpint(sqlite3_prepare_v2(reader.db, "SELECT s FROM t", -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        g_assert_true(is_locked(f.path));
        swap.one = f.path;
        swap.other = other;
        swap.at = ANY_CALL;
        exchange(); /* the reader's file is at `other` now, and comes back when the next one is opened */
        swap.back = true;
        for (swap.at = 1, swap.n_calls = 1; swap.n_calls >= swap.at; swap.at++) {
                swap.n_calls = 0;
                if (sqlite_connection_open(&d, &f.setup, never, NULL, &error))
                        sqlite_connection_close(&d);
                else
                        n += error.error == ERROR_BUSY;
                sql_error_done(&error);
                g_assert_true(is_locked(other));
        }
        g_assert_cmpint(n, >, 0);
        swap.at = ANY_CALL;
        sqlite3_finalize(stmt);
        sqlite_connection_close(&reader);
        g_assert_false(is_locked(other));
        tear_down(&f);
}

/* ---- what open() could wait for ---- */

typedef void (*Put)(const char *name);

static void put_fifo(const char *name) {
        g_assert_cmpint(mkfifo(name, 0600), ==, 0);
}

static void put_folder(const char *name) {
        g_assert_cmpint(g_mkdir(name, 0700), ==, 0);
}

static void put_link(const char *name) {
        g_assert_cmpint(symlink("other", name), ==, 0);
}

static void put_dangling_link(const char *name) {
        g_assert_cmpint(symlink("nothing", name), ==, 0);
}

static void expect_irregular(const char *mode, const char *suffix, Put put) {
        SqlError error = SQL_ERROR_INIT;
        g_autofree char *name = NULL;
        SqliteConnection d;
        Fixture f;

        set_up(&f, mode);
        name = g_strconcat(f.path, suffix, NULL);
        put(name);
        alarm(120); /* to fail sooner if it waits in open() */
        g_assert_false(sqlite_connection_open(&d, &f.setup, never, NULL, &error));
        alarm(0);
        g_test_message("%s, %s: %s", mode, suffix, error.message);
        g_assert_cmpint(error.error, ==, ERROR_CANNOT_OPEN);
        g_assert_nonnull(strstr(error.message, "not a regular file"));
        sql_error_done(&error);
        tear_down(&f);
}

static void test_irregular_beside(void) {
        static const Put puts[] = { put_fifo, put_folder, put_link, put_dangling_link };

        for (size_t i = 0; i < G_N_ELEMENTS(puts); i++) {
                expect_irregular("DELETE", "-journal", puts[i]);
                expect_irregular("WAL", "-wal", puts[i]);
                expect_irregular("WAL", "-shm", puts[i]);
        }
}

/* A lease makes open() wait for /proc/sys/fs/lease-break-time, 45 seconds, and succeed then. */
static void test_lease(void) {
        SqlError error = SQL_ERROR_INIT;
        Fixture f;
        SqliteConnection d;
        int fd;

        set_up(&f, "DELETE");
        (void) signal(SIGIO, SIG_IGN);
        fd = open(f.path, O_RDWR | O_CLOEXEC);
        if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0) {
                g_test_skip("no leases on this file system");
                close(fd);
                tear_down(&f);
                return;
        }
        g_assert_false(sqlite_connection_open(&d, &f.setup, never, NULL, &error));
        g_assert_cmpint(error.error, ==, ERROR_BUSY);
        sql_error_done(&error);
        close(fd);
        g_assert_true(sqlite_connection_open(&d, &f.setup, never, NULL, &error));
        sqlite_connection_close(&d);
        tear_down(&f);
}

int main(int argc, char **argv) {
        Setup setup = { .heap_size_max = 64 << 20, .temp_size_max = 64 << 20 };

        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(sqlite_engine.init(&setup), ==, 0);
        swap.at = ANY_CALL;
        real_open = (int (*)(const char *, int, int)) intercept("open", (sqlite3_syscall_ptr) swapping_open);
        real_stat = (int (*)(const char *, struct stat *)) intercept("stat", (sqlite3_syscall_ptr) swapping_stat);
        real_lstat = (int (*)(const char *, struct stat *)) intercept("lstat", (sqlite3_syscall_ptr) swapping_lstat);
        real_access = (int (*)(const char *, int)) intercept("access", (sqlite3_syscall_ptr) swapping_access);
        g_test_add_func("/swap/rollback-mode", test_rollback);
        g_test_add_func("/swap/wal-mode", test_wal);
        g_test_add_func("/swap/refused-file-keeps-locks", test_refused_file_keeps_locks);
        g_test_add_func("/swap/irregular-beside", test_irregular_beside);
        g_test_add_func("/swap/lease", test_lease);
        return g_test_run();
}
