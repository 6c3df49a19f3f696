/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cached statements, in the supervisor: the one that has been idle for the longest time is released if its user prepares
 * another one past StatementsMax=. A statement that was prepared without the option `cached` never is.
 */
#include <fcntl.h>
#include <unistd.h>

#include "daemon/supervisor/runs/statement.h"
#include "tests/rigs/script.h"

#define N_MAX 3u /* StatementsMax= */

static void finish_all(void) {
        pump();
        while (stub_workers_be_honest())
                pump();
}

static bool is_kept(uint64_t number) {
        return g_hash_table_contains(rig.manager->context.statements, &number);
}

static const RigCall *prepare(unsigned peer, bool cached) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Prepare");

        CHECK(sd_bus_message_append(m, "sa{sv}", "SELECT 1", 1, "cached", "b", cached) >= 0);
        rig_send_call(peer, m, true);
        finish_all();
        return &rig.calls[rig.n_calls - 1];
}

/* The number of the new statement. */
static uint64_t must_prepare(unsigned peer, bool cached) {
        GHashTableIter i;
        uint64_t newest = 0;
        void *key;

        check_error(prepare(peer, cached), "");
        g_hash_table_iter_init(&i, rig.manager->context.statements);
        while (g_hash_table_iter_next(&i, &key, NULL))
                newest = MAX(newest, *(uint64_t *) key);
        return newest;
}

static const RigCall *fetch(unsigned peer, uint64_t number) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Fetch");

        CHECK(sd_bus_message_append(m, "tava{sv}a{sv}", number, 0, 0, 0) >= 0);
        return send_call(peer, m);
}

/* The clients read their pipes empty. */
static void read_all(void) {
        char bytes[4096];

        for (size_t i = 0; i < rig.n_fds; i++) {
                CHECK(fcntl(rig.fds[i], F_SETFL, O_NONBLOCK) >= 0);
                while (read(rig.fds[i], bytes, sizeof bytes) > 0)
                        ;
        }
}

static void run(unsigned peer, uint64_t number) {
        const RigCall *c = fetch(peer, number);

        finish_all();
        check_error(c, "");
        read_all();
}

static void begin_limited(void) {
        begin();
        rig.manager->context.config->limits.statements_max = N_MAX;
}

/* All statements that the user may have, cached, and each has run. */
static void fill(uint64_t *ret) {
        for (unsigned i = 0; i < N_MAX; i++) {
                ret[i] = must_prepare(A, true);
                run(A, ret[i]);
        }
}

/* Also if the call that needs the room is for a statement that is not cached, from another connection of the user. */
static void test_least_recently_used(void) {
        uint64_t s[N_MAX], named;

        begin_limited();
        rig.peers[B].uid = rig.peers[A].uid;
        fill(s);
        run(A, s[0]);
        named = must_prepare(B, false);
        CHECK(is_kept(s[0]) && !is_kept(s[1]) && is_kept(s[2]));
        check_error(fetch(A, s[1]), ERROR("UnknownStatement"));
        run(B, named);
        (void) must_prepare(A, true);
        CHECK(is_kept(named) && is_kept(s[0]) && !is_kept(s[2]));
        CHECK_INT(g_hash_table_size(rig.manager->context.statements), N_MAX);
        end();
}

static void test_asked_for_by_name(void) {
        uint64_t s[N_MAX];

        begin_limited();
        for (unsigned i = 0; i < N_MAX; i++) {
                s[i] = must_prepare(A, false);
                run(A, s[i]);
        }
        check_error(prepare(A, true), ERROR("LimitsExceeded"));
        CHECK(strstr(rig.calls[rig.n_calls - 1].sentence, "StatementsMax="));
        for (unsigned i = 0; i < N_MAX; i++)
                CHECK(is_kept(s[i]));
        check_error(prepare(C, true), ""); /* another user */
        end();
}

static void test_in_use(void) {
        uint64_t s[N_MAX];
        const RigCall *c;

        begin_limited();
        fill(s);
        c = fetch(A, s[0]); /* no worker has answered */
        (void) must_prepare(A, true);
        CHECK(is_kept(s[0]) && !is_kept(s[1]));
        finish_all();
        check_error(c, "");
        end();
}

/* Its client has not read all rows of its last run. */
static void test_unread(void) {
        uint64_t s[N_MAX];
        Statement *st;

        begin_limited();
        fill(s);
        st = g_hash_table_lookup(rig.manager->context.statements, &s[0]);
        CHECK_INT(write(st->pipe->write_fd, "x", 1), 1);
        (void) must_prepare(A, true);
        CHECK(is_kept(s[0]) && !is_kept(s[1]));
        end();
}

/* A client that has just prepared a statement runs it next. If it does not, the statement is released after ten seconds. */
static void test_never_run(void) {
        uint64_t s[N_MAX];

        begin_limited();
        for (unsigned i = 0; i < N_MAX; i++)
                s[i] = must_prepare(A, true);
        rig_pass_time(10 * SECOND - 1);
        check_error(prepare(A, true), ERROR("LimitsExceeded"));
        rig_pass_time(1);
        (void) must_prepare(A, true);
        CHECK(!is_kept(s[0]) && is_kept(s[1]) && is_kept(s[2]));
        end();
}

/* StatementsMax= of the database, which is not the only one. */
static void test_of_database(void) {
        Database *d;
        uint64_t s[2];

        begin();
        d = database_find(&rig.manager->context, "open");
        d->config->limits.statements_max = 2;
        for (unsigned i = 0; i < 2; i++) {
                s[i] = must_prepare(A, true);
                run(A, s[i]);
        }
        check_error(prepare(C, true), ERROR("LimitsExceeded")); /* of another user none is released */
        (void) must_prepare(A, true);
        CHECK(!is_kept(s[0]) && is_kept(s[1]));
        d->config->limits.statements_max = UINT64_MAX;
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_least_recently_used), TEST(test_asked_for_by_name), TEST(test_in_use), TEST(test_unread),
                TEST(test_never_run), TEST(test_of_database),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
