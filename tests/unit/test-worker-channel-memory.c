/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts the allocations of a prepared query in a worker: our code makes none, and SQLite's are printed. The worker's loop
 * runs in a child of this test, linked with a malloc() of its own; SQLite's hooks report SQLite's allocations.
 *
 * A worker that waits for a while releases memory, and takes it again after that. So the child has a clock of its own,
 * which goes on by a tenth of a microsecond whenever the child looks at it, and no timers: it never waits for a while.
 */
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/core/worker-loop.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/rigs/channel-rig.h"

#define N_QUERIES 1000u
#define LOOK_NSEC 100

typedef struct Counts {
        unsigned ours, sqlite;
} Counts;

static Counts *counts;             /* shared with the child */
static bool is_worker;
static uint64_t worker_nsec = 1000000000;
static sqlite3_mem_methods sqlite_methods;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *ret_old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *ret_old);

void *__wrap_malloc(size_t size) {
        counts->ours += is_worker;
        return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
        counts->ours += is_worker;
        return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size) {
        counts->ours += is_worker;
        return __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size) {
        counts->ours += is_worker;
        return __real_reallocarray(p, n, size);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        if (!is_worker)
                return __real_clock_gettime(clock, ret);
        worker_nsec += LOOK_NSEC;
        *ret = (struct timespec) {
                .tv_sec = (time_t) (worker_nsec / 1000000000),
                .tv_nsec = (long) (worker_nsec % 1000000000),
        };
        return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *ret_old) {
        return is_worker ? 0 : __real_timerfd_settime(fd, flags, value, ret_old);
}

static void *sqlite_malloc(int size) {
        counts->sqlite++;
        return sqlite_methods.xMalloc(size);
}

static void *sqlite_realloc(void *p, int size) {
        counts->sqlite++;
        return sqlite_methods.xRealloc(p, size);
}

static _Noreturn void be_worker(int job_fd, int control_fd, const char *path) {
        ReceivedMessage setup = { .message = { .kind = MESSAGE_SETUP, .setup = wide }, .pipe_fd = -1, .memory_fd = -1 };
        sqlite3_mem_methods counting;
        WorkerLoop queue;

        setup.message.setup.path = path;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* by its clock it would never leave a client that is gone */
                _exit(2);
        /* made ready in the parent, which made the database */
        if (sqlite3_shutdown() != SQLITE_OK || sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_methods) != SQLITE_OK)
                _exit(2);
        counting = sqlite_methods;
        counting.xMalloc = sqlite_malloc;
        counting.xRealloc = sqlite_realloc;
        if (sqlite3_config(SQLITE_CONFIG_MALLOC, &counting) != SQLITE_OK || sqlite_engine.init(&wide) < 0)
                _exit(2);
        is_worker = true;
        if (worker_loop_init(&queue, &sqlite_engine, job_fd, control_fd, &setup) < 0 || worker_loop_run(&queue) < 0)
                _exit(1);
        worker_loop_done(&queue);
        _exit(0);
}

static void start(Rig *rig) {
        int job[2], control[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, job), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), ==, 0);
        rig->pid = fork();
        g_assert_cmpint(rig->pid, >=, 0);
        if (rig->pid == 0)
                be_worker(job[1], control[1], rig->database);
        close(job[1]);
        close(control[1]);
        rig->job_fd = job[0];
        rig->control_fd = control[0];
}

static void fetch(Client *c, uint64_t statement, int64_t value) {
        uint64_t number = client_add_fetch(c, statement, 1, &value);

        client_send(c);
        g_assert_cmpuint(client_expect(c, number, ERROR_NONE).n_rows, ==, 1);
}

/* Reports that came meanwhile: each is an allocation, and they come twice a second. */
static unsigned count_reports(Rig *rig) {
        unsigned n = 0;

        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                if (message_receive(rig->control_fd, &m) <= 0)
                        return n;
                g_assert_cmpint(m.message.kind, ==, MESSAGE_CHANNEL_PROGRESS);
                received_message_done(&m);
                n++;
        }
}

/* A thousand queries, once they are warm. */
static void check(Rig *rig, Client *c, const char *sql, const char *mode) {
        uint64_t statement = client_add_prepare(c, sql);
        unsigned n_reports;
        Counts before;

        client_send(c);
        (void) client_expect(c, statement, ERROR_NONE);
        for (unsigned i = 0; i < 10; i++)
                fetch(c, statement, 7);
        (void) count_reports(rig);
        before = *counts;
        g_assert_cmpuint(before.ours, >, 0); /* they are counted */
        for (unsigned i = 0; i < N_QUERIES; i++)
                fetch(c, statement, 7);
        n_reports = count_reports(rig);
        g_assert_cmpuint(counts->ours - before.ours, ==, n_reports);
        g_test_message("%s: %s: SQLite allocated %.2f times a query", mode, sql,
                       (double) (counts->sqlite - before.sqlite) / N_QUERIES);
}

static void test_no_allocation(void) {
        static const char *const modes[] = { "DELETE", "WAL" };

        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                g_autofree char *set = g_strdup_printf("PRAGMA journal_mode = %s", modes[i]);
                Client c;
                Rig rig;

                rig_init_folder(&rig);
                exec_sql(rig.database, set);
                exec_sql(rig.database, "CREATE TABLE t(i INTEGER PRIMARY KEY, r REAL, s TEXT UNIQUE); "
                                       "INSERT INTO t VALUES(7, 1, '7')");
                start(&rig);
                client_start(&rig, &c);
                check(&rig, &c, "SELECT * FROM t WHERE i = ?", modes[i]);
                check(&rig, &c, "SELECT r FROM t WHERE s = ?", modes[i]);
                check(&rig, &c, "SELECT ?", modes[i]);
                client_done(&c);
                rig_done(&rig);
        }
}

int main(int argc, char **argv) {
        counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (counts == MAP_FAILED)
                return EXIT_FAILURE;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/channel/no-allocation", test_no_allocation);
        return g_test_run();
}
