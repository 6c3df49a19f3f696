/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The end of a job: the engine is reset, the owner hears of it, and the rest of the page is written, then END
 * or ERROR.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_END_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_END_H

#include "daemon/worker/core/job.h"

#define JOB_READER_LEFT "the reader closed the pipe" /* the sentence of ERROR_PIPE_CLOSED */

/* Ends the job, whatever the reason: resets the engine, tells the owner, and goes on to write the rest and the end. `reason`
 * and its sentence become job->error; ERROR_NONE: that is set already, or the job is complete. The first reason counts, and
 * a second call does nothing except for ERROR_PIPE_CLOSED: without a reader nothing is written. Must not be called from
 * inside the job's own step. */
JobState job_end(Job *job, ErrorNumber reason, const char *message);

/* Writes the rest, then the end, of a job that is ENDING. It is DRAINING or OVER then. */
JobState job_finish(Job *job);

/* The size of END or ERROR if that is still to be put into a page, else 0. */
size_t job_end_size_left(const Job *job);

/* Takes the bytes that are still to be written, including END or ERROR, in memory that the caller frees. The job writes no
 * more. -ENOMEM. */
int job_take_unread(Job *job, uint8_t **ret, size_t *ret_size);

#endif
