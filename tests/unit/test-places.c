/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The places of workers: WorkersMax=, WorkersTotalMax= and the share that is kept for others, QueueTimeoutSec= for all who
 * wait, and an idle worker that does not end. The test's clock does not advance by itself.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/workers/worker.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)
#define SIBLING_USEC (SECOND / 10) /* more than a job waits before another worker starts */
#define TURN_USEC (SECOND / 2)
#define QUEUE_USEC (11 * SECOND)   /* a little more than QueueTimeoutSec= */

static Limits limits_before;

/* As many peers as there are, each of a user of its own. */
static void begin(uint64_t workers_max, uint64_t workers_total_max) {
        if (!rig.manager) {
                rig_init();
                limits_before = rig.manager->context.config->limits;
        }
        rig.n_peers = RIG_N_PEERS_MAX;
        rig_begin();
        for (unsigned i = 0; i < rig.n_peers; i++)
                rig.peers[i] = (RigPeer) { .uid = 1000 + i };
        rig.manager->context.config->limits.workers_max = workers_max;
        rig.manager->context.config->limits.workers_total_max = workers_total_max;
        rig.manager->context.config->limits.runs_max = 100;
}

static void end(void) {
        rig_check_nothing_left();
        rig.manager->context.config->limits = limits_before;
}

static unsigned n_workers(void) {
        return rig.manager->context.workers.length;
}

/* Returns the call's index in rig.calls. */
static size_t query(unsigned peer, const char *database) {
        rig_query(peer, database);
        rig_pass_time(SIBLING_USEC);
        return rig.n_calls - 1;
}

static const Worker *worker_nth(unsigned n) {
        return g_queue_peek_nth(&rig.manager->context.workers, n);
}

/* The run that the worker took last. */
static uint64_t number_of_last_run(const Worker *w) {
        CHECK(w && w->runs.tail);
        return ((const Run *) w->runs.tail->data)->number;
}

/* Worker `n` of those that are alive, `w` in the supervisor, takes a job and starts it. Returns the number of the run. */
static uint64_t take_as(unsigned n, const Worker *w) {
        CHECK(stub_worker_take(n));
        rig_pump();
        const uint64_t number = number_of_last_run(w);

        stub_worker_say(n, &(Message) { .kind = MESSAGE_STARTED, .started = { .number = number, .described = true } });
        rig_pump();
        return number;
}

/* The same for the newest. */
static uint64_t take(unsigned n) {
        return take_as(n, worker_nth(n_workers() - 1));
}

/* A run of the peer keeps a worker, which is a new one. Its turn passes. Returns the number of the run. */
static uint64_t occupy(unsigned peer, const char *database) {
        unsigned n = n_workers();
        const RigCall *c = &rig.calls[query(peer, database)];

        CHECK_INT(n_workers(), n + 1);
        CHECK_INT(stub_workers_alive(), n + 1);
        const uint64_t number = take(n);
        CHECK_INT(c->n_replies, 1);
        CHECK_STRING(c->error, "");
        rig_pass_time(TURN_USEC);
        return number;
}

static void end_run(unsigned worker, uint64_t number) {
        stub_worker_say(worker, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = { .number = number, .failure.sql_offset = -1, .drained = true },
        });
        rig_pump();
}

/* The peer gets no worker: its call waits as long as calls may, and is told why. */
static void check_busy(unsigned peer, const char *database, const char *key) {
        unsigned n = n_workers();
        const RigCall *c = &rig.calls[query(peer, database)];

        rig_pass_time(8 * SECOND);
        CHECK_INT(c->n_replies, 0);
        rig_pass_time(QUEUE_USEC - 8 * SECOND);
        CHECK_INT(c->n_replies, 1);
        CHECK_STRING(c->error, SQLIPC_ERROR_PREFIX "Busy");
        CHECK(strstr(c->sentence, key));
        CHECK_INT(n_workers(), n);
}

/* ---- Bounds ---- */

static void test_workers_of_a_user(void) {
        begin(2, 8);
        occupy(0, "open");
        occupy(0, "open");
        check_busy(0, "open", "worker");
        occupy(1, "open");
        end();
}

static void test_half_of_all(void) {
        begin(8, 4);
        occupy(0, "open");
        occupy(0, "open");
        check_busy(0, "open", "WorkersTotalMax=");
        occupy(1, "open");
        occupy(2, "open");
        end();
}

