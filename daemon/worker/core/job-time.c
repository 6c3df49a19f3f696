/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The effects of time on a job that waits (job.h): a parked job frees memory, and ends after a while; a job
 * that met a lock tries again; a deadline ends both; a job that drains goes to the supervisor.
 */
#include <malloc.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/worker/core/job-report.h"
#include "daemon/worker/core/job.h"
#include "daemon/worker/core/monotonic.h"

#define SETTLE_USEC (20 * USEC_PER_MSEC) /* parked for so long: the reader is slow, and not just a little late */
#define ASK_USEC (50 * USEC_PER_MSEC)    /* between two checks for waiting writers */
#define KERNEL_PAGE ((uintptr_t) 4096)

/* Returns memory to the kernel: the part of the page that was sent, SQLite's cache, and memory that a sorter freed when its
 * rows went to a file. */
static void trim(Job *job) {
        uintptr_t start = (uintptr_t) job->page, end = (start + job->writer.sent) & ~(KERNEL_PAGE - 1);

        if (end > start)
                (void) madvise(job->page, end - start, MADV_DONTNEED);
        if (job->connection) {
                (void) sqlite3_db_release_memory(job->connection->database.db);
                (void) sqlite3_db_release_memory(job->connection->database.file);
        }
        (void) malloc_trim(0);
}

static uint64_t park_usec(const Job *job) {
        const Setup *setup = job->context->setup;
        bool rollback = job->connection && database_keeps_writers_out(&job->connection->database);

        return rollback ? setup->park_rollback_usec : setup->park_usec;
}

/* Called once the job has been parked for a while: frees memory, and tells the supervisor. */
static void settle(Job *job) {
        if (job->parked_said)
                return;
        trim(job);
        job->park_until_usec = job->parked_usec + park_usec(job);
        job_report_parked(job, true);
}

static uint64_t earlier(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

void job_set_busy(Job *job, int code) {
        if (code == SQLITE_PROTOCOL) /* a log that cannot be read for so long was left so by a writer that died */
                (void) sql_error_set(&job->error, ERROR_NEEDS_OWNER,
                                     "the \"-wal\" and \"-shm\" files of this WAL database are in a state that only a "
                                     "writer can repair. Open the database once with a program that may write to it.");
        else
                (void) sql_error_set(&job->error, ERROR_BUSY,
                                     "a writer keeps the database locked (BusyTimeoutSec= passed): try again later");
        job->error.extended_code = code == SQLITE_PROTOCOL ? SQLITE_PROTOCOL : SQLITE_BUSY;
}

/* A writer that has given up and another one that has come since look the same. Both wait for this job. */
bool job_is_in_writers_way(Job *job, uint64_t now) {
        const uint64_t patience_usec = job->context->setup->park_rollback_usec;
        uint64_t pause_usec = patience_usec < ASK_USEC ? patience_usec : ASK_USEC;

        if (!job->connection || now < job->asked_usec + pause_usec)
                return false;
        job->asked_usec = now;
        if (!database_writer_waits(&job->connection->database)) {
                job->writer_usec = 0;
                return false;
        }
        if (job->writer_usec == 0)
                job->writer_usec = now;
        if (now - job->writer_usec < patience_usec)
                return false;
        (void) sql_error_set(&job->error, ERROR_TIMED_OUT,
                             "a writer has waited for the end of the query for ParkTimeoutRollbackSec=: make the query "
                             "cheaper, ask for less at a time, or put the database into WAL mode, in which readers are in "
                             "no writer's way");
        return true;
}

uint64_t job_next_usec(const Job *job) {
        switch (job->state) {
        case JOB_PARKED:
                return earlier(earlier(job->parked_said ? job->park_until_usec : job->parked_usec + SETTLE_USEC,
                                       job->spec->deadline_usec),
                               job->again_usec > 0 ? job->again_usec : UINT64_MAX);
        case JOB_RETRY:
                return job->is_prepare ? job->retry_usec : earlier(job->retry_usec, job->spec->deadline_usec);
        case JOB_READY:
                return 0;
        case JOB_DRAINING:
                return job->again_usec > 0 ? earlier(job->again_usec, job->drain_until_usec) : job->drain_until_usec;
        case JOB_OVER:
        case JOB_IDLE:
                return UINT64_MAX;
        }
        return UINT64_MAX;
}

/* The reader is slow, so the supervisor writes the rest: a job that only drains must not keep a worker. */
static void hand_over(Job *job) {
        uint8_t *bytes;
        size_t size;

        if (job_take_unread(job, &bytes, &size) < 0) {
                job->drain_until_usec = 0; /* there is no memory now: try again later */
                (void) job_drain(job);
                return;
        }
        job_report_unread(job, (Bytes) { .data = (const char *) bytes, .size = size });
        free(bytes);
        job->state = JOB_OVER;
}

void job_on_time(Job *job, uint64_t now) {
        bool again = job->again_usec > 0 && job->again_usec <= now;

        if (job->state == JOB_DRAINING && job->drain_until_usec <= now && !job->channel)
                hand_over(job);
        else if (job->state == JOB_DRAINING && again)
                job->state = JOB_READY;
        if (job->state != JOB_PARKED && job->state != JOB_RETRY)
                return;
        if (!job->is_prepare && job->spec->deadline_usec <= now) {
                job_cancel(job, ERROR_TIMED_OUT, "the query ran past its time limit (RunTimeoutSec= or timeout-usec)");
                return;
        }
        if (job->state == JOB_RETRY) {
                if (job->retry_usec <= now)
                        job->state = JOB_READY;
                return;
        }
        if (job->parked_usec + SETTLE_USEC <= now)
                settle(job);
        if (job->parked_said && job->park_until_usec <= now)
                job_cancel(
                        job, ERROR_READER_TOO_SLOW,
                        "less than a page was read from the pipe in ParkTimeoutSec=: a waiting reader holds up writers");
        else if (again)
                job->state = JOB_READY;
}
