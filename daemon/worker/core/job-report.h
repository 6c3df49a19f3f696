/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Reports a job to the supervisor: each event once, in the order of protocol.h. If a report fails, its error
 * is stored in context->report_error, and the worker ends because of it. For jobs of a channel sums are reported instead
 * (channel-report.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_REPORT_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_REPORT_H

#include "daemon/worker/core/job.h"

/* Sends STARTED, with a description if the job asks for one. False: the statement cannot be described, LimitsExceeded or
 * OutOfMemory. */
bool job_report_started(Job *job, SqlError *error);

/* Sends PARKED, if `parked` has changed. */
void job_report_parked(Job *job, bool parked);

/* Sends FILLING: the job could use a larger pipe. */
void job_report_filling(Job *job);

/* Sends PROGRESS, at most twice a second. Called after a page was written, so there is something new to report. */
void job_report_progress(Job *job);

/* Sends ENDED at the first call, and DRAINED at a later one with `drained`. */
void job_report_end(Job *job, bool drained);

/* Sends DRAINED: nothing is left to be written except `unread`, which the supervisor writes (size 0: none). */
void job_report_unread(Job *job, Bytes unread);

#endif
