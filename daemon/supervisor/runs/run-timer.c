/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The deadlines of all runs, on one timer. Supervisor. */
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/runs/run-timer.h"

#define ACCURACY_USEC 1000

static void set(RunTimer *t, uint64_t usec) {
        int r = sd_event_source_set_time(t->source, usec);

        if (r >= 0)
                r = sd_event_source_set_enabled(t->source, SD_EVENT_ONESHOT);
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
        t->usec = usec;
}

void run_timer_arm(RunTimer *t, uint64_t usec) {
        if (usec < t->usec)
                set(t, usec);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        RunTimer *t = userdata;

        t->usec = UINT64_MAX;
        run_timer_arm(t, t->handler(t->userdata, clock_usec()));
        return 0;
}

int run_timer_start(RunTimer *t, sd_event *event, RunTimerHandler handler, void *userdata) {
        *t = (RunTimer) { .usec = UINT64_MAX, .handler = handler, .userdata = userdata };
        return sd_event_add_time(event, &t->source, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_USEC, on_timer, t);
}

void run_timer_done(RunTimer *t) {
        t->source = sd_event_source_disable_unref(t->source);
}
