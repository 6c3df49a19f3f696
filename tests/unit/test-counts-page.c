/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory in which a user's workers keep the counts of its clients: places, and a worker's use of them. */
#include <fcntl.h>
#include <unistd.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/workers/counts-page.h"
#include "daemon/worker/core/client-counts.h"
#include "tests/unit/test.h"

enum { A = 1000, B }; /* users */

static Context context;
static User *users[2];

static void begin(void) {
        CHECK_INT(context_init(&context, NULL), 0);
        for (uid_t i = 0; i < 2; i++)
                users[i] = user_get(&context, A + i);
}

static void end(void) {
        for (unsigned i = 0; i < 2; i++)
                users[i] = user_unref(users[i]);
        CHECK_INT(g_hash_table_size(context.users), 0);
        context_done(&context);
}

static bool same(CountsPlace one, CountsPlace other) {
        return one.slot == other.slot && one.client == other.client;
}

static void store(CountsPlace place, int64_t n) {
        client_counts_store(&place, &(ClientCounts) { n, n + 1, n + 2 });
}

static void check(CountsPlace place, int64_t rowid) {
        ClientCounts counts = client_counts_load(&place);

        CHECK_INT(counts.last_rowid, rowid);
        CHECK_INT(counts.n_changes, rowid == 0 ? 0 : rowid + 1);
        CHECK_INT(counts.n_total, rowid == 0 ? 0 : rowid + 2);
}

/* One place for a peer and a database, which begins with 0. */
static void test_places(void) {
        begin();
        CountsPlace one = counts_page_place(users[0], ":1.1", 1), other = counts_page_place(users[0], ":1.1", 2);
        CountsPlace of_other = counts_page_place(users[0], ":1.2", 1);

        CHECK_INT(client_counts_open(counts_page_fd(users[0])), 0);
        CHECK(one.slot > 0 && other.slot > 0 && of_other.slot > 0);
        CHECK(!same(one, other) && !same(one, of_other) && !same(other, of_other));
        CHECK(same(one, counts_page_place(users[0], ":1.1", 1)));
        CHECK_INT(counts_page_place(users[0], ":1.1", 0).slot, 0); /* a database whose changes have no slot */
        CHECK(!counts_page_is_needed(&context));
        store(one, 5);
        store(of_other, INT64_MIN);
        check(one, 5);
        check(other, 0);
        check(of_other, INT64_MIN);
        check((CountsPlace) {}, 0);
        check((CountsPlace) { .slot = COUNTS_N_SLOTS, .client = one.client }, 0);
        CHECK(counts_page_is_needed(&context));
        counts_page_forget(users[0], ":1.1");
        CHECK(counts_page_is_needed(&context));
        counts_page_forget(users[0], ":1.2");
        counts_page_forget(users[0], ":1.3");
        CHECK(!counts_page_is_needed(&context));
        end();
}

/* A slot is used again only after all others. A run of its last client can store nothing there. */
static void test_used_again(void) {
        CountsPlace first, last = {};

        begin();
        first = counts_page_place(users[0], ":1.0", 1);
        CHECK_INT(client_counts_open(counts_page_fd(users[0])), 0);
        store(first, 5);
        for (uint32_t i = 2; i < COUNTS_N_SLOTS; i++)
                last = counts_page_place(users[0], ":1.0", i);
        CHECK_INT(last.slot, COUNTS_N_SLOTS - 1);
        CHECK_INT(counts_page_place(users[0], ":1.1", 1).slot, 0); /* there is none left */
        counts_page_forget(users[0], ":1.0");
        last = counts_page_place(users[0], ":1.2", 1);
        CHECK_INT(last.slot, first.slot);
        check(last, 0);
        store(first, 6);
        check(last, 0);
        check(first, 0);
        counts_page_forget(users[0], ":1.2");
        counts_page_forget(users[0], ":1.1");
        end();
}

/* Workers of another user have other memory, and no worker can change its size. */
static void test_users(void) {
        begin();
        CHECK(counts_page_fd(users[0]) >= 0 && counts_page_fd(users[1]) >= 0);
        CHECK(counts_page_fd(users[0]) != counts_page_fd(users[1]));
        CHECK_INT(fcntl(counts_page_fd(users[0]), F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
        CHECK_INT(counts_page_place(users[0], ":1.1", 1).slot, counts_page_place(users[1], ":1.2", 1).slot);
        CHECK_INT(client_counts_open(counts_page_fd(users[0])), 0);
        store(counts_page_place(users[0], ":1.1", 1), 5);
        CHECK_INT(client_counts_open(counts_page_fd(users[1])), 0);
        check(counts_page_place(users[1], ":1.2", 1), 0);
        counts_page_forget(users[0], ":1.1");
        counts_page_forget(users[1], ":1.2");
        end();
}

int main(void) {
        static const Test tests[] = { TEST(test_places), TEST(test_used_again), TEST(test_users) };

        return test_main(tests, N_ELEMENTS(tests));
}
