/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When the worker reads its sockets for the next request, and when it does not. */
#include <glib.h>

#include "daemon/worker/core/looking.h"

static void turns(Looking *l, uint64_t channel, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                looking_on_turn(l, channel);
}

/* How many of `n` waits begin with a look, each of which finds something or not. */
static unsigned looks(Looking *l, unsigned n, bool found) {
        unsigned n_looks = 0;

        for (unsigned i = 0; i < n; i++)
                if (looking_begins(l)) {
                        looking_on_looked(l, found);
                        n_looks++;
                }
        return n_looks;
}

static void test_one_channel(void) {
        Looking l = {};

        g_assert_false(looking_begins(&l));
        turns(&l, 7, LOOKING_TURNS_MIN);
        g_assert_false(looking_begins(&l)); /* the first of them may have been one of several */
        turns(&l, 7, 1);
        g_assert_true(looking_begins(&l));
        g_assert_cmpuint(looks(&l, 1000, true), ==, 1000);
}

static void test_others(void) {
        Looking l = {};

        for (unsigned i = 0; i < 100; i++) {
                turns(&l, 1 + i % 2, 1);
                g_assert_false(looking_begins(&l));
        }
        turns(&l, 1, 10);
        turns(&l, 0, 1); /* a run of no channel */
        turns(&l, 1, 1);
        g_assert_false(looking_begins(&l));
}

static void test_in_vain(void) {
        Looking l = {};
        unsigned n;

        turns(&l, 7, 10);
        n = looks(&l, 6400, false);
        g_assert_cmpuint(n, >=, 100);
        g_assert_cmpuint(n, <=, 110);
        while (!looking_begins(&l))
                ;
        looking_on_looked(&l, true); /* after one success it is as in the beginning */
        g_assert_cmpuint(looks(&l, 100, true), ==, 100);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/looking/one-channel", test_one_channel);
        g_test_add_func("/looking/others", test_others);
        g_test_add_func("/looking/in-vain", test_in_vain);
        return g_test_run();
}
