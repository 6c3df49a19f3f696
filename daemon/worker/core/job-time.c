/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-time.h.
 */
#include "daemon/worker/core/job-time.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/monotonic.h"

#define SETTLE_USEC (20 * USEC_PER_MSEC) /* parked for so long: the reader is slow, and not just a little late */
#define ASK_USEC (50 * USEC_PER_MSEC)    /* between two checks for waiting writers */
#define ASK_LOG_USEC USEC_PER_SEC        /* the same of a job that is parked, if only the log grows meanwhile */
#define KERNEL_PAGE ((uintptr_t) 4096)

/* Returns memory to the kernel: the part of the page that was sent, the engine's cache, and memory that was freed
 * meanwhile. */
static void trim(Job *job) {
        uintptr_t start = (uintptr_t) job->page, end = (start + job->writer.sent) & ~(KERNEL_PAGE - 1);

        if (end > start)
                (void) madvise(job->page, end - start, MADV_DONTNEED);
        if (job->connection)
                job->context->engine->trim(job->connection);
        (void) malloc_trim(0);
}

static uint64_t park_usec(const Job *job) {
        const Setup *setup = job->context->setup;
        bool rollback = job->connection && job->context->engine->keeps_writers_out(job->connection);

        return rollback ? setup->park_rollback_usec : setup->park_usec;
}

/* Called once the job has been parked for a while: frees memory, and tells the owner. */
static void settle(Job *job) {
        if (job->wait.settled)
                return;
        trim(job);
        job->wait.park_until_usec = job->wait.parked_usec + park_usec(job);
        job_set_parked(job, true);
}

bool job_context_waits_for_readers(const JobContext *context) {
        const JobWriter *w = context->writer;

        return context->commit_waits || (w && w->waits_for_readers && w->waits_for_readers(w));
}

/* A writer of this worker must not give up before the readers do for which it waits. */
static uint64_t patience(const JobContext *context) {
        const Setup *setup = context->setup;

        return job_context_waits_for_readers(context) ? earlier(setup->park_rollback_usec, setup->busy_usec / 2)
                                                      : setup->park_rollback_usec;
}

/* The system does not tell of locks of the same process. */
static bool writer_waits(const Job *job) {
        const JobContext *context = job->context;

        if (context->engine->keeps_writers_out(job->connection) && job_context_waits_for_readers(context))
                return true;
        return context->engine->writer_waits(job->connection);
}

static bool keeps_log(const Job *job) {
        const Engine *engine = job->context->engine;

        return job->connection && engine->keeps_log && engine->keeps_log(job->connection);
}

/* When a parked job must check if the log has grown too large. UINT64_MAX: it is kept for no log. */
static uint64_t ask_log_usec(const Job *job) {
        if (!keeps_log(job))
                return UINT64_MAX;
        return job->asked_usec + earlier(job->context->setup->park_rollback_usec, ASK_LOG_USEC);
}

/* A writer that has given up and another one that has come since look the same. Both wait for this job. */
bool job_is_in_writers_way(Job *job, uint64_t now) {
        const uint64_t patience_usec = patience(job->context);
        uint64_t pause_usec = earlier(patience_usec, ASK_USEC);

        if (!job->connection || now < job->asked_usec + pause_usec)
                return false;
        job->asked_usec = now;
        if (!writer_waits(job)) {
                job->writer_usec = 0;
                return false;
        }
        if (job->writer_usec == 0)
                job->writer_usec = now;
        if (now - job->writer_usec < patience_usec)
                return false;
        if (keeps_log(job))
                (void) sql_error_set(
                        &job->error, ERROR_TIMED_OUT,
                        "the query has kept more than WalSizeMax= of the log from being written back for "
                        "ParkTimeoutRollbackSec=: make the query cheaper, or ask for less at a time");
        else
                (void) sql_error_set(
                        &job->error, ERROR_TIMED_OUT,
                        "a writer has waited for the end of the query for ParkTimeoutRollbackSec=: make the query cheaper, "
                        "ask for less at a time, or put the database into WAL mode, in which readers are in no writer's "
                        "way");
        return true;
}

