/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When a side of a channel polls before it sleeps, and for how long. */
#include <glib.h>

#include "dbus-interfaces/wire/channel-polling.h"

static uint64_t now;

static bool woke;

/* A poll whose yields take `yield_usec` each, and whose look number `n_until_found` finds something; 0: none does. Returns
 * how often it looked; 0: it was left out. */
static unsigned poll_once(ChannelPolling *p, unsigned yield_usec, unsigned n_until_found) {
        unsigned n = 0;

        if (!channel_polling_begins(p, woke, now))
                return 0;
        do {
                now += yield_usec;
                n++;
        } while (channel_polling_looked(p, n == n_until_found, now));
        return n;
}

/* How many of `n` waits begin with a poll. */
static unsigned polls(ChannelPolling *p, unsigned n, unsigned yield_usec, unsigned n_until_found) {
        unsigned n_polls = 0;

        for (unsigned i = 0; i < n; i++)
                n_polls += poll_once(p, yield_usec, n_until_found) > 0;
        return n_polls;
}

static void test_alone(void) {
        ChannelPolling p = {};

        g_assert_cmpuint(poll_once(&p, 1, 0), ==, CHANNEL_POLLING_USEC);
        p = (ChannelPolling) {};
        g_assert_cmpuint(poll_once(&p, 3, 0), ==, CHANNEL_POLLING_USEC / 3);
        p = (ChannelPolling) {};
        g_assert_cmpuint(poll_once(&p, 1, 7), ==, 7);
        g_assert_cmpuint(polls(&p, 1000, 1, 7), ==, 1000);
}

/* While others have the CPU, time passes, and is not that of the poll. */
static void test_shared(void) {
        ChannelPolling p = {};

        g_assert_cmpuint(poll_once(&p, 20, 10), ==, 10);
        g_assert_cmpuint(poll_once(&p, 20, 0), ==, CHANNEL_POLLING_USEC);
        g_assert_cmpuint(p.n_failed, ==, 1);
}

/* Its own time is bounded however long others run, and so is the delay if these only compute. */
static void test_beside_programs_that_compute(void) {
        ChannelPolling p = {};

        g_assert_cmpuint(poll_once(&p, 400, 0), ==, 3);
        p = (ChannelPolling) {};
        g_assert_cmpuint(poll_once(&p, 3000, 1), ==, 1);
        g_assert_cmpuint(p.n_failed, ==, 1); /* it was found, but late */
        g_assert_cmpuint(polls(&p, 6400, 3000, 1), <=, 110);
}

/* A side that has woken the other waits until it can have run, if its program does not pause between the queries. */
static void test_woken(void) {
        ChannelPolling p = {};

        woke = true;
        g_assert_cmpuint(poll_once(&p, 1, 70), ==, CHANNEL_POLLING_USEC);
        p.n_to_skip = 0;
        g_assert_cmpuint(poll_once(&p, 1, 70), ==, 70);
        now += CHANNEL_POLLING_QUICK_USEC;
        g_assert_cmpuint(poll_once(&p, 1, 70), ==, CHANNEL_POLLING_USEC);
        woke = false;
}

static void test_failed(void) {
        ChannelPolling p = {};
        unsigned n = polls(&p, 6400, 1, 0);

        g_assert_cmpuint(n, >=, 100);
        g_assert_cmpuint(n, <=, 110);
        while (poll_once(&p, 1, 1) == 0)
                ;
        g_assert_cmpuint(polls(&p, 100, 1, 1), ==, 100); /* after one success it is as in the beginning */
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/channel-polling/alone", test_alone);
        g_test_add_func("/channel-polling/shared", test_shared);
        g_test_add_func("/channel-polling/beside-programs-that-compute", test_beside_programs_that_compute);
        g_test_add_func("/channel-polling/woken", test_woken);
        g_test_add_func("/channel-polling/failed", test_failed);
        return g_test_run();
}
