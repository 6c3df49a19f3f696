/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The turn of a job: it gets a connection, compiles and binds, then has the engine fill a page, and sends
 * that.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_SLICE_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_SLICE_H

#include "daemon/worker/core/job.h"

/* Continues until a page is written, the pipe is full, or the job is over. Returns the job's new state. */
JobState job_slice(Job *job);

/* True if the job awaits its server, which has now answered. */
bool job_is_answered(const Job *job);

/* Called by the progress handler: sends a page that has waited, and checks if the reader left or time is up. Non-zero:
 * interrupt the statement. With `look` it also makes system calls. */
int job_on_progress(Job *job, uint64_t now_usec, bool look);

/* Makes the description of a compiled statement the whole answer. For owners that get it in the page. False with
 * job->error. */
bool job_describe(Job *job);

#endif
