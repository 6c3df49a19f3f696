/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/supervisor/base/expiry: idle objects end in the order of their times, and only those that are still idle. */
#include <glib.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/expiry.h"
#include "tests/unit/test.h"

#define N_ITEMS 200u

static sd_event *event;
static Expiry expiry;
static ExpiryItem items[N_ITEMS];
static GArray *ended; /* of the items' indexes */

static void on_expired(ExpiryItem *item) {
        unsigned i = (unsigned) (item - items);

        expiry_forget(item);
        g_array_append_val(ended, i);
}

static void begin(void) {
        CHECK(sd_event_new(&event) >= 0);
        expiry_init(&expiry, event, on_expired);
        ended = g_array_new(FALSE, FALSE, sizeof(unsigned));
}

static void end(void) {
        for (unsigned i = 0; i < N_ITEMS; i++)
                expiry_forget(&items[i]);
        expiry_done(&expiry);
        g_array_unref(ended);
        event = sd_event_unref(event);
}

/* Runs the loop until nothing is due. */
static void run(void) {
        while (sd_event_run(event, 0) > 0)
                ;
}

static void test_order(void) {
        begin();
        for (unsigned i = 0; i < N_ITEMS; i++)
                expiry_watch(&expiry, &items[i], 1000 + (i * 7) % N_ITEMS);
        run();
        CHECK_INT(ended->len, N_ITEMS);
        for (unsigned i = 1; i < N_ITEMS; i++)
                CHECK(items[g_array_index(ended, unsigned, i - 1)].usec < items[g_array_index(ended, unsigned, i)].usec);
        end();
}

/* Thousands that are due at once do not keep the loop from other events. */
static void test_turns(void) {
        begin();
        for (unsigned i = 0; i < N_ITEMS; i++)
                expiry_watch(&expiry, &items[i], 1000);
        CHECK(sd_event_run(event, 0) > 0);
        CHECK(ended->len > 0 && ended->len < N_ITEMS);
        run();
        CHECK_INT(ended->len, N_ITEMS);
        end();
}

static void test_only_idle_ones_end(void) {
        const uint64_t later = clock_usec() + UINT64_C(3600000000);

        begin();
        expiry_watch(&expiry, &items[0], 1000);
        expiry_watch(&expiry, &items[1], 1000);
        expiry_watch(&expiry, &items[2], later);
        expiry_watch(&expiry, &items[3], 1000);
        expiry_forget(&items[0]);
        expiry_watch(&expiry, &items[3], later); /* it was used again */
        run();
        CHECK_INT(ended->len, 1);
        CHECK_INT(g_array_index(ended, unsigned, 0), 1);
        expiry_watch(&expiry, &items[2], 1000);
        run();
        CHECK_INT(ended->len, 2);
        end();
}

int main(void) {
        static const Test tests[] = { TEST(test_order), TEST(test_turns), TEST(test_only_idle_ones_end) };

        return test_main(tests, N_ELEMENTS(tests));
}
