/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-slice.h. From top to bottom: limits, the start, the page, rows, and events inside a step.
 */
#include "daemon/worker/core/job-slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/job-encode.h"
#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/statement-frames.h"

#define RETRY_FIRST_USEC (2 * USEC_PER_MSEC)  /* after a lock was met; doubles up to RETRY_MAX_USEC */
#define RETRY_MAX_USEC (50 * USEC_PER_MSEC)

/* ---- limits ---- */

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

/* Earlier rows are already sent, or still in the page: they go out before the ERROR. */
static JobState too_many_rows(Job *job) {
        (void) sql_error_set(&job->error, ERROR_LIMITS_EXCEEDED,
                             "the result has more than the %llu rows of ResultRowsMax=: ask for less at a time",
                             (unsigned long long) job->spec->result_rows_max);
        return job_end(job, ERROR_NONE, NULL);
}

static JobState row_too_large(Job *job, uint64_t size) {
        (void) sql_error_set(
                &job->error, ERROR_ROW_TOO_LARGE,
                "a row of %llu bytes is over the limit of %llu: select less of it, substr() of the long values for one",
                (unsigned long long) size, (unsigned long long) job->spec->row_size_max);
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

/* ---- rows ---- */

/* Puts the whole COLUMNS frame into the page, if it has room. But not if the progress handler has begun to send the page:
 * that must be finished first. */
static bool encode_columns(Job *job, const uint8_t *payload, size_t size) {
        PageEncoder *e = &job->encoder;

        if (!page_writer_is_idle(&job->writer) || !page_encoder_begin_part(e, FRAME_COLUMNS) ||
            page_encoder_part_room(e) < size)
                return false;
        (void) page_encoder_append(e, payload, size);
        page_encoder_end_part(e, false);
        return true;
}

/* The number of columns may have changed between the compile and the first step, if another program changed the schema. */
static bool begin_columns(Job *job) {
        const uint8_t *payload;
        size_t size;

        if (page_encoder_is_empty(&job->encoder))
                job->sink.first_row_usec = now_coarse_usec(); /* valid until there is a row */
        if (!job_engine(job)->columns(job->statement, job->spec->page_size, &payload, &size, &job->error))
                return false;
        if (encode_columns(job, payload, size))
                return true;
        job->payload.bytes = malloc(size);
        if (!job->payload.bytes)
                return sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
        memcpy(job->payload.bytes, payload, size);
        job->payload.size = size;
        job->payload.done = 0;
        return true;
}

/* Makes the first step. READY: continue. */
static JobState step(Job *job) {
        EngineResult result = job_engine(job)->step(job->statement, &job->sink, &job->error);

        if (result == ENGINE_BUSY)
                return retry(job);
        if (result == ENGINE_FAILED)
                return job_end(job, ERROR_NONE, NULL);
        if (!job->keeps) /* the statement has the transaction now, if it reads from the database at all */
                job_engine(job)->let_go(job->connection);
        job->rows_ended = result == ENGINE_DONE;
        return begin_columns(job) ? JOB_READY : job_end(job, ERROR_NONE, NULL);
}

/* The row that waits does not fit beside the others. *ret_full: the page must be sent first. */
static JobState make_room(Job *job, bool *ret_full) {
        uint64_t size;
        int r;

        if (!page_encoder_is_empty(&job->encoder) && !job_row_is_big(job)) {
                *ret_full = true;
                return JOB_READY;
        }
        r = job_begin_big_row(job, &size);
        if (r < 0)
                return job_end(job, ERROR_NONE, NULL);
        return r > 0 ? JOB_READY : row_too_large(job, size);
}

/* Has the engine fill the page. *ret_full: it must be sent. */
static JobState fill(Job *job, bool *ret_full) {
        switch (job_engine(job)->fill(job->statement, &job->sink, &job->error)) {
        case ENGINE_DONE:
                job->rows_ended = true;
                return JOB_READY;
        case ENGINE_PAGE_FULL:
                *ret_full = true;
                return JOB_READY;
        case ENGINE_NO_ROOM:
                return make_room(job, ret_full);
        case ENGINE_ROW_TOO_LARGE:
                return row_too_large(job, job->sink.row_size);
        case ENGINE_TOO_MANY_ROWS:
                return too_many_rows(job);
        case ENGINE_ROW: /* not a result of fill() */
        case ENGINE_BUSY:
        case ENGINE_FAILED:
                break;
        }
        return job_end(job, ERROR_NONE, NULL);
}

/* Steps and encodes until a page must be sent (READY with *ret_full) or the job changes its state. */
static JobState fill_page(Job *job, bool *ret_full) {
        *ret_full = false;
        while (!*ret_full) {
                JobState state = JOB_READY;

                if (job->payload.bytes) {
                        int r = job_encode_payload(job);

                        if (r < 0)
                                return job_end(job, ERROR_NONE, NULL);
                        *ret_full = r == 0 || job->encoder.tail; /* the tail is invalid after the next step */
                } else if (job->rows_ended)
                        return over_result_size(job) ? result_too_large(job) : job_end(job, ERROR_NONE, NULL);
                else {
                        state = job->sink.n_columns == 0 ? step(job) : fill(job, ret_full);
                        /* if the progress handler has begun to send the page, that must be finished before the page
                         * changes */
                        *ret_full = *ret_full || (state == JOB_READY && !page_writer_is_idle(&job->writer));
                }
                if (state != JOB_READY)
                        return state;
        }
        return JOB_READY;
}

JobState job_slice(Job *job) {
        bool full = false;
        JobState state;

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
                state = fill_page(job, &full);
                if (state != JOB_READY)
                        return state;
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