uint64_t job_lock_until(Job *job, uint64_t now) {
        uint64_t wait = job->spec->lock_wait_usec;

        if (job->wait.lock_until_usec == 0)
                job->wait.lock_until_usec = wait < UINT64_MAX - now ? now + wait : UINT64_MAX;
        return job->wait.lock_until_usec;
}

/* When the wait of a QUEUED job for its turn to write ends; 1: it must be checked now, because a transaction is in the way;
 * UINT64_MAX: this is not known, or only the deadline ends it. */
static uint64_t turn_until(const Job *job) {
        const JobWriter *w = job->write.queue;

        if (job->spec->lock_wait_usec == UINT64_MAX || !w->is_taken || !w->is_taken(w, job))
                return UINT64_MAX;
        return job->wait.lock_until_usec > 0 ? job->wait.lock_until_usec : 1;
}

uint64_t job_next_usec(const Job *job) {
        const JobWait *w = &job->wait;
        uint64_t again = w->again_usec > 0 ? w->again_usec : UINT64_MAX;

        switch (job->state) {
        case JOB_PARKED:
                return earlier(earlier(w->settled ? w->park_until_usec : w->parked_usec + SETTLE_USEC, job->deadline_usec),
                               earlier(again, ask_log_usec(job)));
        case JOB_RETRY:
                return earlier(w->retry_usec, job->deadline_usec);
        case JOB_QUEUED:
                return earlier(job->deadline_usec, turn_until(job));
        case JOB_AWAITING:
                return job->deadline_usec;
        case JOB_READY:
        case JOB_ENDING:
                return 0;
        case JOB_DRAINING:
                return earlier(again, w->drain_until_usec);
        case JOB_OVER:
        case _JOB_STATE_MAX:
                return UINT64_MAX;
        }
        return UINT64_MAX;
}

static void on_parked_time(Job *job, uint64_t now, bool again) {
        if (job->wait.parked_usec + SETTLE_USEC <= now)
                settle(job);
        if ((job_context_waits_for_readers(job->context) || keeps_log(job)) && job_is_in_writers_way(job, now))
                (void) job_end(job, ERROR_NONE, NULL);
        else if (job->wait.settled && job->wait.park_until_usec <= now)
                (void) job_end(
                        job, ERROR_READER_TOO_SLOW,
                        "less than a page was read from the pipe in ParkTimeoutSec=: a waiting reader holds up writers");
        else if (again)
                job_wake(job);
}

static void on_queued_time(Job *job, uint64_t now) {
        if (job->deadline_usec <= now && job->load)
                (void) job_end(job, ERROR_TIMED_OUT,
                               "the load took longer than TransactionTimeoutSec= or timeout-usec allows: nothing was "
                               "written");
        else if (job->deadline_usec <= now)
                (void) job_end(job, ERROR_TIMED_OUT,
                               "the statement waited past its time limit (RunTimeoutSec= or timeout-usec) for its turn to "
                               "write: nothing was written");
        else if (turn_until(job) <= now && job_lock_until(job, now) <= now) {
                engine_set_locked(job_engine(job), &job->error, ENGINE_LOCKED);
                (void) job_end(job, ERROR_NONE, NULL);
        }
}

void job_on_time(Job *job, uint64_t now) {
        bool again = job->wait.again_usec > 0 && job->wait.again_usec <= now;

        switch (job->state) {
        case JOB_DRAINING:
                if (job->wait.drain_until_usec <= now)
                        job->owner->hand_over(job);
                else if (again)
                        job_wake(job);
                return;
        case JOB_QUEUED:
                on_queued_time(job, now);
                return;
        case JOB_PARKED:
        case JOB_RETRY:
        case JOB_AWAITING:
                if (job->deadline_usec <= now)
                        (void) job_end(job, ERROR_TIMED_OUT,
                                       "the query ran past its time limit (RunTimeoutSec= or timeout-usec)");
                else if (job->state == JOB_PARKED)
                        on_parked_time(job, now, again);
                else if (job->state == JOB_RETRY && job->wait.retry_usec <= now)
                        (void) job_set_state(job, JOB_READY);
                return;
        default:
                return;
        }
}
