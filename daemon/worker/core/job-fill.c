/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-fill.h.
 */
#include "daemon/worker/core/job-fill.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/job-encode.h"
#include "daemon/worker/core/monotonic.h"

/* ---- limits ---- */

/* Earlier rows are already sent, or still in the page: they go out before the ERROR. */
static JobFill too_many_rows(Job *job) {
        (void) sql_error_set(&job->error, ERROR_LIMITS_EXCEEDED,
                             "the result has more than the %llu rows of ResultRowsMax=: ask for less at a time",
                             (unsigned long long) job->spec->result_rows_max);
        return JOB_FILL_FAILED;
}

bool job_check_result_size(Job *job) {
        (void) page_encoder_finish(&job->encoder);
        return job_bytes(job) <= job->spec->result_size_max ||
               sql_error_set(&job->error, ERROR_LIMITS_EXCEEDED,
                             "the result is over ResultSizeMax= (%llu bytes): ask for less at a time",
                             (unsigned long long) job->spec->result_size_max);
}

static JobFill row_too_large(Job *job, uint64_t size) {
        (void) sql_error_set(
                &job->error, ERROR_ROW_TOO_LARGE,
                "a row of %llu bytes is over the limit of %llu: select less of it, substr() of the long values for one",
                (unsigned long long) size, (unsigned long long) job->spec->row_size_max);
        return JOB_FILL_FAILED;
}

/* An EXECUTE has no place for rows. */
static JobFill has_rows(Job *job) {
        (void) sql_error_set(&job->error, ERROR_NOT_ALLOWED, JOB_HAS_ROWS);
        return JOB_FILL_FAILED;
}

/* ---- columns ---- */

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

/* ---- rows ---- */

/* Makes the first step. FULL: there is more to do. */
static JobFill step(Job *job) {
        EngineResult result = job_engine(job)->step(job->statement, &job->sink, &job->error);

        if (result == ENGINE_BUSY)
                return JOB_FILL_BUSY;
        if (result == ENGINE_AWAITS)
                return JOB_FILL_AWAITS;
        if (result == ENGINE_FAILED)
                return JOB_FILL_FAILED;
        if (job->connection && !job->keeps) /* the statement has the transaction now, if it reads from the database at all */
                job_engine(job)->let_go(job->connection);
        job->rows_ended = result == ENGINE_DONE;
        if (!job->page)
                return job->sink.n_columns > 0 ? has_rows(job) : JOB_FILL_FULL;
        return begin_columns(job) ? JOB_FILL_FULL : JOB_FILL_FAILED;
}

/* The row that waits does not fit beside the others. *ret_full: the page must be sent first. */
static JobFill make_room(Job *job, bool *ret_full) {
        uint64_t size;
        int r;

        *ret_full = !page_encoder_is_empty(&job->encoder) && !job_row_is_big(job);
        if (*ret_full)
                return JOB_FILL_FULL;
        r = job_begin_big_row(job, &size);
        if (r < 0)
                return JOB_FILL_FAILED;
        return r > 0 ? JOB_FILL_FULL : row_too_large(job, size);
}

/* Has the engine fill the page. *ret_full: it must be sent. Otherwise FULL means that there is more to do. */
static JobFill fill(Job *job, bool *ret_full) {
        switch (job_engine(job)->fill(job->statement, &job->sink, &job->error)) {
        case ENGINE_DONE:
                job->rows_ended = true;
                return JOB_FILL_FULL;
        case ENGINE_PAGE_FULL:
                *ret_full = true;
                return JOB_FILL_FULL;
        case ENGINE_NO_ROOM:
                return make_room(job, ret_full);
        case ENGINE_AWAITS:
                return JOB_FILL_AWAITS;
        case ENGINE_ROW_TOO_LARGE:
                return row_too_large(job, job->sink.row_size);
        case ENGINE_TOO_MANY_ROWS:
                return too_many_rows(job);
        case ENGINE_ROW: /* not a result of fill() */
        case ENGINE_BUSY:
        case ENGINE_FAILED:
                break;
        }
        return JOB_FILL_FAILED;
}

JobFill job_fill(Job *job) {
        bool full = false;

        if (!job->rows_ended && !job_set_time_zone(job))
                return JOB_FILL_FAILED;
        /* the writer's connection is needed for others */
        job->sink.may_await = job->state == JOB_READY && job_engine(job)->awaited_fd;
        while (!full) {
                if (job->payload.bytes) {
                        int r = job_encode_payload(job);

                        if (r < 0)
                                return JOB_FILL_FAILED;
                        full = r == 0 || job->encoder.tail; /* the tail is invalid after the next step */
                } else if (job->rows_ended)
                        return JOB_FILL_DONE;
                else {
                        JobFill r = job->sink.n_columns == 0 ? step(job) : fill(job, &full);

                        if (r != JOB_FILL_FULL)
                                return r;
                        /* if the progress handler has begun to send the page, that must be finished before the page
                         * changes */
                        full = full || !page_writer_is_idle(&job->writer);
                }
        }
        return JOB_FILL_FULL;
}