/* Half of the places are kept for users without a worker. */
static void test_places_for_others(void) {
        static const unsigned shares[][2] = { { 2, 1 }, { 3, 1 }, { 4, 2 }, { 8, 4 } };

        for (size_t i = 0; i < N_ELEMENTS(shares); i++) {
                const unsigned total = shares[i][0], of_one = shares[i][1];

                begin(8, total);
                for (unsigned n = 0; n < of_one; n++)
                        occupy(0, "open");
                check_busy(0, "open", "WorkersTotalMax=");
                for (unsigned n = 0; n < total - of_one; n++)
                        occupy(1 + n, "open");
                check_busy(7, "open", "WorkersTotalMax=");
                end();
        }
}

/* A user with busy workers on one database gets one on another, and leaves places for others. */
static void test_places_on_other_databases(void) {
        begin(8, 8);
        for (unsigned n = 0; n < 4; n++)
                occupy(0, "open");
        occupy(0, "second");
        occupy(0, "third");
        check_busy(0, "fourth", "WorkersTotalMax=");
        occupy(1, "open");
        occupy(2, "open");
        end();
}

/* One place of a database is kept for a user without a worker there. */
static void test_places_on_a_database(void) {
        begin(8, 8);
        Database *d = g_hash_table_lookup(rig.manager->context.databases, "open");
        DatabaseConfig *config = d->config;
        const uint64_t before = config->limits.workers_max;

        config->limits.workers_max = 3;
        occupy(0, "open");
        occupy(0, "open");
        check_busy(0, "open", "on this database");
        occupy(1, "open");
        check_busy(2, "open", "on this database");
        end();
        config->limits.workers_max = before;
}

/* ---- Time ---- */

/* An idle worker that does not obey EXIT is killed: otherwise it would count against its user for ever. */
static void test_idle_worker_that_does_not_end(void) {
        begin(1, 8);
        end_run(0, occupy(0, "open"));
        rig_pass_time(11 * SECOND); /* WorkerIdleSec= */
        CHECK_INT(n_workers(), 1);
        rig_pass_time(5 * SECOND);
        CHECK_INT(n_workers(), 0);
        occupy(0, "open");
        end();
}

/* An idle worker gives its place at once to another database of its user, and to another user. */
static void test_idle_worker_gives_way(void) {
        for (unsigned other = 0; other < 2; other++) {
                begin(other ? 8 : 1, other ? 1 : 8);
                end_run(0, occupy(0, "open"));
                rig_query(other, other ? "open" : "second");
                rig_pump();
                CHECK_INT(worker_nth(0)->state, WORKER_ENDING);
                CHECK(stub_workers_be_honest());
                rig_pump();
                CHECK_INT(n_workers(), 1);
                CHECK_INT(worker_nth(0)->group->user->uid, 1000 + other);
                CHECK_STRING(worker_nth(0)->group->database->config->name, other ? "open" : "second");
                end();
        }
}

/* ---- Turns ---- */

/* The peer whose worker is the newest. */
static unsigned newest(void) {
        return worker_nth(n_workers() - 1)->group->user->uid - 1000;
}

/* Of eight users who ask at once, two for each of the two processors get a worker. The others get one in their order, as
 * soon as a run ends, or its turn is over. */
static void test_turns(void) {
        uint64_t numbers[4];

        begin(8, 8);
        for (unsigned peer = 0; peer < 4; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                CHECK_INT(n_workers(), peer + 1);
                numbers[peer] = take(peer);
        }
        for (unsigned peer = 4; peer < 8; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                CHECK_INT(n_workers(), 4);
        }
        rig_query(0, "open"); /* not even a sibling goes before them */
        rig_pass_time(SECOND / 40);
        CHECK_INT(n_workers(), 4);
        end_run(1, numbers[1]);
        rig_pass_time(SECOND / 100);
        CHECK_INT(n_workers(), 5);
        CHECK_INT(newest(), 4);
        end_run(2, numbers[2]);
        end_run(3, numbers[3]);
        rig_pass_time(SECOND / 100);
        CHECK_INT(n_workers(), 7);
        CHECK_INT(newest(), 6);
        for (unsigned n = 4; n < 7; n++)
                CHECK(stub_worker_take(n));
        rig_pump();
        rig_pass_time(SECOND / 100);
        CHECK_INT(n_workers(), 7);
        rig_pass_time(TURN_USEC);
        CHECK_INT(newest(), 7);
        end();
}

/* A worker of peer 0 that is idle; its run took so long. */
static void keep_idle(uint64_t usec) {
        rig_query(0, "open");
        rig_pump();
        const uint64_t number = take(0);
        rig_pass_time(usec);
        end_run(0, number);
}

