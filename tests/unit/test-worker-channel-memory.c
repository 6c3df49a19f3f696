/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts the allocations of a prepared query in a worker: our code makes none, and SQLite's are printed. The worker's loop
 * runs in a child of this test, linked with a malloc() of its own; SQLite's hooks report SQLite's allocations.
 */
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/core/worker-loop.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/rigs/channel-rig.h"

#define N_QUERIES 1000u
#define STALL_USEC 100000 /* no query takes so long by itself */

typedef struct Counts {
        unsigned ours, sqlite;
} Counts;

static Counts *counts;             /* shared with the child */
static bool is_worker;
static sqlite3_mem_methods sqlite_methods;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

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

/* A thousand queries. Returns the longest time that one took. */
static int64_t fetch_thousand(Client *c, uint64_t statement) {
        int64_t longest = 0;

        for (unsigned i = 0; i < N_QUERIES; i++) {
                int64_t start = g_get_monotonic_time();

                fetch(c, statement, 7);
                longest = MAX(longest, g_get_monotonic_time() - start);
        }
        return longest;
}

/* A thousand of them, once they are warm; again if the machine stalled, since a worker that waits releases memory. */
static void check(Rig *rig, Client *c, const char *sql, const char *mode) {
        uint64_t statement = client_add_prepare(c, sql);
        unsigned n_reports;
        int64_t longest;
        Counts before;

        client_send(c);
        (void) client_expect(c, statement, ERROR_NONE);
        do {
                for (unsigned i = 0; i < 10; i++)
                        fetch(c, statement, 7);
                (void) count_reports(rig);
                before = *counts;
                g_assert_cmpuint(before.ours, >, 0); /* they are counted */
                longest = fetch_thousand(c, statement);
                n_reports = count_reports(rig);
        } while (counts->ours - before.ours != n_reports && longest > STALL_USEC);
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
