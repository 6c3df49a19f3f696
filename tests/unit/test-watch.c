/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watch, WaitChange and ListWatches of the supervisor. Workers and observers are stubs, and the test's clock does not
 * advance by itself.
 */
#include <string.h>

#include "daemon/supervisor/workers/changes.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)
#define DATABASE SQLIPC_DATABASE_PATH "/open"

static void settle(void) {
        do
                rig_pump();
        while (stub_workers_be_honest());
        rig_pump();
}

static void end(void) {
        for (unsigned i = 0; i < rig.n_peers; i++)
                rig_leave(i);
        for (unsigned i = 0; i < 32; i++) { /* until nothing is watched, after a while without clients */
                rig_pass_time(SECOND);
                settle();
        }
        rig_check_nothing_left();
}

static const RigCall *last_call(void) {
        return &rig.calls[rig.n_calls - 1];
}

static sd_bus_message *new_call(const char *member) {
        sd_bus_message *m = rig_new_call(0, DATABASE, SQLIPC_DATABASE_INTERFACE, member);

        CHECK(m);
        return m;
}

static void wait_for_change(uint64_t timeout_usec) {
        sd_bus_message *m = new_call("WaitChange");

        CHECK(sd_bus_message_append(m, "asta{sv}", 0, UINT64_C(0), 2, "sql", "s", "SELECT 1", "timeout-usec", "t",
                                    timeout_usec) >= 0);
        rig_send_call(0, m, true);
        rig_pump();
}

/* The name of a table may be any bytes, but the bus carries only UTF-8. */
static void test_name_that_is_no_text(void) {
        const Bytes before = stub_tables;
        sd_bus_message *m;

        rig_begin_users();
        stub_tables = (Bytes) { "a\xff", sizeof "a\xff" };
        m = new_call("Watch");
        CHECK(sd_bus_message_append(m, "asa{sv}", 0, 1, "sql", "s", "SELECT 1") >= 0);
        rig_send_call(0, m, true);
        settle();
        CHECK_INT(last_call()->n_replies, 1);
        CHECK_STRING(last_call()->error, "");
        wait_for_change(100 * SECOND);
        settle();
        CHECK_INT(last_call()->n_replies, 0);
        m = rig_new_call(0, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, "ListWatches");
        CHECK(m && sd_bus_message_append(m, "a{sv}", 0) >= 0);
        rig_send_call(0, m, true);
        settle();
        CHECK_INT(last_call()->n_replies, 1);
        CHECK_STRING(last_call()->error, "");
        stub_tables = before;
        end();
}

/* The time in which a worker finds the tables counts. */
static void test_timeout_from_the_call_on(void) {
        rig_begin_users();
        wait_for_change(2 * SECOND);
        rig_pass_time(SECOND);
        settle();
        rig_pass_time(SECOND / 2);
        CHECK_INT(last_call()->n_replies, 0);
        rig_pass_time(SECOND);
        CHECK_INT(last_call()->n_replies, 1);
        CHECK_STRING(last_call()->error, SQLIPC_ERROR_PREFIX "TimedOut");
        end();
}

static const RigCall *watch(unsigned peer) {
        sd_bus_message *m = rig_new_call(peer, DATABASE, SQLIPC_DATABASE_INTERFACE, "Watch");

        CHECK(m && sd_bus_message_append(m, "asa{sv}", 0, 0) >= 0);
        rig_send_call(peer, m, true);
        settle();
        CHECK_INT(last_call()->n_replies, 1);
        return last_call();
}

/* A user gets half of the pipes that others leave. When these are used up, others get one each from the reserve. */
static void test_share_of_pipes(void) {
        static const unsigned shares[RIG_N_PEERS_MAX] = { 7, 4, 2, 1, 1, 1, 0, 0 };
        const unsigned n_peers = rig.n_peers;

        rig.n_peers = RIG_N_PEERS_MAX;
        rig_begin_users();
        rig.manager->context.watch_pipes_max = 16;
        for (unsigned peer = 0; peer < rig.n_peers; peer++) {
                for (unsigned n = 0; n < shares[peer]; n++)
                        CHECK_STRING(watch(peer)->error, "");
                CHECK_STRING(watch(peer)->error, SQLIPC_ERROR_PREFIX "LimitsExceeded");
        }
        CHECK_INT(rig.manager->context.n_watch_pipes, 16);
        wait_for_change(SECOND); /* it has no pipe */
        CHECK_INT(last_call()->n_replies, 0);
        rig_leave(1);
        rig_pump();
        CHECK_STRING(watch(6)->error, "");
        end();
        rig.n_peers = n_peers;
}

static unsigned n_ready;

static void on_ready(ChangeListener *l) {
        n_ready++;
        changes_arm(l, l->changes->sequence);
}

static void on_change(ChangeListener *l, uint64_t sequence) {
        changes_arm(l, sequence);
}

/* By one name, or before a reload, the file never changes; by the other one it does, and must be observed. */
static void test_no_longer_immutable(void) {
        ChangeListener listeners[] = {
                { .on_ready = on_ready, .on_change = on_change }, { .on_ready = on_ready, .on_change = on_change },
        };

        rig_begin_users();
        Changes *c = changes_of(&rig.manager->context, "/both.db", true);
        CHECK_INT(changes_add(c, &listeners[0], NULL, c->n_schemas), 0);
        settle();
        CHECK_INT(n_ready, 1);
        CHECK_INT(stub_workers_alive(), 0);
        CHECK(changes_of(&rig.manager->context, "/both.db", false) == c);
        CHECK_INT(changes_add(c, &listeners[1], NULL, c->n_schemas), 0);
        rig_pump();
        CHECK_INT(stub_workers_alive(), 1);
        CHECK_INT(n_ready, 1); /* the state of the file is not known yet */
        settle();
        CHECK_INT(n_ready, 2);
        changes_remove(&listeners[0]);
        changes_remove(&listeners[1]);
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_name_that_is_no_text), TEST(test_timeout_from_the_call_on), TEST(test_no_longer_immutable),
                TEST(test_share_of_pipes),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
