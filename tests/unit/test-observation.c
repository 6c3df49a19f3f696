/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An observer's view of a database file: it knows commits from all else that other programs do, it is in no program's way,
 * and it says if the supervisor must poll, because inotify does not tell. Other programs are children with SQLite's VFS.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/core/observing.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/unit/test.h"

#define NOBODY ((uid_t) 65534)

static char *folder, *path, *other_path, *log_path, *log_index_path;
static Setup setup;
static EnginePool *pool;
static int notifier_fd = -1;
static bool is_set_up;

/* ---- The system's answers ---- */

static const char *refused;    /* inotify_add_watch() of this file fails; NULL: of none */
static int refused_error;
static unsigned n_added;
static uint32_t file_system;   /* that fstatfs() tells; 0: the true one; 1: it fails */
static bool locks_unknown;     /* the kernel does not tell who has a lock */

int __real_inotify_add_watch(int fd, const char *file, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *file, uint32_t mask);
int __real_fstatfs64(int fd, struct statfs *ret);
int __wrap_fstatfs64(int fd, struct statfs *ret);
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);

int __wrap_inotify_add_watch(int fd, const char *file, uint32_t mask) {
        n_added++;
        if (refused && strcmp(refused, file) == 0) {
                errno = refused_error;
                return -1;
        }
        return __real_inotify_add_watch(fd, file, mask);
}

int __wrap_fstatfs64(int fd, struct statfs *ret) {
        int r = __real_fstatfs64(fd, ret);

        if (file_system == 1) {
                errno = EIO;
                return -1;
        }
        if (file_system != 0)
                ret->f_type = (__typeof__(ret->f_type)) file_system;
        return r;
}

int __wrap_fcntl64(int fd, int command, ...) {
        va_list arguments;

        va_start(arguments, command);
        void *argument = va_arg(arguments, void *);
        va_end(arguments);
        if (command == F_GETLK && locks_unknown) {
                errno = ENOLCK;
                return -1;
        }
        return __real_fcntl64(fd, command, argument);
}

/* ---- Other programs ---- */

static _Noreturn void run_program(const char *database, const char *sql, int until_fd, int done_fd) {
        sqlite3 *db;
        int rc = sqlite3_open(database, &db);
        char byte = 0;

        if (rc == SQLITE_OK)
                rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
        if (rc == SQLITE_OK && until_fd >= 0 && write(done_fd, &byte, 1) == 1)
                (void) !read(until_fd, &byte, 1);
        _exit(sqlite3_close(db) == SQLITE_OK && rc == SQLITE_OK ? 0 : 1);
}

