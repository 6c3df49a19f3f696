/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The deadlines of all runs, on one timer. Supervisor.
 *
 * The timer is set if a deadline is earlier than the one that it waits for, and never postponed: it fires, finds that no
 * deadline has passed, and is set to the earliest one left. So a query that is over soon, whose deadlines change with its
 * state, costs no system call. While queries come all the time, the timer fires once in ten seconds.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_TIMER_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_TIMER_H

#include <stdint.h>
#include <systemd/sd-event.h>

/* Ends what is due by `now`, and returns the earliest deadline of the rest (UINT64_MAX: none). */
typedef uint64_t (*RunTimerHandler)(void *userdata, uint64_t now);

typedef struct RunTimer {
        sd_event_source *source;
        uint64_t usec; /* when it fires; UINT64_MAX: never */
        RunTimerHandler handler;
        void *userdata;
} RunTimer;

/* Makes the timer. -errno. */
int run_timer_start(RunTimer *t, sd_event *event, RunTimerHandler handler, void *userdata);
void run_timer_done(RunTimer *t);

/* A run has the deadline `usec` now (CLOCK_MONOTONIC). */
void run_timer_arm(RunTimer *t, uint64_t usec);

#endif
