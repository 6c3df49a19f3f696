/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The effects of time on a job that waits (job.h): a parked job frees memory, and ends after a while; a job
 * that met a lock tries again; a deadline ends these, and one that awaits its server; a job that drains goes to the
 * supervisor.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_TIME_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_TIME_H

#include "daemon/worker/core/job.h"

/* job_next_usec() says when job_on_time() must be called if nothing else happens; UINT64_MAX: never. */
uint64_t job_next_usec(const Job *job);
void job_on_time(Job *job, uint64_t now_usec);

/* True if a writer has waited for this job's lock, or the log has been too large because of this job, for as long as
 * ParkTimeoutRollbackSec= allows; then job->error says so. Asks the kernel every 50 ms at most. */
bool job_is_in_writers_way(Job *job, uint64_t now_usec);

/* A commit, or a statement that runs alone, has met the lock of readers, perhaps of jobs of this worker. */
bool job_context_waits_for_readers(const JobContext *context);

#endif