static void expect_success(pid_t pid) {
        int status;

        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void exec(const char *database, const char *sql) {
        pid_t pid = fork();

        if (pid == 0)
                run_program(database, sql, -1, -1);
        expect_success(pid);
}

/* A program that keeps its connection, with the transaction that its SQL has begun, until it is told to go on. */
typedef struct Program {
        pid_t pid;
        int until_fd;
} Program;

static Program program_begin(const char *sql) {
        int until[2], done[2];
        char byte;

        CHECK(pipe2(until, O_CLOEXEC) == 0 && pipe2(done, O_CLOEXEC) == 0);
        Program p = { .pid = fork(), .until_fd = until[1] };
        if (p.pid == 0) {
                close(until[1]);
                run_program(path, sql, until[0], done[1]);
        }
        close(until[0]);
        close(done[1]);
        CHECK_INT(read(done[0], &byte, 1), 1);
        close(done[0]);
        return p;
}

static void program_end(Program p) {
        close(p.until_fd);
        expect_success(p.pid);
}

/* ---- An observer ---- */

static void begin(const char *journal) {
        g_autofree char *sql = g_strdup_printf("PRAGMA journal_mode = %s; CREATE TABLE t(n); INSERT INTO t VALUES (1)",
                                               journal);

        folder = g_dir_make_tmp("sqlipc-observation-XXXXXX", NULL);
        path = g_build_filename(folder, "db", NULL);
        other_path = g_build_filename(folder, "other", NULL);
        log_path = g_strconcat(path, "-wal", NULL);
        log_index_path = g_strconcat(path, "-shm", NULL);
        CHECK_INT(chmod(folder, 0755), 0);
        exec(path, sql);
        setup = (Setup) {
                .path = path,
                .observes = true,
                .heap_size_max = UINT64_C(64) * 1024 * 1024,
                .sql_size_max = 1000,
                .expression_depth_max = 100,
                .compound_selects_max = 100,
                .vdbe_ops_max = 100000,
                .variables_max = 100,
        };
        if (!is_set_up)
                CHECK_INT(sqlite_engine.init(&setup), 0);
        is_set_up = true; /* once in a process */
        CHECK_INT(sqlite_engine.start(&setup, NULL, NULL, &pool), 0);
        notifier_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

static void end(void) {
        static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

        sqlite_engine.stop(pool);
        if (notifier_fd >= 0)
                close(notifier_fd);
        for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
                g_autofree char *file = g_strconcat(path, suffixes[i], NULL);
                g_autofree char *other = g_strconcat(other_path, suffixes[i], NULL);

                (void) g_remove(file);
                (void) g_remove(other);
        }
        CHECK_INT(g_rmdir(folder), 0);
        g_clear_pointer(&folder, g_free);
        g_clear_pointer(&path, g_free);
        g_clear_pointer(&other_path, g_free);
        g_clear_pointer(&log_path, g_free);
        g_clear_pointer(&log_index_path, g_free);
}

static Observed look(void) {
        Observed found;

        sqlite_engine.observe(pool, notifier_fd, &found);
        return found;
}

static bool polls(void) {
        return look().polls;
}

/* True if inotify tells of something, which is then forgotten. */
static bool is_notified(void) {
        char buffer[4096];
        bool any = false;

        while (read(notifier_fd, buffer, sizeof buffer) > 0)
                any = true;
        return any;
}

/* As the supervisor does it: the first look may itself have made a log, which only the next one watches. */
static Observed look_until_quiet(void) {
        Observed found;

        do
                found = look();
        while (is_notified());
        return found;
}

/* ---- Tests ---- */

static const char *const journals[] = { "wal", "delete", "truncate", "persist" };

static bool is_wal(const char *journal) {
        return strcmp(journal, "wal") == 0;
}

/* True if inotify or the state would tell of a commit since `before`; *before becomes what is found now. */
static bool is_change(Observed *before) {
        Observed now = look();
        bool same = file_state_same(&before->state, &now.state);

        CHECK(now.state.kind != FILE_STATE_UNKNOWN && !now.busy);
        *before = now;
        return !same;
}

static void test_commits(void) {
        static const char *const changes[] = {
                "INSERT INTO t VALUES (2)", "UPDATE t SET n = 7", "CREATE TABLE u(n)", "VACUUM",
        };
        static const char *const others[] = {
                "SELECT * FROM t", "BEGIN IMMEDIATE; ROLLBACK", "BEGIN EXCLUSIVE; ROLLBACK",
                "BEGIN; SELECT * FROM t; COMMIT", "BEGIN; INSERT INTO t VALUES (3); ROLLBACK",
                "DELETE FROM t WHERE n = -1", "PRAGMA wal_checkpoint(PASSIVE)",
                "PRAGMA wal_checkpoint(FULL)", "PRAGMA wal_checkpoint(RESTART)", "PRAGMA wal_checkpoint(TRUNCATE)",
                "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA integrity_check",
        };

        for (size_t j = 0; j < N_ELEMENTS(journals); j++) {
                begin(journals[j]);
                Observed found = look_until_quiet();
                CHECK_INT(found.state.kind, is_wal(journals[j]) ? FILE_STATE_WAL : FILE_STATE_ROLLBACK);
                CHECK_STRING(found.name, "db");
                CHECK(!found.polls);
                for (size_t i = 0; i < N_ELEMENTS(changes); i++) {
                        uint32_t schema = found.schema;

                        (void) is_notified();
                        exec(path, changes[i]);
                        CHECK(is_notified());
                        CHECK(is_change(&found));
                        CHECK_INT(found.schema != schema, i >= 2);
                        for (size_t k = 0; k < N_ELEMENTS(others); k++) {
                                exec(path, others[k]);
                                if (is_change(&found))
                                        test_fail(__FILE__, __LINE__, others[k], "a change", "none");
                        }
                        CHECK_INT(utimensat(AT_FDCWD, path, NULL, 0), 0);
                        CHECK(!is_change(&found));
                }
                end();
        }
}

/* With a rollback journal no lock is held, and each program could have the file for itself at any moment. */
static void test_no_lock(void) {
        for (size_t j = 1; j < N_ELEMENTS(journals); j++) {
                begin(journals[j]);
                for (unsigned i = 0; i < 10; i++) {
                        (void) look();
                        exec(path, "BEGIN EXCLUSIVE; INSERT INTO t VALUES (1); COMMIT");
                }
                end();
        }
}

/* A writer whose commit may become visible in a moment. */
static void test_busy(void) {
        begin("delete");
        CHECK(!look().busy);
        Program p = program_begin("BEGIN IMMEDIATE; INSERT INTO t VALUES (2)"); /* nothing is in the file yet */
        CHECK(!look().busy);
        program_end(p);
        p = program_begin("BEGIN EXCLUSIVE");
        CHECK(look().busy);
        program_end(p);
        CHECK(!look().busy);
        p = program_begin("BEGIN; SELECT * FROM t");
        CHECK(!look().busy);
        program_end(p);
        end();

        begin("wal");
        CHECK(!look().busy);
        p = program_begin("BEGIN IMMEDIATE; INSERT INTO t VALUES (2)");
        CHECK(look().busy);
        program_end(p);
        CHECK(!look().busy);
        end();
}

/* Then the commit of a writer at work may become visible when inotify tells nothing more: the supervisor must poll. */
static void test_locks_unknown(void) {
        for (size_t j = 0; j < N_ELEMENTS(journals); j++) {
                begin(journals[j]);
                CHECK(!look().polls);
                locks_unknown = true;
                Observed found = look();
                CHECK(found.polls && !found.busy && found.state.kind != FILE_STATE_UNKNOWN);
                locks_unknown = false;
                CHECK(!look().polls);
                end();
        }
}

static void test_missing_and_replaced(void) {
        for (size_t j = 0; j < N_ELEMENTS(journals); j++) {
                begin(journals[j]);
                Observed first = look_until_quiet();
                exec(other_path, "PRAGMA journal_mode = delete; CREATE TABLE t(n)");
                (void) is_notified();
                CHECK_INT(g_rename(other_path, path), 0);
                (void) g_remove(log_path);
                (void) g_remove(log_index_path);
                CHECK(is_notified());
                Observed second = look_until_quiet();
                CHECK(second.inode != first.inode && second.device == first.device);
                CHECK_INT(second.state.kind, FILE_STATE_ROLLBACK);
                CHECK(!second.polls);
                (void) is_notified();
                exec(path, "INSERT INTO t VALUES (1)"); /* the new file is watched */
                CHECK(is_notified());
                CHECK(is_change(&second));

                CHECK_INT(g_remove(path), 0);
                CHECK(is_notified());
                Observed none = look();
                CHECK(none.inode == 0 && none.state.kind == FILE_STATE_UNKNOWN && none.polls);
                exec(path, "CREATE TABLE t(n)");
                CHECK(look().state.kind == FILE_STATE_ROLLBACK && !polls());
                end();
        }
}

/* Path= is a symbolic link, in the folder of the file or in another one, and another link takes its place. */
static void test_links(void) {
        for (unsigned i = 0; i < 2; i++) {
                begin("delete");
                g_autofree char *links = i ? g_strconcat(folder, ".links", NULL) : g_strdup(folder);
                g_autofree char *link = g_build_filename(links, "link", NULL);
                g_autofree char *new_link = g_build_filename(links, "new", NULL);

                CHECK_INT(i ? g_mkdir(links, 0755) : 0, 0);
                exec(other_path, "CREATE TABLE t(n)");
                CHECK(symlink(path, link) == 0 && symlink(other_path, new_link) == 0);
                setup.path = link;
                Observed first = look_until_quiet();
                CHECK(first.state.kind == FILE_STATE_ROLLBACK && !first.polls);
                CHECK_INT(g_rename(new_link, link), 0);
                CHECK(is_notified());
                Observed second = look_until_quiet();
                CHECK(second.inode != first.inode && !second.polls);
                CHECK_STRING(second.name, "other");
                exec(other_path, "INSERT INTO t VALUES (1)");
                CHECK(is_notified() && is_change(&second));
                CHECK_INT(g_remove(link), 0);
                CHECK_INT(i ? g_rmdir(links) : 0, 0);
                end();
        }
}

/* From a rollback journal to WAL, and back. */
static void test_journal_mode(void) {
        begin("delete");
        Observed found = look();
        exec(path, "PRAGMA journal_mode = wal; INSERT INTO t VALUES (1)");
        CHECK(is_change(&found));
        CHECK_INT(found.state.kind, FILE_STATE_WAL);
        exec(path, "INSERT INTO t VALUES (1)");
        CHECK(is_change(&found));
        end();
}

/* ---- inotify ---- */

static void test_network_file_systems(void) {
        static const uint32_t remote[] = { 0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0x65735546, 0x01021997, 0x00c36400 },
                              local[] = { 0xef53, 0x9123683e, 0x58465342, 0x01021994, 0x2fc12fc1, 0x794c7630 };

        begin("wal");
        (void) look();
        for (size_t i = 0; i < N_ELEMENTS(remote); i++) {
                file_system = remote[i];
                n_added = 0;
                CHECK(polls());
                CHECK_INT(n_added, 0); /* it would take from the limits, and tell nothing */
                CHECK(look().state.kind == FILE_STATE_WAL);
        }
        for (size_t i = 0; i < N_ELEMENTS(local); i++) {
                file_system = local[i];
                CHECK(!polls());
        }
        file_system = 1;
        CHECK(polls());
        file_system = 0;
        CHECK(!polls());
        end();
}

/* The limit of watches, no memory, a folder that may not be read: until it is over. */
static void test_no_watch(void) {
        static const char *const files[] = { ".", "db", "db-wal" };
        static const int errors[] = { ENOSPC, ENOMEM, EACCES };

        for (size_t i = 0; i < N_ELEMENTS(files); i++)
                for (size_t k = 0; k < N_ELEMENTS(errors); k++) {
                        begin("wal");
                        exec(path, "SELECT * FROM t");
                        (void) look(); /* opens the log, which did not exist before */
                        refused = files[i];
                        refused_error = errors[k];
                        CHECK(polls());
                        Observed found = look();
                        exec(path, "INSERT INTO t VALUES (1)");
                        CHECK(is_change(&found));
                        CHECK(found.polls);
                        refused = NULL;
                        CHECK(!polls());
                        end();
                }
        begin("delete");
        close(notifier_fd);
        notifier_fd = -1;
        CHECK(polls());
        CHECK(look().state.kind == FILE_STATE_ROLLBACK);
        end();
}

/* ---- Files of another owner ---- */

static bool can_change_uid(void) {
        return geteuid() == 0;
}

static void as_nobody(void) {
        if (seteuid(0) < 0 || seteuid(NOBODY) < 0)
                test_fail(__FILE__, __LINE__, "seteuid", strerror(errno), "0");
}

static void as_root(void) {
        CHECK_INT(seteuid(0), 0);
}

/* A WAL database of another owner without -wal and -shm: only its owner may make them, so there is no state. */
static void test_needs_owner(void) {
        if (!can_change_uid())
                return;
        begin("wal");
        CHECK(access(log_path, F_OK) < 0);
        as_nobody();
        Observed found = look();
        CHECK(found.state.kind == FILE_STATE_UNKNOWN && found.inode != 0 && !found.polls);
        as_root();
        CHECK(access(log_path, F_OK) < 0 && access(log_index_path, F_OK) < 0);
        (void) is_notified();
        Program p = program_begin("INSERT INTO t VALUES (2)");
        CHECK(is_notified()); /* the folder tells of the log */
        as_nobody();
        found = look();
        CHECK_INT(found.state.kind, FILE_STATE_WAL);
        CHECK(!found.polls);
        as_root();
        program_end(p);
        end();
}

static void test_folder_that_may_not_be_read(void) {
        if (!can_change_uid())
                return;
        begin("delete");
        CHECK_INT(chmod(folder, 0711), 0);
        as_nobody();
        Observed found = look();
        CHECK(found.polls);
        as_root();
        exec(path, "INSERT INTO t VALUES (2)");
        as_nobody();
        CHECK(is_change(&found));
        as_root();
        end();
}

/* ---- The process ---- */

static int run_with(const MessageKind *kinds, size_t n, Observed *last) {
        int fds[2], r;

        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        for (size_t i = 0; i < n; i++)
                CHECK_INT(message_send(fds[0], &(Message) { .kind = kinds[i] },
                                       kinds[i] == MESSAGE_NOTIFIER ? notifier_fd : -1), 0);
        r = observer_run(&sqlite_engine, fds[1], &setup);
        close(fds[1]);
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                if (message_receive(fds[0], &m) <= 0)
                        break;
                CHECK_INT(m.message.kind, MESSAGE_OBSERVED);
                *last = m.message.observed;
                last->name = NULL;
                received_message_done(&m);
        }
        close(fds[0]);
        return r;
}

static void test_messages(void) {
        Observed found = {};

        begin("delete");
        CHECK_INT(run_with((MessageKind[]) { MESSAGE_OBSERVE, MESSAGE_EXIT }, 2, &found), 0);
        CHECK(found.polls && found.state.kind == FILE_STATE_ROLLBACK);
        CHECK_INT(run_with((MessageKind[]) { MESSAGE_OBSERVE, MESSAGE_NOTIFIER, MESSAGE_OBSERVE, MESSAGE_EXIT }, 4, &found),
                  0);
        CHECK(!found.polls);
        CHECK_INT(run_with((MessageKind[]) { MESSAGE_NOTIFIER, MESSAGE_NOTIFIER }, 2, &found), -EBADMSG);
        CHECK_INT(run_with((MessageKind[]) { MESSAGE_PING }, 1, &found), -EBADMSG);
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_commits), TEST(test_no_lock), TEST(test_busy), TEST(test_locks_unknown),
                TEST(test_missing_and_replaced), TEST(test_links), TEST(test_journal_mode),
                TEST(test_network_file_systems), TEST(test_no_watch), TEST(test_needs_owner),
                TEST(test_folder_that_may_not_be_read), TEST(test_messages),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
