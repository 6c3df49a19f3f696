/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The deadlines of all runs, on one timer. Supervisor. */
#include <string.h>

#include "daemon/supervisor/clock.h"
#include "daemon/supervisor/context.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/run-timer.h"
#include "daemon/supervisor/run.h"
#include "daemon/supervisor/worker.h"

#define ACCURACY_USEC 1000
#define SPARED_USEC UINT64_C(1000000)

static void set(RunTimer *t, uint64_t usec) {
        int r = sd_event_source_set_time(t->source, usec);

        if (r >= 0)
                r = sd_event_source_set_enabled(t->source, SD_EVENT_ONESHOT);
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
        t->usec = usec;
}

void run_timer_arm(Context *context, uint64_t usec) {
        if (usec < context->run_timer->usec)
                set(context->run_timer, usec);
}

/* Collects numbers, not pointers, of the runs whose deadline has passed: handling one run may free others. */
static GArray *due(const Context *context, uint64_t now, uint64_t *ret_next) {
        GArray *numbers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        GHashTableIter i;
        void *value;

        *ret_next = UINT64_MAX;
        g_hash_table_iter_init(&i, context->runs);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const Run *run = value;

                if (run->due_usec <= now)
                        g_array_append_val(numbers, run->number);
                else
                        *ret_next = MIN(*ret_next, run->due_usec);
        }
        return numbers;
}

/* Returns the run of this number if its deadline still holds after its worker's messages were read: the answer may already
 * be in the socket. */
static Run *find_due(Context *context, uint64_t number, uint64_t now) {
        Run *run = g_hash_table_lookup(context->runs, &number);

        if (run && run->worker) {
                worker_process(run->worker);
                run = g_hash_table_lookup(context->runs, &number);
        }
        return run && run->due_usec <= now ? run : NULL;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        Context *context = userdata;
        uint64_t now = clock_usec(), next;
        g_autoptr(GArray) numbers = due(context, now, &next);

        set(context->run_timer, next);
        for (unsigned i = 0; i < numbers->len; i++) {
                Run *run = find_due(context, g_array_index(numbers, uint64_t, i), now);

                if (!run)
                        continue;
                if (clock_timer_was_late(run->due_usec, &run->spared)) {
                        run->due_usec = now + SPARED_USEC;
                        run_timer_arm(context, run->due_usec);
                } else {
                        run->due_usec = UINT64_MAX;
                        run_on_timeout(run);
                }
        }
        return 0;
}

int run_timer_start(Context *context) {
        context->run_timer->usec = UINT64_MAX;
        return sd_event_add_time(context->event, &context->run_timer->source, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_USEC,
                                 on_timer, context);
}

void run_timer_done(RunTimer *t) {
        t->source = sd_event_source_disable_unref(t->source);
}
