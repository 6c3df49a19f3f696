/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The owner of a job (job.h): it writes the pages, and hears of the job's events. A job from the
 * supervisor (supervisor-job.h) and a request of a channel (channel-request.h) are owners; the job does not know which.
 * Nothing here is called for each row.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_OWNER_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_OWNER_H

#include <stdbool.h>

typedef struct Job Job;

typedef struct JobOwner {
        /* The owner collects the answers of several jobs in one page, and writes it later. So a job is over as soon as its
         * end is in the page, and its end is there even if it never started. Otherwise the job writes its end itself, but
         * only if it has started: an earlier error becomes the reply of a method. */
        bool collects;

        /* The statement is compiled, and bound unless the job only prepares it. False with job->error: the job ends with
         * that. */
        bool (*started)(Job *job);

        /* Continues to write the page: a result of page_writer_flush(), except -ENOMEM. It may set job->wait.again_usec. */
        int (*write_page)(Job *job);

        /* True if the reader has left. Makes at most one system call. */
        bool (*reader_left)(const Job *job);

        /* The reader has not kept up: the job waits for room. Or a load has many rows. NULL: of no interest. */
        void (*waits)(Job *job);

        /* `parked` has changed: a job that waits has settled down to that, or has written its page. */
        void (*parked)(Job *job, bool parked);

        /* A page was written. */
        void (*progress)(Job *job);

        /* The job ends: the engine is reset, and job->error says why. Called once. `drained`: nothing is left to be written,
         * or only a last piece that the pipe will take. */
        void (*ended)(Job *job, bool drained);

        /* The same holds now for a job that ended without being drained. Called once; NULL: of no interest. */
        void (*drained)(Job *job);

        /* The reader of a draining job has taken nothing for drain_usec: the supervisor must write the rest. */
        void (*hand_over)(Job *job);
} JobOwner;

#endif
