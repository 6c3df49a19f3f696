/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-slice.h. From top to bottom: the limit of the result, the start, the page, the turn, and
 * events inside a step.
 */
#include "daemon/worker/core/job-slice.h"

#include <stdlib.h>

#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-fill.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/statement-frames.h"

#define RETRY_FIRST_USEC (2 * USEC_PER_MSEC)  /* after a lock was met; doubles up to RETRY_MAX_USEC */
#define RETRY_MAX_USEC (50 * USEC_PER_MSEC)

/* ---- the limit of the result ---- */

/* Called with a page that is not sent yet: if the result is too large, the page is dropped. */
static bool over_result_size(Job *job) {
        (void) page_encoder_finish(&job->encoder);
        return job_bytes(job) > job->spec->result_size_max;
}

static JobState result_too_large(Job *job) {
        uint64_t sent = job->writer.total;

        /* keeps the answers to earlier requests of a channel */
        page_encoder_cut(&job->encoder, job->sink.start_bytes > sent ? (size_t) (job->sink.start_bytes - sent) : 0);
        (void) sql_error_set(&job->error, ERROR_LIMITS_EXCEEDED,
                             "the result is over ResultSizeMax= (%llu bytes): ask for less at a time",
                             (unsigned long long) job->spec->result_size_max);
        return job_end(job, ERROR_NONE, NULL);
}

/* ---- the start ---- */

/* Another program is in the way, as job->error says. */
static JobState retry(Job *job) {
        uint64_t now = now_usec(), until = job->taken_usec + job->context->setup->busy_usec;

        if (job->owner->reader_left(job))
                return job_end(job, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
        if (now >= until) {
                job_engine(job)->give_up(&job->error);
                return job_end(job, ERROR_NONE, NULL);
        }
        sql_error_done(&job->error);
        job->wait.retry_delay_usec = job->wait.retry_delay_usec == 0 ? RETRY_FIRST_USEC : 2 * job->wait.retry_delay_usec;
        if (job->wait.retry_delay_usec > RETRY_MAX_USEC)
                job->wait.retry_delay_usec = RETRY_MAX_USEC;
        job->wait.retry_usec = now + job->wait.retry_delay_usec < until ? now + job->wait.retry_delay_usec : until;
        if (job->statement)
                job_engine(job)->reset(job->statement);
        if (job->connection)
                job_engine(job)->let_go(job->connection); /* a job that waits for a lock must hold none */
        return job_set_state(job, JOB_RETRY);
}

bool job_describe(Job *job) {
        EngineDescription d;
        bool ok;

        if (!job_engine(job)->describe(job->statement, &d, &job->error))
                return false;
        ok = statement_frames_statement(&d, &job->payload.bytes, &job->payload.size, &job->error);
        free(d.strings);
        if (!ok)
                return false;
        job_give_back(job);
        job->payload.done = 0;
        return job->rows_ended = true;
}

/* Gets a connection and a statement, and binds the parameters. False with job->error; if that is Busy, the caller must try
 * again. */
static bool start(Job *job) {
        const Engine *engine = job_engine(job);
        const JobSpec *spec = job->spec;

        if (!job->connection) {
                job->connection = job->kept;
                job->kept = NULL;
        }
        if (!job->connection &&
            !engine->connect(job->context->pool, spec->sql, spec->sql_size, job->hint, &job->connection, &job->error))
                return false;
        if (job->keeps)
                engine->hold(job->connection);
        if (!job->statement &&
            !engine->compile(job->connection, spec->sql, spec->sql_size, job->is_prepare || spec->describe, job->hint,
                             &job->statement, &job->error))
                return false;
        if (!job->is_prepare && !engine->bind(job->statement, spec, &job->error))
                return false;
        return job->started = job->owner->started(job);
}

/* ---- the page ---- */

static void begin_flush(Job *job) {
        PageEncoder *e = &job->encoder;

        page_writer_begin_with(&job->writer, job->page, page_encoder_finish(e), e->tail, e->tail_size);
}

static JobState park(Job *job) {
        job->wait.parked_usec = job->wait.lacking_usec > 0 ? job->wait.lacking_usec : now_usec();
        if (job->owner->waits)
                job->owner->waits(job);
        return job_set_state(job, JOB_PARKED);
}

/* Writes the page. READY: it is written; PARKED; or the job ends. */
static JobState flush(Job *job) {
        int r;

        if (page_writer_is_idle(&job->writer)) {
                if (over_result_size(job))
                        return result_too_large(job);
                begin_flush(job);
        }
        r = job->owner->write_page(job);
        if (r == PAGE_WRITER_FULL)
                return park(job);
        if (r < 0)
                return job_end(job, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
        job_set_parked(job, false);
        job->owner->progress(job);
        page_encoder_clear(&job->encoder);
        return job->state;
}

/* ---- the turn ---- */

JobState job_slice(Job *job) {
        job_wake(job);
        if (job->state == JOB_RETRY)
                (void) job_set_state(job, JOB_READY);
        if (job->state == JOB_ENDING)
                return job_finish(job);
        if (!job->started) {
                if (!start(job))
                        return job->error.error == ERROR_BUSY ? retry(job) : job_end(job, ERROR_NONE, NULL);
                if (!job->page) { /* the answer was given */
                        job_release(job);
                        return job_set_state(job, JOB_OVER);
                }
        }
        if (page_writer_is_idle(&job->writer)) {
                /* checked here, too, because the progress handler is hardly called while a job goes from page to page */
                if (job_is_in_writers_way(job, now_usec()))
                        return job_end(job, ERROR_NONE, NULL);
                switch (job_fill(job)) {
                case JOB_FILL_FULL:
                        break;
                case JOB_FILL_DONE:
                        return over_result_size(job) ? result_too_large(job) : job_end(job, ERROR_NONE, NULL);
                case JOB_FILL_BUSY:
                        return retry(job);
                case JOB_FILL_FAILED:
                        return job_end(job, ERROR_NONE, NULL);
                }
        }
        return flush(job);
}

/* ---- from inside a step ---- */

int job_on_progress(Job *job, uint64_t now, bool look) {
        if (job->error.error != ERROR_NONE)
                return 1;
        if (!job->page)
                return 0;
        if (job->deadline_usec <= now)
                return !sql_error_set(&job->error, ERROR_TIMED_OUT,
                                      "the query ran past its time limit (RunTimeoutSec= or timeout-usec)");
        if (look && job_is_in_writers_way(job, now))
                return 1;
        if (look && job->owner->reader_left(job))
                return !sql_error_set(&job->error, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
        if (page_writer_is_idle(&job->writer)) {
                /* first_row_usec is from the coarse clock: by the precise clock a row would seem to wait since the last
                 * tick */
                if (page_encoder_is_empty(&job->encoder) ||
                    now_coarse_usec() < job->sink.first_row_usec + ROW_SINK_WAIT_USEC)
                        return 0;
                begin_flush(job);
        } else if (!look)
                return 0;
        /* if the pipe is full or broken, the slice will find that again, and can handle it */
        if (page_writer_flush(&job->writer) == PAGE_WRITER_DONE) {
                job->owner->progress(job);
                page_encoder_clear(&job->encoder);
        }
        return 0;
}
