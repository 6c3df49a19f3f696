/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lease of a database file: which worker gets it next, who is asked for it and when, holders and waiters that die, and
 * workers that break the rules. The test's clock does not advance by itself.
 */
#include <string.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/workers/lease.h"
#include "daemon/supervisor/workers/worker.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)
#define TURN_USEC UINT64_C(500000)
#define SIBLING_USEC (SECOND / 10) /* more than a job waits before another worker starts */
#define UNDEAD_USEC (3 * SECOND)   /* more than a killed worker has to die */

enum { A, B, C }; /* peers, each of a user of its own */

static void begin(void) {
        rig_begin_users();
        rig.manager->context.config->limits.workers_max = 8;
        rig.manager->context.config->limits.workers_total_max = 32;
        rig_set_mode("open", "read-write");
}

static void end(void) {
        rig_check_nothing_left();
        CHECK_INT(g_hash_table_size(rig.manager->context.leases), 0);
}

static const Worker *worker(unsigned n) {
        const Worker *w = g_queue_peek_nth(&rig.manager->context.workers, n);

        CHECK(w);
        return w;
}

/* A new worker of the peer, which is busy with a run. Returns its number. */
static unsigned start(unsigned peer, const char *database) {
        unsigned n = stub_workers_alive();

        rig_query(peer, database);
        rig_pass_time(SIBLING_USEC);
        CHECK_INT(stub_workers_alive(), n + 1);
        CHECK(stub_worker_take(n));
        rig_pump();
        return n;
}

/* Two users have a worker each. */
static void begin_two(void) {
        begin();
        (void) start(A, "open");
        (void) start(B, "open");
}

static void say(unsigned n, MessageKind kind) {
        stub_worker_say(n, &(Message) { .kind = kind });
        rig_pump();
}

static void want(unsigned n) {
        say(n, MESSAGE_LEASE_WANTED);
}

static void give_back(unsigned n) {
        say(n, MESSAGE_LEASE_RETURNED);
}

/* How often each of the workers from 0 on was sent LEASE, as a string of digits. */
static void check_granted(const char *expected) {
        char got[16] = {};

        CHECK(strlen(expected) < sizeof got);
        for (unsigned n = 0; n < strlen(expected); n++)
                got[n] = (char) ('0' + stub_worker_lease(n).n_granted);
        CHECK_STRING(got, expected);
}

/* The same for LEASE_ASKED. */
static void check_asked(const char *expected) {
        char got[16] = {};

        CHECK(strlen(expected) < sizeof got);
        for (unsigned n = 0; n < strlen(expected); n++)
                got[n] = (char) ('0' + stub_worker_lease(n).n_asked);
        CHECK_STRING(got, expected);
}

/* The same for LEASE_TAKEN. */
static void check_taken(const char *expected) {
        char got[16] = {};

        CHECK(strlen(expected) < sizeof got);
        for (unsigned n = 0; n < strlen(expected); n++)
                got[n] = (char) ('0' + stub_worker_lease(n).n_taken);
        CHECK_STRING(got, expected);
}

/* ---- Turns ---- */

/* A worker that writes alone keeps the lease and is not asked for it. */
static void test_alone(void) {
        begin();
        (void) start(A, "open");
        want(0);
        check_granted("1");
        CHECK(lease_is_held_by(worker(0)));
        rig_pass_time(2 * SECOND);
        check_asked("0");
        give_back(0);
        CHECK(!lease_is_held_by(worker(0)));
        CHECK_INT(g_hash_table_size(rig.manager->context.leases), 0);
        want(0);
        check_granted("2");
        end();
}

static void test_in_order(void) {
        begin();
        for (unsigned i = 0; i < 3; i++)
                (void) start(i, "open");
        want(1);
        want(2);
        check_granted("010");
        check_asked("010");
        want(0); /* the holder is asked once, however many wait */
        check_asked("010");
        give_back(1);
        check_granted("011");
        check_asked("011"); /* at once, because the next one waits */
        want(1);
        give_back(2);
        check_granted("111");
        check_asked("111");
        give_back(0);
        check_granted("121");
        check_asked("111"); /* no other one waits */
        end();
}

/* The holder returns the lease and wants it again. Returns the number of the worker that got it. */
static unsigned turn(unsigned holder, unsigned n_workers) {
        unsigned n_granted[8];

        CHECK(n_workers <= N_ELEMENTS(n_granted));
        for (unsigned n = 0; n < n_workers; n++)
                n_granted[n] = stub_worker_lease(n).n_granted;
        give_back(holder);
        want(holder);
        for (unsigned n = 0; n < n_workers; n++)
                if (stub_worker_lease(n).n_granted > n_granted[n])
                        return n;
        CHECK(false);
        return 0;
}

