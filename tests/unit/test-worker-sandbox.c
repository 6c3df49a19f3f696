/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's filter of system calls: calls that no reader needs work in a child without the filter, and fail in one that
 * loaded it; calls that SQLite needs work in both. Each attempt has a process of its own. Tests only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/sandbox/late-libraries.h"
#include "daemon/worker/sandbox/sandbox.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/unit/test.h"

/* Us, for the children: a filtered one cannot ask. */
static pid_t parent;

static int shared_inotify = -1;

/* For the databases of the children. */
static char folder[] = "/tmp/sqlipc-sandbox-XXXXXX";

/* ---- What must not work: -1 and errno, as the call says it ---- */

static long try_socket(void) {
        return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long try_socketpair(void) {
        int fds[2];

        return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}

static long try_execve(void) {
        return execl("/bin/true", "true", (char *) NULL);
}

static long try_fork(void) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(EXIT_SUCCESS);
        return pid;
}

static long try_executable_memory(void) {
        return (long) mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long try_making_executable(void) {
        void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return memory == MAP_FAILED ? 0 : mprotect(memory, 4096, PROT_READ | PROT_EXEC);
}

static long try_executable_file(void) {
        int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);

        return (long) mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
}

static long try_ptrace(void) {
        return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long try_memory_of_others(void) {
        return process_vm_readv(getpid(), NULL, 0, NULL, 0, 0);
}

static long try_kill(void) {
        return kill(parent, 0);
}

static long try_signal_to_others(void) {
        return syscall(SYS_tgkill, parent, parent, 0);
}

static long try_signals_by_the_kernel(void) {
        return fcntl(STDIN_FILENO, F_SETOWN, parent);
}

static long try_ioctl(void) {
        int n;

        return ioctl(open("/bin/true", O_RDONLY | O_CLOEXEC), FIONREAD, &n);
}

static long try_prlimit(void) {
        struct rlimit limit;

        return prlimit(parent, RLIMIT_CORE, NULL, &limit);
}

static long try_prctl(void) {
        return prctl(PR_SET_PDEATHSIG, 0);
}

static long try_shared_memory(void) {
        return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

static long try_session(void) {
        return setsid();
}

static long try_inotify(void) {
        return inotify_init();
}

static long try_directory(void) {
        return chdir("/");
}

static long try_mode_by_name(void) {
        return chmod("/dev/null/none", 0) < 0 && errno == ENOTDIR ? 0 : -1;
}

static long try_name(void) {
        return rename("/dev/null/none", "/dev/null/other") < 0 && errno == ENOTDIR ? 0 : -1;
}

/* The supervisor shares the descriptor with an observer, and reads it. */
static long try_to_make_inotify_block(void) {
        return fcntl(shared_inotify, F_SETFL, 0);
}

static long try_to_make_inotify_block_by_ioctl(void) {
        int off = 0;

        return ioctl(shared_inotify, FIONBIO, &off);
}

static long try_netlink(void) {
        return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
}

/* ---- What must work ---- */

static long use_file(void) {
        int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
        char byte;

        return fd < 0 ? fd : pread(fd, &byte, 1, 0) - 1;
}

static long use_lock(void) {
        struct flock lock = { .l_type = F_RDLCK, .l_len = 1 };
        int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);

        return fcntl(fd, F_SETLK, &lock) < 0 ? -1 : fcntl(fd, F_GETLK, &lock);
}

static long use_memory(void) {
        return (long) mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long use_sealed_memory(void) {
        return fcntl(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING), F_ADD_SEALS, F_SEAL_WRITE);
}

static long use_inotify(void) {
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        return fchdir(fd) < 0 ? -1 : inotify_add_watch(shared_inotify, ".", IN_MODIFY);
}

static long use_signal_to_itself(void) {
        return syscall(SYS_tgkill, getpid(), getpid(), 0);
}

static long use_network(void) {
        const int on = 1;
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0) /* a kernel without IPv6 */
                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) < 0 ? -1 : fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
}

static void *run_thread(void *result) {
        *(bool *) result = true;
        return result;
}

static long use_thread(void) {
        bool ran = false;
        pthread_t thread;
        int r = pthread_create(&thread, NULL, run_thread, &ran);

        if (r != 0) {
                errno = r;
                return -1;
        }
        return pthread_join(thread, NULL) == 0 && ran ? 0 : -1;
}

static long use_names(void) {
        struct addrinfo *found;

        if (getaddrinfo("localhost", "1", NULL, &found) != 0)
                return -1;
        freeaddrinfo(found);
        return 0;
}

