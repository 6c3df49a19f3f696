/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Large calls do not delay other clients: which calls are put aside, and when they continue (pacing.h). The test's clock
 * does not advance by itself.
 */
#include <errno.h>
#include <string.h>

#include "daemon/supervisor/runs/run.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define LARGE ((size_t) 500 * 1000)
#define OPEN SQLIPC_DATABASE_PATH "/open"

static bool queue_is_full;

int __wrap_sd_bus_enqueue_for_read(sd_bus *bus, sd_bus_message *m);
int __real_sd_bus_enqueue_for_read(sd_bus *bus, sd_bus_message *m);

int __wrap_sd_bus_enqueue_for_read(sd_bus *bus, sd_bus_message *m) {
        return queue_is_full ? -ENOBUFS : __real_sd_bus_enqueue_for_read(bus, m);
}

enum { A, B, C }; /* peers, each of a user of its own */

static User *user_of(unsigned peer) {
        return g_hash_table_lookup(rig.manager->context.users, GUINT_TO_POINTER(rig.peers[peer].uid));
}

static unsigned n_aside(unsigned peer) {
        const User *u = user_of(peer);

        return u ? u->pacing.calls.length : 0;
}

static unsigned n_runs(unsigned peer) {
        const User *u = user_of(peer);

        return u ? (unsigned) u->n_runs : 0;
}

static unsigned n_answered(unsigned peer) {
        unsigned n = 0;

        for (size_t i = 0; i < rig.n_calls; i++)
                n += rig.calls[i].peer == peer ? rig.calls[i].n_replies : 0;
        return n;
}

/* A query with a parameter of `size` bytes. No worker answers it, so it stays a run. */
static void send_query(unsigned peer, size_t size) {
        g_autofree char *bytes = g_malloc0(size);
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Query");

        CHECK(sd_bus_message_append(m, "s", "SELECT ?") >= 0 && sd_bus_message_open_container(m, 'a', "v") >= 0);
        CHECK(sd_bus_message_open_container(m, 'v', "ay") >= 0 && sd_bus_message_append_array(m, 'y', bytes, size) >= 0);
        CHECK(sd_bus_message_close_container(m) >= 0 && sd_bus_message_close_container(m) >= 0);
        CHECK(sd_bus_message_append(m, "a{sv}a{sv}", 0, 0) >= 0);
        rig_send_call(peer, m, true);
}

static void send_cancel(unsigned peer) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Cancel");

        CHECK(sd_bus_message_append(m, "ta{sv}", UINT64_C(1) << 40, 0) >= 0);
        rig_send_call(peer, m, true);
}

/* One turn of the supervisor's loop. */
static void step(void) {
        while (sd_bus_process(rig.driver, NULL) > 0)
                ;
        CHECK(sd_event_run(rig.manager->context.event, 0) >= 0);
        while (sd_bus_process(rig.driver, NULL) > 0)
                ;
}

#define STEP_UNTIL(condition)                                                                                         \
        do {                                                                                                          \
                for (unsigned n_ = 0; !(condition); n_++) {                                                           \
                        CHECK(n_ < 10000);                                                                            \
                        step();                                                                                       \
                }                                                                                                     \
        } while (0)

static void begin(void) {
        rig_begin_users();
}

static void begin_charged(unsigned peer) {
        begin();
        send_query(peer, LARGE);
        rig_pump();
        CHECK_INT(n_runs(peer), 1);
}

static void test_others_go_first(void) {
        begin_charged(A);
        send_query(A, LARGE);
        send_query(A, 1);
        send_query(B, LARGE);
        send_query(C, 1);
        STEP_UNTIL(n_runs(C) == 1);
        CHECK_INT(n_aside(A), 2);
        CHECK_INT(n_runs(A), 1);
        CHECK_INT(n_runs(B), 1); /* its first large call */
        rig_pump();
        CHECK_INT(n_runs(A), 3);
        CHECK_INT(n_aside(A), 0);
        rig_check_nothing_left();
}

static void test_small_calls_are_not_charged(void) {
        begin();
        send_query(A, 1000);
        rig_pump();
        send_query(A, LARGE);
        send_query(C, 1);
        STEP_UNTIL(n_runs(C) == 1);
        CHECK_INT(n_runs(A), 2);
        rig_check_nothing_left();
}

static void test_a_charge_is_paid_off(void) {
        begin_charged(A);
        rig_pass_time(LARGE * PACING_NSEC_PER_BYTE / 1000);
        send_query(A, 1);
        send_query(C, 1);
        STEP_UNTIL(n_runs(C) == 1);
        CHECK_INT(n_runs(A), 2);
        rig_check_nothing_left();
}

static void test_users_take_turns(void) {
        begin_charged(A);
        send_query(B, LARGE);
        rig_pump();
        for (unsigned i = 0; i < 3; i++)
                send_query(A, LARGE);
        for (unsigned i = 0; i < 3; i++)
                send_query(B, LARGE);
        STEP_UNTIL(n_aside(A) == 3 && n_aside(B) == 3);
        while (n_aside(A) + n_aside(B) > 0) {
                CHECK(n_aside(A) <= n_aside(B) + 1 && n_aside(B) <= n_aside(A) + 1);
                step();
        }
        rig_pump();
        CHECK_INT(n_runs(A), 4);
        CHECK_INT(n_runs(B), 4);
        rig_check_nothing_left();
}

