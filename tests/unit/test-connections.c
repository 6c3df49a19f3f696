/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connections of a user's workers to a server: which worker gets one, which is asked for one and when, workers that die,
 * a reload, and workers that break the rules. The test's clock does not advance by itself. The workers are stubs, which are
 * children here, as those of a file.
 */
#include <string.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)
#define OVERDUE_USEC (SECOND / 10) /* more than a job waits before another worker starts */
#define SERVER "open"
#define FILE "other"

enum { A, B }; /* peers, each of a user of its own */

int __real_worker_process_start(WorkerProcess *p, Context *context, EngineKind engine, int job_fd, int changes_fd,
                                int counts_fd, WorkerProcessHandler on_ended, void *userdata, int *ret_control_fd);
int __wrap_worker_process_start(WorkerProcess *p, Context *context, EngineKind engine, int job_fd, int changes_fd,
                                int counts_fd, WorkerProcessHandler on_ended, void *userdata, int *ret_control_fd);

int __wrap_worker_process_start(WorkerProcess *p, Context *context, EngineKind engine, int job_fd, int changes_fd,
                                int counts_fd, WorkerProcessHandler on_ended, void *userdata, int *ret_control_fd) {
        (void) engine;
        return __real_worker_process_start(p, context, ENGINE_KIND_SQLITE, job_fd, changes_fd, counts_fd, on_ended, userdata,
                                           ret_control_fd);
}

static DatabaseConfig *server(void) {
        return database_find(&rig.manager->context, SERVER)->config;
}

static void begin(uint64_t connections_max) {
        Limits *l;

        rig_begin_users();
        l = &rig.manager->context.config->limits;
        l->workers_max = 8;
        l->workers_total_max = 32;
        l->runs_max = l->statements_max = 20;
        rig.manager->context.n_cpus = 1; /* so a worker is started only for a job that waits */
        server()->engine = ENGINE_KIND_POSTGRESQL;
        if (!server()->server)
                server()->server = g_strdup("host=server");
        server()->connections_max = connections_max;
}

static void end(void) {
        rig_check_nothing_left();
}

static const Worker *worker(unsigned n) {
        const Worker *w = g_queue_peek_nth(&rig.manager->context.workers, n);

        CHECK(w);
        return w;
}

static void say(unsigned n, MessageKind kind) {
        stub_worker_say(n, &(Message) { .kind = kind });
        rig_pump();
}

static void want(unsigned n) {
        say(n, MESSAGE_CONNECTION_WANTED);
}

static void give_back(unsigned n) {
        say(n, MESSAGE_CONNECTION_RETURNED);
}

/* One more run of the peer, which the worker takes. */
static void add_run(unsigned peer, unsigned n) {
        rig_query(peer, SERVER);
        rig_pump();
        CHECK(stub_worker_take(n));
        rig_pump();
}

/* A new worker of the peer with a run. Returns its number. */
static unsigned start(unsigned peer) {
        unsigned n = stub_workers_alive();

        rig_query(peer, SERVER);
        rig_pass_time(OVERDUE_USEC);
        CHECK_INT(stub_workers_alive(), n + 1);
        CHECK(stub_worker_take(n));
        rig_pump();
        return n;
}

static void end_run(unsigned n) {
        stub_worker_finish(n);
        rig_pump();
}

/* How many connections each of the workers from 0 on may have, and how often each was asked for one, as digits. */
static void check(const char *connections, const char *asked) {
        char got[16] = {}, got_asked[16] = {};

        CHECK(strlen(connections) < sizeof got);
        for (unsigned n = 0; n < strlen(connections); n++) {
                StubConnections c = stub_worker_connections(n);

                got[n] = (char) ('0' + worker(n)->n_connections);
                got_asked[n] = (char) ('0' + c.n_asked);
        }
        CHECK_STRING(got, connections);
        CHECK_STRING(got_asked, asked);
}

/* A worker gets as many as there are. The next one must wait. */
static void test_one_worker(void) {
        begin(4);
        (void) start(A);
        check("1", "0");
        for (unsigned i = 2; i <= 4; i++) {
                add_run(A, 0);
                want(0);
                CHECK_INT(worker(0)->n_connections, i);
                CHECK_INT(stub_worker_connections(0).n_granted, i - 1);
        }
        add_run(A, 0);
        want(0);
        check("4", "0");
        CHECK_INT(stub_worker_connections(0).n_granted, 3);
        CHECK_INT(group_connections_left(worker(0)->group), 0);
        (void) start(B); /* another user has connections of its own */
        want(1);
        check("42", "00");
        end();
}