static bool is_used(unsigned worker) {
        return worker_nth(worker)->runs.length > 0;
}

/* A user with an idle worker waits for a turn after the users without a worker, unless the user's last query was quick. */
static void test_turn_of_an_idle_worker(void) {
        for (unsigned quick = 0; quick < 2; quick++) {
                uint64_t numbers[5];

                begin(8, 8);
                keep_idle(quick ? SECOND / 200 : SECOND / 20);
                for (unsigned peer = 1; peer < 5; peer++) {
                        rig_query(peer, "open");
                        rig_pass_time(SECOND / 100);
                        numbers[peer] = take(peer);
                }
                rig_query(5, "open");
                rig_pass_time(SECOND / 100);
                CHECK_INT(n_workers(), 5);
                rig_query(0, "open");
                rig_pass_time(SECOND / 100);
                CHECK_INT(is_used(0), quick);
                if (!quick) {
                        end_run(1, numbers[1]);
                        rig_pass_time(SECOND / 100);
                        CHECK_INT(newest(), 5);
                        CHECK(!is_used(0));
                        end_run(2, numbers[2]);
                        rig_pass_time(SECOND / 100);
                        CHECK(is_used(0));
                }
                end();
        }
}

static sd_bus_message *new_call(const char *member) {
        return rig_new_call(0, SQLIPC_DATABASE_PATH "/open", SQLIPC_DATABASE_INTERFACE, member);
}

/* Peer 0 has a transaction in its first worker. Its query waits for a turn, and keeps its place among those that wait while
 * statements of the transaction go to their worker. */
static void test_turn_beside_transaction(void) {
        sd_bus_message *m = NULL;
        uint64_t number;

        begin(8, 8);
        m = new_call("Begin");
        CHECK(sd_bus_message_append(m, "a{sv}", 1, "mode", "s", "read") >= 0);
        rig_send_call(0, m, true);
        rig_pump();
        number = take(0);
        rig_query(0, "open");
        rig_pass_time(SIBLING_USEC);
        CHECK_INT(n_workers(), 2);
        const uint64_t slow = take(1);
        rig_pass_time(SECOND / 20);
        end_run(1, slow);
        for (unsigned peer = 1; peer < 5; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                (void) take(peer + 1);
        }
        rig_query(0, "open");
        rig_query(5, "open");
        rig_pass_time(SECOND / 100);
        const GQueue *starved = &rig.manager->context.starved;
        const Group *first = worker_nth(0)->group;
        CHECK_INT(starved->length, 2);
        CHECK(starved->head->data == first);
        m = new_call("Query");
        CHECK(sd_bus_message_append(m, "sava{sv}a{sv}", "SELECT 1", 0, 0, 1, "transaction", "t", number) >= 0);
        rig_send_call(0, m, true);
        rig_pass_time(SECOND / 100);
        CHECK_INT(worker_nth(0)->runs.length, 2);
        CHECK_INT(starved->length, 2);
        CHECK(starved->head->data == first);
        end();
}

/* The worker of this peer ends a run, and takes the user's next one, which waits in the socket. Returns its number. */
static uint64_t go_on(unsigned worker, uint64_t number) {
        rig_query(worker, "open");
        rig_pump();
        stub_worker_say(worker, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = { .number = number, .failure.sql_offset = -1, .drained = true },
        });
        return take_as(worker, worker_nth(worker));
}

/* A user who always has the next query in the socket has one turn, not one for each query. */
static void test_turn_of_many_queries(void) {
        uint64_t numbers[4];

        begin(8, 8);
        for (unsigned peer = 0; peer < 4; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                numbers[peer] = take(peer);
        }
        rig_query(4, "open");
        for (unsigned i = 0; i < 6; i++) {
                rig_pass_time(SECOND / 10);
                for (unsigned peer = 0; peer < 4; peer++)
                        numbers[peer] = go_on(peer, numbers[peer]);
        }
        CHECK_INT(n_workers(), 5);
        CHECK_INT(newest(), 4);
        end();
}

/* Quick queries, which need no turn, take none from others. */
static void test_turns_beside_quick_queries(void) {
        begin(8, 8);
        for (unsigned peer = 0; peer < 4; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                const uint64_t number = take(peer);
                rig_pass_time(SECOND / 200);
                end_run(peer, number);
        }
        rig_pass_time(TURN_USEC);
        for (unsigned peer = 0; peer < 4; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 1000);
                CHECK(is_used(peer));
        }
        rig_query(4, "open");
        rig_pass_time(SECOND / 1000);
        CHECK_INT(n_workers(), 5);
        CHECK_INT(newest(), 4);
        end();
}

