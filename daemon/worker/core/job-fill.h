/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Has the engine step a job's statement, and fills the job's page with the result: columns, rows, and the
 * parts of rows that fit into no page. These functions neither write the page nor end the job; their caller does.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_FILL_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_FILL_H

#include "daemon/worker/core/job.h"

#define JOB_HAS_ROWS "this statement returns rows: use Query or Fetch"

typedef enum JobFill {
        JOB_FILL_FULL,   /* the page must go out */
        JOB_FILL_DONE,   /* all rows are in the page, or were in earlier ones */
        JOB_FILL_BUSY,   /* the first step met a lock, with job->error for give_up() */
        JOB_FILL_AWAITS, /* the server has not answered; only if the job is READY */
        JOB_FILL_FAILED, /* with job->error */
} JobFill;

/* Steps and encodes until the page is full, or there is nothing more. The statement must be bound. */
JobFill job_fill(Job *job);

/* Checks the size of the result so far, with the page: LimitsExceeded. */
bool job_check_result_size(Job *job);

#endif
