/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See compile-limit.h.
 */
#include "compile-limit.h"

#include <stdint.h>
#include <sys/time.h>

#include "clock.h"

#define GRACE_USEC USEC_PER_SEC /* as the supervisor leaves */

static uint64_t limit_usec, until_usec;

/* No longer than 31 bits of seconds, a lifetime: where time_t has no more than 32, what is cut off could be anything. */
static void set_alarm(uint64_t usec) {
        uint64_t seconds = usec / USEC_PER_SEC < INT32_MAX ? usec / USEC_PER_SEC : INT32_MAX;
        const struct itimerval alarm = {
                .it_value = { .tv_sec = (time_t) seconds, .tv_usec = (suseconds_t) (usec % USEC_PER_SEC) },
        };

        (void) setitimer(ITIMER_REAL, &alarm, NULL);
}

void compile_limit_set(uint64_t usec) {
        limit_usec = usec;
}

void compile_limit_begin(void) {
        if (limit_usec > 0)
                set_alarm(limit_usec + GRACE_USEC);
}

/* What holds outside a compile. */
static void set_run_alarm(void) {
        uint64_t now = until_usec > 0 ? now_usec() : 0;

        set_alarm(until_usec == 0 ? 0 : (until_usec > now ? until_usec - now : 0) + GRACE_USEC);
}

void compile_limit_end(void) {
        if (limit_usec > 0)
                set_run_alarm();
}

void compile_limit_run_begin(uint64_t deadline_usec) {
        until_usec = deadline_usec;
        set_run_alarm();
}

void compile_limit_run_end(void) {
        until_usec = 0;
        set_run_alarm();
}