/* Three workers of A, which asked first, and one of B: every second turn is B's. */
static void test_uids_take_turns(void) {
        static const unsigned expected[] = { 3, 1, 3, 2, 3, 0, 3, 1 };
        unsigned holder = 0;

        begin();
        for (unsigned i = 0; i < 3; i++)
                (void) start(A, "open");
        (void) start(B, "open");
        for (unsigned n = 0; n < 4; n++)
                want(n);
        check_granted("1000");
        for (unsigned i = 0; i < N_ELEMENTS(expected); i++) {
                holder = turn(holder, 4);
                CHECK_INT(holder, expected[i]);
        }
        end();
}

/* A uid with many workers, one with two, one with one: each has a third of the turns. */
static void test_shares_of_three(void) {
        unsigned n_turns[3] = {}, holder = 0;

        begin();
        for (unsigned i = 0; i < 3; i++)
                (void) start(A, "open");
        rig_pass_time(TURN_USEC); /* their turns are over */
        for (unsigned i = 0; i < 2; i++)
                (void) start(B, "open");
        (void) start(C, "open");
        for (unsigned n = 0; n < 6; n++)
                want(n);
        for (unsigned i = 0; i < 60; i++) {
                holder = turn(holder, 6);
                n_turns[holder < 3 ? A : holder < 5 ? B : C]++;
        }
        CHECK_INT(n_turns[A], 20);
        CHECK_INT(n_turns[B], 20);
        CHECK_INT(n_turns[C], 20);
        end();
}

/* Each file has a lease of its own, and two databases of one file share it. */
static void test_several_databases(void) {
        begin();
        (void) start(A, "open");
        (void) start(A, "second");
        (void) start(B, "third"); /* the same path as "second" */
        want(0);
        want(1);
        want(2);
        check_granted("110");
        check_asked("010");
        CHECK_INT(g_hash_table_size(rig.manager->context.leases), 2);
        give_back(0);
        check_granted("110");
        give_back(1);
        check_granted("111");
        end();
}

/* A holder says that it keeps the lease. All that wait are told, each once until it gets the lease; also those that come
 * later. */
static void test_kept(void) {
        begin();
        for (unsigned i = 0; i < 4; i++)
                (void) start(i % 3, "open");
        want(0);
        want(1);
        want(2);
        check_taken("0000");
        say(0, MESSAGE_LEASE_KEPT);
        check_taken("0110");
        want(3);
        check_taken("0111");
        give_back(0);
        check_granted("1100");
        want(0);
        check_taken("0111"); /* the next holder has not answered yet */
        say(1, MESSAGE_LEASE_KEPT);
        check_taken("1111");
        give_back(1);
        want(1);
        check_granted("1110");
        say(2, MESSAGE_LEASE_KEPT);
        check_taken("1211");
        end();
}

/* ---- Workers that die ---- */

/* The lease is passed on when the process is reaped, and not when the worker is told to die. */
static void test_holder_dies(void) {
        begin_two();
        want(0);
        want(1);
        stub_workers_ignore_kill(true);
        say(0, MESSAGE_FILLING); /* which it may not send */
        CHECK_INT(worker(0)->state, WORKER_KILLED);
        check_granted("10");
        stub_worker_die(0, CLD_KILLED, SIGKILL);
        rig_pump();
        CHECK_INT(stub_workers_alive(), 1);
        check_granted("1");
        check_asked("0");
        end();
}

/* It holds the file's lock for as long as the kernel keeps it, and others must learn that. */
static void test_holder_does_not_die(void) {
        begin_two();
        want(0);
        want(1);
        stub_workers_ignore_kill(true);
        say(0, MESSAGE_FILLING);
        check_granted("10");
        rig_pass_time(UNDEAD_USEC);
        CHECK_INT(worker(0)->state, WORKER_UNDEAD);
        check_granted("11");
        stub_worker_die(0, CLD_KILLED, SIGKILL); /* much later, and the lease is another's by then */
        rig_pump();
        CHECK(lease_is_held_by(worker(0)));
        check_granted("1");
        end();
}

static void test_waiter_dies(void) {
        begin();
        for (unsigned i = 0; i < 3; i++)
                (void) start(i, "open");
        want(0);
        want(1);
        want(2);
        stub_worker_die(1, CLD_EXITED, 0);
        rig_pump();
        give_back(0);
        check_granted("11");
        give_back(1);
        CHECK_INT(g_hash_table_size(rig.manager->context.leases), 0);
        end();
}

/* A worker that was killed, but is not dead, is not waited for. */
static void test_dying_waiter_is_passed_over(void) {
        begin();
        for (unsigned i = 0; i < 3; i++)
                (void) start(i, "open");
        want(0);
        want(1);
        want(2);
        stub_workers_ignore_kill(true);
        say(1, MESSAGE_FILLING);
        give_back(0);
        check_granted("101");
        give_back(2);
        check_granted("101");
        want(0); /* the lease is free, though the dying worker is in its queue */
        check_granted("201");
        stub_worker_die(1, CLD_KILLED, SIGKILL);
        rig_pump();
        CHECK(lease_is_held_by(worker(0)));
        end();
}

