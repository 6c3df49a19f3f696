/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects that end when they have been idle for some time. Supervisor. */
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/expiry.h"
#include "daemon/supervisor/base/log.h"

#define EXPIRED_AT_ONCE 64 /* how many expire in one turn of the loop (I1) */

static int compare(const void *a, const void *b, void *userdata) {
        const ExpiryItem *x = a, *y = b;

        return x->usec < y->usec ? -1 : x->usec > y->usec;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

/* If the first object is not idle meanwhile, the timer fires too early, which does no harm: it is set again. */
static void arm(Expiry *e, uint64_t usec) {
        int r;

        if (!e->timer)
                r = sd_event_add_time(e->event, &e->timer, CLOCK_MONOTONIC, usec, 0, on_timer, e);
        else {
                r = sd_event_source_set_time(e->timer, usec);
                if (r >= 0)
                        r = sd_event_source_set_enabled(e->timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
}

static ExpiryItem *first(const Expiry *e) {
        GSequenceIter *i = g_sequence_get_begin_iter(e->items);

        return g_sequence_iter_is_end(i) ? NULL : g_sequence_get(i);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Expiry *e = userdata;
        uint64_t now = clock_usec();
        ExpiryItem *item;

        for (unsigned n = 0; (item = first(e)) && item->usec <= now && n < EXPIRED_AT_ONCE; n++)
                e->handler(item);
        if (item)
                arm(e, item->usec);
        return 0;
}

void expiry_init(Expiry *e, sd_event *event, ExpiryHandler handler) {
        *e = (Expiry) { .event = event, .handler = handler, .items = g_sequence_new(NULL) };
}

void expiry_done(Expiry *e) {
        e->timer = sd_event_source_disable_unref(e->timer);
        g_clear_pointer(&e->items, g_sequence_free);
}

void expiry_watch(Expiry *e, ExpiryItem *item, uint64_t usec) {
        expiry_forget(item);
        item->usec = usec;
        item->position = g_sequence_insert_sorted(e->items, item, compare, NULL);
        if (g_sequence_iter_is_begin(item->position))
                arm(e, usec);
}

void expiry_forget(ExpiryItem *item) {
        if (item->position)
                g_sequence_remove(item->position);
        item->position = NULL;
}