/* Writes to a database in one of the journal modes, as a worker does. */
static bool write_database(const Setup *setup, const char *sql) {
        SqlError error = SQL_ERROR_INIT;
        EngineConnection *connection;
        EngineStatement *statement;
        EnginePool *pool;
        RowSink sink = {};
        bool ok = sqlite_engine.start(setup, NULL, NULL, &pool) == 0 &&
                  sqlite_engine.begin(pool, true, &connection, &error) &&
                sqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &error) &&
                sqlite_engine.save(connection, &error) &&
                sqlite_engine.step(statement, &sink, &error) == ENGINE_DONE;

        if (!ok)
                return false;
        sqlite_engine.release(statement);
        ok = sqlite_engine.keep(connection, &error) && sqlite_engine.commit(connection, &error);
        sqlite_engine.disconnect(pool, connection);
        sqlite_engine.stop(pool);
        return ok;
}

static long use_database(const char *mode) {
        char path[sizeof folder + 16], pragma[64];
        const Setup setup = {
                .path = path, .writes = true, .sync_full = true, .heap_size_max = 64 << 20, .temp_size_max = 64 << 20,
                .sql_size_max = 1000, .expression_depth_max = 100, .compound_selects_max = 10, .vdbe_ops_max = 100000,
                .variables_max = 10, .database_size_max = UINT64_MAX,
        };
        sqlite3 *db;

        (void) snprintf(path, sizeof path, "%s/%s", folder, mode);
        (void) snprintf(pragma, sizeof pragma, "PRAGMA journal_mode = %s; CREATE TABLE IF NOT EXISTS t(x)", mode);
        if (sqlite_engine.init(&setup) < 0 || sqlite3_open(path, &db) != SQLITE_OK ||
            sqlite3_exec(db, pragma, NULL, NULL, NULL) != SQLITE_OK || sqlite3_close(db) != SQLITE_OK ||
            !write_database(&setup, "INSERT INTO t VALUES(zeroblob(10000000))")) {
                errno = EIO;
                return -1;
        }
        return unlink(path);
}

static long use_database_with_journal(void) {
        return use_database("delete");
}

static long use_database_with_log(void) {
        return use_database("wal");
}

typedef struct Attempt {
        const char *name;
        long (*attempt)(void);
} Attempt;

#define ATTEMPT(function) { #function, function }

static const Attempt attempts[] = {
        ATTEMPT(try_socket), ATTEMPT(try_socketpair), ATTEMPT(try_execve), ATTEMPT(try_fork), ATTEMPT(try_executable_memory),
        ATTEMPT(try_making_executable), ATTEMPT(try_executable_file), ATTEMPT(try_ptrace), ATTEMPT(try_memory_of_others),
        ATTEMPT(try_kill), ATTEMPT(try_signal_to_others), ATTEMPT(try_signals_by_the_kernel), ATTEMPT(try_ioctl),
        ATTEMPT(try_prlimit), ATTEMPT(try_prctl), ATTEMPT(try_shared_memory), ATTEMPT(try_session), ATTEMPT(try_inotify),
        ATTEMPT(try_directory), ATTEMPT(try_mode_by_name), ATTEMPT(try_name),
};
static const Attempt observers_attempts[] = {
        ATTEMPT(try_to_make_inotify_block), ATTEMPT(try_to_make_inotify_block_by_ioctl), ATTEMPT(try_inotify),
        ATTEMPT(try_socket), ATTEMPT(try_execve), ATTEMPT(try_kill), ATTEMPT(try_directory), ATTEMPT(try_name),
};
static const Attempt uses[] = {
        ATTEMPT(use_file), ATTEMPT(use_lock), ATTEMPT(use_memory), ATTEMPT(use_sealed_memory), ATTEMPT(use_signal_to_itself),
        ATTEMPT(use_database_with_journal), ATTEMPT(use_database_with_log),
};
static const Attempt observers_use = ATTEMPT(use_inotify);
static const Attempt engines_attempts[] = {
        ATTEMPT(try_netlink), ATTEMPT(try_execve), ATTEMPT(try_fork), ATTEMPT(try_executable_memory),
        ATTEMPT(try_making_executable), ATTEMPT(try_executable_file), ATTEMPT(try_ptrace), ATTEMPT(try_memory_of_others),
        ATTEMPT(try_kill), ATTEMPT(try_signal_to_others), ATTEMPT(try_signals_by_the_kernel), ATTEMPT(try_ioctl),
        ATTEMPT(try_prlimit), ATTEMPT(try_prctl), ATTEMPT(try_shared_memory), ATTEMPT(try_session), ATTEMPT(try_inotify),
        ATTEMPT(try_directory), ATTEMPT(try_name), ATTEMPT(try_to_make_inotify_block),
        ATTEMPT(try_to_make_inotify_block_by_ioctl),
};
static const Attempt engines_uses[] = { ATTEMPT(use_network), ATTEMPT(use_thread), ATTEMPT(use_names), ATTEMPT(use_file) };