/* Of a user's queries to several databases, one goes before the first query of another user, not all that came before it. */
static void test_turns_of_a_user(void) {
        static const char *const databases[] = { "open", "second", "third" };
        uint64_t numbers[4];

        begin(8, 32);
        for (unsigned peer = 0; peer < 4; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                numbers[peer] = take(peer);
        }
        for (unsigned i = 0; i < 4; i++) {
                rig_query(i < 3 ? 4 : 5, databases[i % 3]);
                rig_pass_time(SECOND / 100);
        }
        for (unsigned i = 0; i < 3; i++) {
                static const unsigned users[] = { 4, 5, 4 };

                CHECK_INT(n_workers(), 4 + i);
                end_run(i, numbers[i]);
                rig_pass_time(SECOND / 100);
                CHECK_INT(n_workers(), 5 + i);
                CHECK_INT(newest(), users[i]);
        }
        end();
}

/* A query that waits for the turn of an idle worker goes on if the worker gets a channel meanwhile. */
static void test_turn_beside_a_channel(void) {
        begin(8, 8);
        keep_idle(SECOND / 20);
        for (unsigned peer = 1; peer < 5; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                (void) take(peer);
        }
        rig_query(0, "open");
        rig_pass_time(SECOND / 100);
        CHECK(!is_used(0));
        sd_bus_message *m = rig_new_call(0, SQLIPC_DATABASE_PATH "/open", SQLIPC_DATABASE_INTERFACE, "OpenChannel");
        CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        rig_send_call(0, m, true);
        rig_pump();
        CHECK_INT(send(rig.fds[rig.n_fds - 1], "x", 1, 0), 1);
        rig_pass_time(2 * TURN_USEC);
        CHECK(stub_worker_take(0));
        rig_pump();
        CHECK(is_used(0));
        end();
}

/* Runs that wait for their readers, and runs that compute for long, delay no start. */
static void test_no_turn(void) {
        begin(8, 8);
        for (unsigned peer = 0; peer < 4; peer++)
                occupy(peer, "open");
        for (unsigned peer = 4; peer < 8; peer++) {
                (void) query(peer, "open");
                CHECK_INT(n_workers(), peer + 1);
                const uint64_t number = take(peer);

                stub_worker_say(peer, &(Message) { .kind = MESSAGE_PARKED, .parked = { .number = number, .parked = true } });
                rig_pump();
        }
        end();
}

/* A queue that moves makes no call fail, however long the call waits. A queue that stands still does. */
static void test_queue_that_moves(void) {
        uint64_t numbers[2];
        size_t calls[RIG_N_PEERS_MAX];

        begin(8, 2);
        for (unsigned peer = 0; peer < 2; peer++)
                numbers[peer] = occupy(peer, "open");
        for (unsigned peer = 2; peer < 8; peer++)
                calls[peer] = query(peer, "open");
        for (unsigned peer = 2; peer < 7; peer++) {
                rig_pass_time(8 * SECOND);
                end_run(peer % 2, numbers[peer % 2]); /* its worker gives up the place */
                rig_pass_time(SIBLING_USEC);
                stub_worker_die(peer % 2, CLD_EXITED, 0);
                rig_pass_time(SIBLING_USEC);
                CHECK_INT(n_workers(), 2);
                CHECK_INT(newest(), peer);
                numbers[peer % 2] = take(peer % 2);
                CHECK_STRING(rig.calls[calls[peer]].error, "");
                CHECK_INT(rig.calls[calls[peer]].n_replies, 1);
                CHECK_INT(rig.calls[calls[7]].n_replies, 0);
        }
        rig_pass_time(8 * SECOND);
        CHECK_INT(rig.calls[calls[7]].n_replies, 0);
        rig_pass_time(QUEUE_USEC - 8 * SECOND);
        CHECK_STRING(rig.calls[calls[7]].error, SQLIPC_ERROR_PREFIX "Busy");
        end();
}

