/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-end.h.
 */
#include "daemon/worker/core/job-end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"

static void take_counters(Job *job) {
        job->counters.n_rows = job->sink.n_rows;
        job->counters.usec = now_usec() - job->taken_usec;
        job->counters.sequence = job->sequence;
        if (job->statement)
                job_engine(job)->counters(job->statement, &job->counters);
}

/* False: there was no room. A prepared statement ends without a frame unless it failed. */
static bool encode_end_frame(const Job *job, PageEncoder *e) {
        Failure f;

        if (job->error.error == ERROR_NONE)
                return job->is_prepare || page_encoder_end(e, &job->counters);
        f = sql_error_as_failure(&job->error);
        return page_encoder_error(e, f.error, f.extended_code, f.sql_offset, f.message, strlen(f.message));
}

/* Puts the END or ERROR frame into the page and starts to write it, unless the owner does that later. False: there was no
 * room; the page must be written first. */
static bool encode_end(Job *job) {
        size_t offset = page_encoder_finish(&job->encoder), size;
        bool fits;

        job->counters.n_bytes = job->writer.total + offset - job->sink.start_bytes;
        fits = encode_end_frame(job, &job->encoder);
        size = page_encoder_finish(&job->encoder);
        job->end_encoded = fits;
        if (fits && job->owner->collects)
                return true;
        if (fits)
                page_writer_begin_last(&job->writer, job->page, size, offset);
        else
                page_writer_begin(&job->writer, job->page, size);
        return fits;
}

/* Tells the owner once that the job has ended, and once that it is drained. */
static void tell_end(Job *job, bool drained) {
        if (job->told == JOB_TOLD_NOTHING)
                job->owner->ended(job, drained);
        else if (job->told == JOB_TOLD_ENDED && drained && job->owner->drained)
                job->owner->drained(job);
        if (job->told != JOB_TOLD_DRAINED)
                job->told = drained ? JOB_TOLD_DRAINED : JOB_TOLD_ENDED;
}

/* Nothing more is written. */
static JobState end_unwritten(Job *job) {
        tell_end(job, true);
        return job_set_state(job, JOB_OVER);
}

static JobState drain(Job *job) {
        uint64_t now = now_usec(), drain_usec = job->context->setup->drain_usec;

        if (job->told == JOB_TOLD_DRAINED) /* the last piece only waits for the kernel's memory */
                job->wait.drain_until_usec = UINT64_MAX;
        else if (job->wait.drain_until_usec == 0)
                job->wait.drain_until_usec = drain_usec < UINT64_MAX - now ? now + drain_usec : UINT64_MAX;
        return job_set_state(job, JOB_DRAINING);
}

/* Puts the end into a page of its own. The bytes before it were copied elsewhere, and count as written. */
static size_t encode_end_alone(Job *job) {
        page_encoder_clear(&job->encoder);
        (void) encode_end(job); /* it fits an empty page */
        return page_encoder_finish(&job->encoder);
}

size_t job_end_size_left(const Job *job) {
        uint8_t page[UNREAD_END_SIZE_MAX];
        PageEncoder e;

        if (job->end_encoded)
                return 0;
        page_encoder_init(&e, page, sizeof page, 0);
        (void) encode_end_frame(job, &e); /* it fits an empty page */
        return page_encoder_finish(&e);
}

int job_take_unread(Job *job, uint8_t **ret, size_t *ret_size) {
        PageWriter *w = &job->writer;
        size_t n = w->bytes ? w->size - w->sent : 0;
        uint8_t *bytes = malloc(n + UNREAD_END_SIZE_MAX);

        if (!bytes)
                return -ENOMEM;
        if (n > 0)
                memcpy(bytes, w->bytes + w->sent, n);
        w->total += n;
        w->bytes = NULL;
        if (job_is_ending(job) && !job->end_encoded) {
                size_t end_size = encode_end_alone(job);

                memcpy(bytes + n, job->page, end_size);
                n += end_size;
                w->bytes = NULL;
        }
        page_encoder_clear(&job->encoder);
        *ret = bytes;
        *ret_size = n;
        return 0;
}

JobState job_finish(Job *job) {
        for (;;) {
                int r;

                if (page_writer_is_idle(&job->writer) && !job->end_encoded && encode_end(job) && job->owner->collects)
                        return end_unwritten(job);
                r = job->owner->write_page(job);
                if (r == PAGE_WRITER_LAST) {
                        job_set_parked(job, false);
                        tell_end(job, true);
                } else if (r == PAGE_WRITER_FULL) {
                        tell_end(job, false);
                        return drain(job);
                } else if (r < 0)
                        return job_end(job, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
                else if (job->end_encoded)
                        return job_set_state(job, JOB_OVER);
                else
                        page_encoder_clear(&job->encoder);
        }
}

/* The statement took effect, so an error must not say that it did not. Without rows to send, the end is in order. */
static void end_committed(Job *job, const char *message) {
        if (job->write.spool.left > 0)
                (void) sql_error_set(&job->error, ERROR_OUTCOME_UNKNOWN,
                                     "the statement took effect, but not all rows that it returned were sent: %s",
                                     message);
}

JobState job_end(Job *job, ErrorNumber reason, const char *message) {
        bool ends = !job_is_ending(job);
        bool unknown = job->error.error == ERROR_OUTCOME_UNKNOWN; /* it may have been written */

        if (job->state == JOB_QUEUED)
                job->write.queue->forget(job->write.queue, job);
        if (ends && job->counters.wrote && reason != ERROR_NONE && reason != ERROR_PIPE_CLOSED)
                end_committed(job, message);
        else if (reason == ERROR_PIPE_CLOSED || (ends && reason != ERROR_NONE && !unknown))
                (void) sql_error_set(&job->error, reason, "%s", message);
        if (ends) {
                take_counters(job);
                job_release(job);
                (void) job_set_state(job, JOB_ENDING);
        }
        if (reason == ERROR_PIPE_CLOSED || !job->page || (!job->started && !job->owner->collects))
                return end_unwritten(job);
        return ends ? job_finish(job) : job->state;
}
