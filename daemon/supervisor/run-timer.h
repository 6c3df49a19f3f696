/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The deadlines of all runs, on one timer. Supervisor.
 *
 * It is set where a deadline is earlier than what it waits for, and never put off: it fires, finds that none has passed, and
 * waits for the first that is left. So a query that is over soon, whose deadlines come and go by the state, costs no system
 * call; while queries come all the time the timer fires once in ten seconds.
 */
#ifndef SQLIPC_RUN_TIMER_H
#define SQLIPC_RUN_TIMER_H

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Manager Manager;

typedef struct RunTimer {
        sd_event_source *source;
        uint64_t usec; /* when it fires; UINT64_MAX: never */
} RunTimer;

int run_timer_start(Manager *m);
void run_timer_done(RunTimer *t);

/* A run has this for its deadline now (CLOCK_MONOTONIC): run_on_timeout() follows once it is past. */
void run_timer_arm(Manager *m, uint64_t usec);

#endif