/* Users with many queries under way give up places for users without a worker, and their queries go on later. */
static void test_places_of_many_queries(void) {
        uint64_t numbers[2];

        begin(8, 2);
        for (unsigned peer = 0; peer < 2; peer++) {
                numbers[peer] = occupy(peer, "open");
                for (unsigned i = 0; i < 5; i++)
                        rig_query(peer, "open");
                rig_pump();
        }
        rig_query(2, "open");
        rig_pass_time(SECOND / 2);
        CHECK(!stub_worker_take(0)); /* the jobs in the sockets are the supervisor's again */
        CHECK(!stub_worker_take(1));
        end_run(0, numbers[0]);
        rig_pass_time(SECOND / 100);
        stub_worker_die(0, CLD_EXITED, 0);
        rig_pass_time(SIBLING_USEC);
        CHECK_INT(n_workers(), 2);
        CHECK_INT(newest(), 2);
        const uint64_t number = take(0); /* in the place of the one that died */
        rig_pass_time(SECOND / 100);
        end_run(1, numbers[1]); /* the next place is for peer 0, whose jobs still wait */
        rig_pass_time(SECOND / 100);
        stub_worker_die(1, CLD_EXITED, 0);
        rig_pass_time(SIBLING_USEC);
        CHECK_INT(newest(), 0);
        end_run(0, number);
        rig_pass_time(SECOND / 100);
        end();
}

/* A user who waits for a place or a turn and leaves delays the others no longer. */
static void test_waiting_user_leaves(void) {
        begin(8, 2);
        for (unsigned peer = 0; peer < 2; peer++) {
                occupy(peer, "open");
                rig_query(peer, "open");
        }
        rig_query(2, "open");
        rig_pass_time(SECOND / 2);
        CHECK(!stub_worker_take(0));
        rig_leave(2);
        rig_pass_time(SECOND / 2);
        CHECK(stub_worker_take(0));
        end();

        begin(8, 8);
        for (unsigned peer = 0; peer < 6; peer++) {
                rig_query(peer, "open");
                rig_pass_time(SECOND / 100);
                if (peer < 4)
                        (void) take(peer);
        }
        CHECK_INT(n_workers(), 4);
        rig_leave(4);
        rig_pass_time(TURN_USEC);
        CHECK_INT(n_workers(), 5);
        CHECK_INT(newest(), 5);
        end();
}

/* A worker that waits for a reader cannot give up its place, so it gets more jobs. */
static void test_places_of_stalled_readers(void) {
        begin(8, 2);
        for (unsigned peer = 0; peer < 2; peer++) {
                const uint64_t number = occupy(peer, "open");

                stub_worker_say(peer, &(Message) { .kind = MESSAGE_PARKED, .parked = { .number = number, .parked = true } });
                rig_pump();
        }
        rig_query(2, "open");
        rig_pass_time(SECOND / 2);
        rig_query(0, "open");
        rig_pass_time(SECOND / 2);
        CHECK(stub_worker_take(0));
        end();
}

static bool is_closed(int fd) {
        char byte;
        ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

        return n == 0 || (n < 0 && errno != EAGAIN);
}

/* A channel that no worker is free for closes when a call over the bus would be Busy. */
static void test_channels_wait_no_longer(void) {
        static const char second[] = SQLIPC_DATABASE_PATH "/second";

        begin(1, 8);
        occupy(0, "open");
        size_t n_fds = rig.n_fds;

        for (unsigned i = 0; i < 2; i++) {
                sd_bus_message *m = rig_new_call(0, second, SQLIPC_DATABASE_INTERFACE, "OpenChannel");

                CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                rig_send_call(0, m, true);
                rig_pump();
                CHECK_INT(rig.n_fds, n_fds + 1 + i);
                CHECK_INT(send(rig.fds[n_fds + i], "x", 1, 0), 1);
        }
        rig_pass_time(8 * SECOND);
        for (unsigned i = 0; i < 2; i++)
                CHECK(!is_closed(rig.fds[n_fds + i]));
        rig_pass_time(QUEUE_USEC - 8 * SECOND);
        for (unsigned i = 0; i < 2; i++)
                CHECK(is_closed(rig.fds[n_fds + i]));
        CHECK_INT(g_hash_table_size(rig.manager->context.channels), 0);
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_workers_of_a_user), TEST(test_half_of_all), TEST(test_places_for_others),
                TEST(test_places_on_other_databases), TEST(test_places_on_a_database),
                TEST(test_idle_worker_that_does_not_end), TEST(test_idle_worker_gives_way), TEST(test_turns),
                TEST(test_turn_of_an_idle_worker), TEST(test_turn_beside_transaction),
                TEST(test_turn_of_many_queries), TEST(test_turns_beside_quick_queries), TEST(test_turns_of_a_user),
                TEST(test_turn_beside_a_channel),
                TEST(test_no_turn), TEST(test_queue_that_moves),
                TEST(test_places_of_many_queries), TEST(test_places_of_stalled_readers),
                TEST(test_waiting_user_leaves),
                TEST(test_channels_wait_no_longer),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