/* ---- Workers that break the rules ---- */

/* The worker is ended for a message, and the lease is the other's then. */
static void check_is_ended_for(void (*prepare)(void), MessageKind kind) {
        begin_two();
        prepare();
        say(0, kind);
        CHECK_INT(stub_workers_alive(), 1);
        if (stub_worker_lease(0).n_granted == 0)
                want(0);
        check_granted("1");
        end();
}

static void nothing(void) {
}

static void hold(void) {
        want(0);
        check_granted("10");
}

static void wait_for_other(void) {
        want(1);
        want(0);
        check_granted("01");
}

static void keep(void) {
        want(0);
        want(1);
        say(0, MESSAGE_LEASE_KEPT);
        check_granted("10");
}

static void test_messages_in_a_wrong_state(void) {
        check_is_ended_for(nothing, MESSAGE_LEASE_RETURNED);
        check_is_ended_for(wait_for_other, MESSAGE_LEASE_RETURNED);
        check_is_ended_for(wait_for_other, MESSAGE_LEASE_WANTED);
        check_is_ended_for(hold, MESSAGE_LEASE_WANTED);
        check_is_ended_for(nothing, MESSAGE_LEASE);
        check_is_ended_for(hold, MESSAGE_LEASE_ASKED);
        check_is_ended_for(hold, MESSAGE_LEASE_TAKEN);
        check_is_ended_for(hold, MESSAGE_LEASE_KEPT); /* it was not asked */
        check_is_ended_for(nothing, MESSAGE_LEASE_KEPT);
        check_is_ended_for(wait_for_other, MESSAGE_LEASE_KEPT);
        check_is_ended_for(keep, MESSAGE_LEASE_KEPT);
}

static void test_worker_without_the_right(void) {
        begin();
        rig_set_mode("open", "read-only");
        (void) start(A, "open");
        CHECK(!worker(0)->group->writes);
        want(0);
        CHECK_INT(stub_workers_alive(), 0);
        end();
}

/* A holder that is asked for the lease and keeps it is killed when any run of its user must have ended. */
static void test_holder_keeps_the_lease(void) {
        Limits *l = &rig.manager->context.config->limits, before = *l;

        begin();
        l->prepare_timeout_usec = 60 * SECOND;
        l->run_timeout_usec = 10 * SECOND;
        l->transaction_timeout_usec = 10 * SECOND;
        (void) start(A, "open");
        (void) start(B, "open");
        want(0);
        rig_pass_time(20 * SECOND); /* no other worker waits */
        want(1);
        rig_pass_time(10 * SECOND);
        CHECK_INT(worker(0)->end, WORKER_END_NONE);
        stub_workers_ignore_kill(true);
        rig_pass_time(6 * SECOND); /* a stub uses no CPU, so it gets all the time that there is (grace.h) */
        CHECK_INT(worker(0)->end, WORKER_END_KEEPS_LEASE);
        check_granted("10");
        stub_worker_die(0, CLD_KILLED, SIGKILL);
        rig_pump();
        check_granted("1");
        *l = before;
        end();
}

/* ---- Messages that cannot be sent ---- */

static void fill_socket(unsigned n) {
        while (message_send(worker(n)->control_fd, &(Message) { .kind = MESSAGE_RETIRE }, -1) >= 0)
                ;
}

static void test_full_socket(void) {
        begin_two();
        fill_socket(0);
        want(0);
        CHECK(!lease_is_held_by(worker(0)));
        check_granted("00"); /* the stub reads, which makes room */
        rig_pass_time(SECOND / 10);
        check_granted("10");
        fill_socket(0);
        want(1);
        check_asked("00");
        rig_pass_time(SECOND / 10);
        check_asked("10");
        fill_socket(1);
        say(0, MESSAGE_LEASE_KEPT);
        check_taken("00");
        rig_pass_time(SECOND / 10);
        check_taken("01");
        end();

        begin_two(); /* it does not read: killed, like any worker that does not */
        fill_socket(0);
        want(0);
        want(1);
        rig_pass_time(2 * SECOND);
        CHECK_INT(stub_workers_alive(), 1);
        check_granted("1");
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_alone), TEST(test_in_order), TEST(test_uids_take_turns), TEST(test_shares_of_three),
                TEST(test_several_databases), TEST(test_kept), TEST(test_holder_dies), TEST(test_holder_does_not_die),
                TEST(test_waiter_dies),
                TEST(test_dying_waiter_is_passed_over), TEST(test_messages_in_a_wrong_state),
                TEST(test_worker_without_the_right), TEST(test_holder_keeps_the_lease), TEST(test_full_socket),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