/* A worker that has more connections than runs is asked for one, once. */
static void test_moves(void) {
        begin(4);
        (void) start(A);
        (void) start(A);
        want(0);
        want(0);
        check("31", "00");
        add_run(A, 0);
        add_run(A, 0);
        want(1);
        check("31", "00"); /* each is in use */
        end_run(0);
        check("31", "10");
        end_run(0);
        check("31", "10");
        give_back(0);
        check("22", "10");
        want(0);
        check("22", "11");
        end();
}

/* Even an idle worker gives its only connection, and gets one again when it needs it. */
static void test_idle_worker(void) {
        begin(2);
        (void) start(A);
        (void) start(A);
        end_run(1);
        want(0);
        check("11", "01");
        give_back(1);
        check("20", "01");
        rig_query(A, SERVER);
        rig_pump();
        stub_worker_hear(1); /* it has the run without taking it */
        want(1);
        check("20", "11");
        give_back(0);
        check("11", "11");
        end();
}

/* No worker is started that would have no connection. Others are asked for one first. */
static void test_starts(void) {
        begin(2);
        (void) start(A);
        add_run(A, 0);
        want(0);
        rig_query(A, SERVER);
        rig_pass_time(OVERDUE_USEC);
        CHECK_INT(stub_workers_alive(), 1);
        check("2", "0");
        CHECK(worker(0)->group->starved);
        end_run(0);
        rig_pass_time(SECOND);
        check("2", "1");
        CHECK_INT(stub_workers_alive(), 1);
        give_back(0);
        rig_pass_time(0);
        CHECK_INT(stub_workers_alive(), 2); /* at once */
        check("11", "10");
        end();
}

/* The connections of a worker that is gone go to others. */
static void test_dies(void) {
        begin(3);
        (void) start(A);
        (void) start(A);
        want(0);
        add_run(A, 0);
        want(1);
        check("21", "00");
        stub_worker_die(0, CLD_KILLED, 9);
        rig_pump();
        check("2", "0");
        CHECK_INT(stub_worker_connections(0).n_granted, 1);
        end();
}

/* A database that a reload has changed is a new object. The workers of the old one count until they end, and get no more. */
static void test_reload(void) {
        Database *old, *changed;
        g_autoptr(Group) g = NULL;
        DatabaseConfig *config = g_new0(DatabaseConfig, 1);

        begin(4);
        (void) start(A);
        add_run(A, 0);
        want(0);
        old = database_find(&rig.manager->context, SERVER);
        *config = (DatabaseConfig) { .name = g_strdup(SERVER), .engine = ENGINE_KIND_POSTGRESQL, .connections_max = 2,
                                     .server = g_strdup("host=server"), .limits = old->config->limits };
        CHECK_INT(database_new(&rig.manager->context, config, &changed), 0);
        CHECK_INT(group_get(worker(0)->group->user, changed, false, &g), 0);
        CHECK_INT(group_connections_left(g), 0);
        old->published = false;
        want(0);
        CHECK_INT(worker(0)->n_connections, 2);
        end_run(0);
        CHECK(group_ask_for_connection(g, NULL));
        check("2", "1");
        give_back(0);
        check("1", "1");
        CHECK_INT(group_connections_left(g), 1);
        g_free(config->server);
        config->server = g_strdup("host=elsewhere"); /* connections to another server do not count */
        want(0);
        config->connections_max = 1;
        CHECK_INT(group_connections_left(g), 1);
        old->published = true;
        g = group_unref(g);
        (void) database_unref(changed);
        end();
}

/* A worker that waits for a server keeps no other user's file from a second worker. */
static void test_takes_no_cpu(void) {
        begin(4);
        rig.manager->context.n_cpus = 2;
        (void) start(A);
        rig_query(B, FILE);
        rig_pump();
        CHECK(stub_worker_take(1));
        rig_pump();
        CHECK_INT(stub_workers_alive(), 2);
        rig_query(B, FILE);
        rig_pump();
        CHECK(stub_worker_take(1));
        rig_query(B, FILE);
        rig_pump();
        CHECK_INT(stub_workers_alive(), 3); /* though no time has passed */
        end();
}

static void test_broken_rules(void) {
        begin(1);
        (void) start(A);
        give_back(0);
        CHECK_INT(stub_workers_alive(), 0);
        end();

        begin(1);
        (void) start(A);
        want(0);
        CHECK_INT(stub_workers_alive(), 1);
        want(0);
        CHECK_INT(stub_workers_alive(), 0);
        end();

        begin(1); /* a file has no connections */
        rig_query(A, FILE);
        rig_pass_time(OVERDUE_USEC);
        CHECK(stub_worker_take(0));
        CHECK_INT(group_worker_bound(worker(0)->group), WORKER_BOUND_NONE);
        want(0);
        CHECK_INT(stub_workers_alive(), 0);
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_one_worker), TEST(test_moves), TEST(test_idle_worker), TEST(test_starts), TEST(test_dies),
                TEST(test_reload), TEST(test_takes_no_cpu), TEST(test_broken_rules),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
