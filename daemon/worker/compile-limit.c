/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See compile-limit.h.
 */
#include "compile-limit.h"

#include <sys/time.h>

#include "clock.h"

#define GRACE_USEC USEC_PER_SEC /* as the supervisor leaves */

static uint64_t limit_usec;

static void set_alarm(uint64_t usec) {
        const struct itimerval alarm = {
                .it_value = { .tv_sec = (time_t) (usec / USEC_PER_SEC), .tv_usec = (suseconds_t) (usec % USEC_PER_SEC) },
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

void compile_limit_end(void) {
        if (limit_usec > 0)
                set_alarm(0);
}
