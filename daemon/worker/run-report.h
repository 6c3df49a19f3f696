/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Reports a run to the supervisor: each event once, in the order of protocol.h. If a report fails, its error
 * is stored in context->report_error, and the worker ends because of it. For runs of a channel sums are reported instead
 * (channel-report.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_RUN_REPORT_H
#define SQLIPC_DAEMON_WORKER_RUN_REPORT_H

#include "daemon/worker/run.h"

/* Sends STARTED, with a description if the job asks for one. False: the statement cannot be described, LimitsExceeded or
 * OutOfMemory. */
bool run_report_started(Run *run, SqlError *error);

/* Sends PARKED, if `parked` has changed. */
void run_report_parked(Run *run, bool parked);

/* Sends FILLING: the run could use a larger pipe. */
void run_report_filling(Run *run);

/* Sends PROGRESS, at most twice a second. Called after a page was written, so there is something new to report. */
void run_report_progress(Run *run);

/* Sends ENDED at the first call, and DRAINED at a later one with `drained`. */
void run_report_end(Run *run, bool drained);

/* Sends DRAINED: nothing is left to be written except `unread`, which the supervisor writes (size 0: none). */
void run_report_unread(Run *run, Bytes unread);

#endif
