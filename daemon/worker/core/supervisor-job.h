/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A job from the supervisor (PREPARE, RUN, EXECUTE, EXECUTE_BATCH, LOAD): owns the message with its pipe,
 * writes to that pipe or reads it, and reports each event of the job once, in the order of protocol.h. If a report fails,
 * its error is stored in context->report_error, and the worker ends because of it.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_SUPERVISOR_JOB_H
#define SQLIPC_DAEMON_WORKER_CORE_SUPERVISOR_JOB_H

#include "daemon/worker/core/job.h"
#include "daemon/worker/core/load.h"
#include "daemon/worker/core/task-queue.h"

typedef struct SupervisorJob {
        Task task;
        Job job;
        ReceivedMessage received; /* owned; has SQL, parameters and the pipe */
        Load load;                /* owned; of a LOAD */
        uint8_t *arguments;       /* owned: the mapping of a job that is in a file; NULL: it is in the message */
        uint64_t arguments_size;
        uint8_t *changes;         /* owned: of EXECUTE_BATCH; NULL: it is none */
        Bytes found[2];           /* TABLES: room for the answer; owned */
        uint64_t progress_usec;   /* when progress was last reported */
        unsigned n_full;          /* how often the pipe was full */
        bool watched;             /* the pipe is in the worker's epoll */
} SupervisorJob;

/* Takes over `received`. The job is READY; with an error, if it is in a file that is not valid. -ENOMEM. */
int supervisor_job_new(JobContext *context, ReceivedMessage *received, SupervisorJob **ret);

/* Frees a job in any state; its task must not be in the queue. Returns NULL. */
SupervisorJob *supervisor_job_free(SupervisorJob *j);

/* The job of a task that supervisor_job_new() made. */
SupervisorJob *supervisor_job_of(Task *t);

/* Waits for rows of a load, whose pipe is empty. -errno of epoll. */
int supervisor_job_await_rows(TaskQueue *q, Task *t);

#endif