static void test_goes_on_under_a_flood(void) {
        uint64_t due;

        begin_charged(A);
        send_query(A, LARGE);
        send_query(A, LARGE);
        send_cancel(C);
        STEP_UNTIL(n_answered(C) == 1);
        CHECK(sd_event_source_get_time(rig.manager->pacing.when_due, &due) >= 0);
        CHECK_INT(due, rig.manager->pacing.until_usec);
        for (unsigned i = 0; i < 60; i++) {
                if (i == 20)
                        CHECK(sd_event_source_set_time(rig.manager->pacing.when_due, 0) >= 0); /* as if time had passed */
                send_cancel(C);
                step();
                if (i < 20)
                        CHECK_INT(n_aside(A), 2);
        }
        CHECK_INT(n_aside(A), 1); /* one: it was charged, too */
        rig_pump();
        CHECK_INT(n_runs(A), 3);
        rig_check_nothing_left();
}

static void test_cancel_is_not_put_aside(void) {
        begin_charged(A);
        send_query(A, LARGE);
        send_cancel(A);
        STEP_UNTIL(n_answered(A) == 1);
        CHECK_INT(n_aside(A), 1);
        rig_check_nothing_left();
}

static void test_budget(void) {
        const unsigned n = (unsigned) (HELD_SIZE_MAX / LARGE) + 10;

        begin_charged(A);
        for (unsigned i = 0; i < n; i++)
                send_query(A, LARGE);
        send_cancel(C);
        STEP_UNTIL(n_answered(C) == 1);
        CHECK(user_of(A)->held_size <= HELD_SIZE_MAX);
        CHECK_INT(n_answered(A), n - n_aside(A)); /* each call that was not put aside was refused */
        CHECK(n_answered(A) >= 10);
        rig_pump();
        CHECK_INT(n_aside(A), 0);
        rig_check_nothing_left();
}

static void test_who_leaves_is_forgotten(void) {
        begin_charged(A);
        send_query(A, LARGE);
        send_query(A, LARGE);
        STEP_UNTIL(rig.manager->pacing.released);
        rig_leave(A);
        rig_pump();
        CHECK(!pacing_is_busy(&rig.manager->context));
        rig_check_nothing_left();
}

static void test_a_call_that_cannot_go_on_is_answered(void) {
        begin_charged(A);
        send_query(A, LARGE);
        send_query(A, LARGE);
        STEP_UNTIL(n_aside(A) == 2);
        queue_is_full = true;
        STEP_UNTIL(n_aside(A) == 1);
        queue_is_full = false;
        rig_pump();
        CHECK_INT(n_answered(A), 1);
        CHECK_INT(n_runs(A), 2);
        rig_check_nothing_left();
}

static void test_stop(void) {
        begin_charged(A);
        send_query(A, LARGE);
        send_query(A, LARGE);
        STEP_UNTIL(n_aside(A) == 2);
        pacing_stop(&rig.manager->context, "The service is stopping.");
        CHECK(!pacing_is_busy(&rig.manager->context));
        rig_pump();
        CHECK_INT(n_answered(A), 2);
        rig_check_nothing_left();
}

/* A worker takes its first job, and says nothing more of it. */
static void take_job(void) {
        const uint8_t bytes[] = { 0, 1 }; /* stub_worker_act(): the first worker; take_job() */

        stub_worker_act(&(Input) { .bytes = bytes, .size = sizeof bytes });
        rig_pump();
}

static void test_descriptions_are_charged(void) {
        g_autofree char *name = g_strnfill(LARGE, 'x');
        Bytes columns[] = { { name, LARGE }, { NULL, 0 } };
        GHashTableIter i;
        void *run;

        begin();
        send_query(A, 1);
        rig_pump();
        take_job();
        CHECK_INT(user_of(A)->pacing.until_usec, 0);
        g_hash_table_iter_init(&i, rig.manager->context.runs);
        CHECK(g_hash_table_iter_next(&i, NULL, &run));
        CHECK_INT(run_on_started(run, &(Started) { .described = true, .n_columns = 1, .columns = columns }), 0);
        CHECK(user_of(A)->pacing.until_usec > 0);
        rig_pump();
        CHECK_INT(n_answered(A), 1);
        rig_check_nothing_left();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_others_go_first), TEST(test_small_calls_are_not_charged), TEST(test_a_charge_is_paid_off),
                TEST(test_users_take_turns), TEST(test_goes_on_under_a_flood), TEST(test_cancel_is_not_put_aside),
                TEST(test_budget), TEST(test_who_leaves_is_forgotten), TEST(test_stop),
                TEST(test_a_call_that_cannot_go_on_is_answered), TEST(test_descriptions_are_charged),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
