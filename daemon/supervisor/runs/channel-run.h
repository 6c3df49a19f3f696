/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supervisor's knowledge of the runs on a channel. Supervisor.
 *
 * The reports of the worker are the only source, and come at most twice a second. Sums are exact. The run under way, its
 * duration, and if it was slow are known only for runs that last.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_CHANNEL_RUN_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_CHANNEL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/log.h"

/* Each report of the worker tells one of these anew, and any may follow any other. */
typedef enum ChannelRunState {
        CHANNEL_RUN_NONE,
        CHANNEL_RUN_RUNNING,
        CHANNEL_RUN_PARKED,         /* its reader does not read */
        CHANNEL_RUN_DRAINING,       /* it has ended, and its reader has not read its end */
} ChannelRunState;

/* The run under way on a channel, by its worker's last report. */
typedef struct ChannelRun {
        ChannelRunState state;
        uint64_t usec;              /* how long it had lasted at `noted_usec` */
        uint64_t noted_usec;        /* when the report came */
        uint64_t parked_usec;       /* how much of that time its reader did not read */
        uint64_t n_rows, n_bytes;   /* delivered, as far as they can be told apart from those of the run before */
        char *excerpt;              /* start of its SQL; owned */
} ChannelRun;

/* Notes a report, and logs a run that ended and took more than `slow_usec` (one a minute for each uid and database).
 * `fields`: without time and rows; its `run` is the channel's number. Returns false if the run that was known before
 * goes on, else true. */
bool channel_run_note(ChannelRun *run, const ChannelProgress *progress, const LogFields *fields, uint64_t slow_usec);

/* The state of the run under way, as ListRuns names it. */
const char *channel_run_state(const ChannelRun *run);

/* How long the run under way has lasted, in microseconds. */
uint64_t channel_run_usec(const ChannelRun *run);

/* Frees what `run` owns. */
void channel_run_done(ChannelRun *run);

#endif