/* The attempts that succeed in a keeper: none. */
static const Attempt keepers_attempts[] = {
        ATTEMPT(try_socket), ATTEMPT(try_execve), ATTEMPT(try_fork), ATTEMPT(try_executable_memory), ATTEMPT(try_ptrace),
        ATTEMPT(try_kill), ATTEMPT(try_signal_to_others), ATTEMPT(try_prctl), ATTEMPT(try_directory), ATTEMPT(try_name),
        ATTEMPT(use_file), ATTEMPT(use_memory),
};

typedef enum Filter { FILTER_NONE, FILTER_WORKER, FILTER_OBSERVER, FILTER_ENGINE, FILTER_KEEPER } Filter;

static int load_filter(Filter filter) {
        switch (filter) {
        case FILTER_NONE: return 0;
        case FILTER_WORKER: return sandbox_filter(0);
        case FILTER_OBSERVER: return sandbox_filter(SANDBOX_INOTIFY);
        case FILTER_ENGINE: late_libraries_load(); return sandbox_filter(SANDBOX_NETWORK);
        case FILTER_KEEPER: return sandbox_filter_keeper();
        }
        return -EINVAL;
}

/* 0, or the errno that the attempt met in a child with this filter. */
static int outcome(const Attempt *a, Filter filter) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                /* what the filter needs of a process without rights */
                if (filter != FILTER_NONE &&
                    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || load_filter(filter) < 0))
                        _exit(UINT8_MAX);
                errno = 0;
                _exit(a->attempt() == -1 ? errno : 0);
        }
        CHECK(pid > 0);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status))
                test_fail(__FILE__, __LINE__, a->name, "a signal", "an exit code");
        return WEXITSTATUS(status);
}

static void expect(const Attempt *a, Filter filter, int error) {
        int got = outcome(a, filter);

        if (got != error)
                test_fail(__FILE__, __LINE__, a->name, got ? strerror(got) : "allowed", error ? strerror(error) : "allowed");
}

static void test_refused(void) {
        for (size_t i = 0; i < N_ELEMENTS(attempts); i++) {
                expect(&attempts[i], FILTER_NONE, 0);
                expect(&attempts[i], FILTER_WORKER, EPERM);
        }
}

static void test_needed(void) {
        for (size_t i = 0; i < N_ELEMENTS(uses); i++) {
                expect(&uses[i], FILTER_NONE, 0);
                expect(&uses[i], FILTER_WORKER, 0);
        }
}

static void test_observers(void) {
        for (size_t i = 0; i < N_ELEMENTS(observers_attempts); i++) {
                expect(&observers_attempts[i], FILTER_NONE, 0);
                expect(&observers_attempts[i], FILTER_OBSERVER, EPERM);
        }
        expect(&observers_use, FILTER_NONE, 0);
        expect(&observers_use, FILTER_WORKER, EPERM);
        expect(&observers_use, FILTER_OBSERVER, 0);
}

static void test_engines(void) {
        for (size_t i = 0; i < N_ELEMENTS(engines_attempts); i++) {
                expect(&engines_attempts[i], FILTER_NONE, 0);
                expect(&engines_attempts[i], FILTER_ENGINE, EPERM);
        }
        for (size_t i = 0; i < N_ELEMENTS(engines_uses); i++) {
                expect(&engines_uses[i], FILTER_NONE, 0);
                expect(&engines_uses[i], FILTER_ENGINE, 0);
        }
}

static void test_keepers(void) {
        for (size_t i = 0; i < N_ELEMENTS(keepers_attempts); i++) {
                expect(&keepers_attempts[i], FILTER_NONE, 0);
                expect(&keepers_attempts[i], FILTER_KEEPER, EPERM);
        }
}

int main(void) {
        static const Test tests[] = {
                TEST(test_refused), TEST(test_needed), TEST(test_observers), TEST(test_engines), TEST(test_keepers),
        };

        parent = getpid();
        shared_inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (!mkdtemp(folder))
                return EXIT_FAILURE;
        if (test_main(tests, N_ELEMENTS(tests)) != EXIT_SUCCESS)
                return EXIT_FAILURE;
        return rmdir(folder) == 0 ? EXIT_SUCCESS : EXIT_FAILURE; /* each child has left one file, and deleted it */
}
