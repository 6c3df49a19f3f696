/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See compile-limit.h.
 */
#include "daemon/worker/core/compile-limit.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "daemon/worker/core/monotonic.h"

/* The same grace period as the supervisor's (grace.h). */
#define GRACE_USEC USEC_PER_SEC
#define ENOUGH_USEC (USEC_PER_SEC / 4) /* CPU time in which a worker could have reacted */
#define N_SPARED_MAX 4u                /* grace periods that a worker without CPU time gets in addition */

static uint64_t limit_usec, until_usec; /* of one compile; the deadline of the slice under way; 0: none */

/* The alarm's handler reads these, between any two instructions. */
static volatile uint64_t due_usec = UINT64_MAX; /* when the limit passes; UINT64_MAX: there is none */
static volatile unsigned n_alarms;              /* since this limit was set */

/* Limits seconds to 31 bits, a lifetime: a time_t of 32 bits would cut larger numbers off to arbitrary values. */
static void set_timer(uint64_t usec) {
        uint64_t seconds = usec / USEC_PER_SEC < INT32_MAX ? usec / USEC_PER_SEC : INT32_MAX;
        const struct itimerval alarm = {
                .it_value = { .tv_sec = (time_t) seconds, .tv_usec = (suseconds_t) (usec % USEC_PER_SEC) },
        };

        (void) setitimer(ITIMER_REAL, &alarm, NULL);
}

/* The first alarm means that the limit has passed, the next that a second more has. If the process did not get enough CPU
 * time in that second to react, it gets another one, but only a few times. */
static void on_alarm(int number) {
        static uint64_t enough_usec; /* CPU time at which it has had enough */
        uint64_t cpu_usec = clock_usec(CLOCK_PROCESS_CPUTIME_ID);
        unsigned n = n_alarms;

        if (now_usec() < due_usec) /* the alarm is for an earlier limit */
                return;
        n_alarms = n + 1;
        if (n == 0)
                enough_usec = cpu_usec + ENOUGH_USEC;
        else if (n > N_SPARED_MAX || cpu_usec >= enough_usec) {
                (void) signal(number, SIG_DFL);
                (void) raise(number); /* takes effect when this handler returns */
                return;
        }
        set_timer(GRACE_USEC);
}

/* Replaces an earlier handler of the signal. */
static void watch_alarm(void) {
        static bool watched;
        const struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

        if (!watched)
                watched = sigaction(SIGALRM, &action, NULL) == 0;
}

static void set_limit(uint64_t usec) {
        watch_alarm();
        n_alarms = 0;
        due_usec = now_usec() + usec;
        set_timer(usec > 0 ? usec : 1);
}

static void unset_limit(void) {
        due_usec = UINT64_MAX;
        set_timer(0);
}

void compile_limit_set(uint64_t usec) {
        limit_usec = usec;
}

void compile_limit_begin(void) {
        if (limit_usec > 0)
                set_limit(limit_usec);
}

/* Sets the alarm that applies outside a compile. */
static void set_run_alarm(void) {
        uint64_t now = until_usec > 0 ? now_usec() : 0;

        if (until_usec == 0)
                unset_limit();
        else
                set_limit(until_usec > now ? until_usec - now : 0);
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
