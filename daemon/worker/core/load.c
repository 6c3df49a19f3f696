/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See load.h.
 */
#include "daemon/worker/core/load.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "daemon/worker/core/monotonic.h"

#define TURN_USEC USEC_PER_MSEC           /* after which load_run() lets other tasks go on */
#define LARGE_SIZE ((uint64_t) 256 * 1024) /* a load of more bytes could use a larger pipe */

void load_init(Load *l, int fd, size_t page_size_max, size_t row_size_max) {
        *l = (Load) { .fd = fd };
        page_decoder_init(&l->source.decoder, page_size_max, row_size_max);
}

void load_done(Load *l) {
        page_decoder_done(&l->source.decoder);
}

bool load_check(Job *job) {
        return job_engine(job)->takes_rows(job->statement, &job->error);
}

bool load_has_ended(const Load *l) {
        return l->source.event == PAGE_END;
}

bool load_has_rows(const Load *l) {
        return l->source.event == PAGE_ROW || load_has_ended(l);
}

/* ---- the pipe ---- */

/* The error of a stream that is not in order. `event` is a result of page_decoder_next() or -ECONNRESET. */
static bool fail(Job *job, int event) {
        const PageDecoder *d = &job->load->source.decoder;
        uint64_t n = job->load->source.n_rows;

        switch (event) {
        case -ENOMEM:
                return sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
        case -EMSGSIZE:
                return sql_error_set(&job->error, ERROR_ROW_TOO_LARGE, "row %" PRIu64 " is larger than RowSizeMax= allows",
                                     n + 1);
        case -ECONNRESET:
                return sql_error_set(&job->error, ERROR_CANCELLED,
                                     "the pipe was closed after row %" PRIu64 " and before END, so nothing was written", n);
        case PAGE_ERROR:
                return sql_error_set(&job->error, ERROR_CANCELLED,
                                     "the client ended the load with an error after row %" PRIu64 ": %.*s", n,
                                     (int) d->error_message_size, d->error_message);
        default:
                return sql_error_set(&job->error, ERROR_INVALID_REQUEST,
                                     "the bytes in the pipe after row %" PRIu64 " are not valid: see sqlipc-page(5)", n);
        }
}

/* Decodes what was read. False: the stream is broken. */
static bool decode(Job *job) {
        RowSource *s = &job->load->source;

        do
                s->event = page_decoder_next(&s->decoder);
        while (s->event == PAGE_COLUMNS);
        return s->event == PAGE_MORE || load_has_rows(job->load) || fail(job, s->event);
}

bool load_read(Job *job) {
        Load *l = job->load;
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r = page_decoder_reserve(&l->source.decoder, &room, &size);

        if (r < 0)
                return fail(job, r);
        do
                n = read(l->fd, room, size);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno == EAGAIN)
                return l->waits = true;
        if (n <= 0)
                return fail(job, -ECONNRESET);
        page_decoder_commit(&l->source.decoder, (size_t) n);
        job->writer.total += (uint64_t) n;
        if (job->writer.total >= LARGE_SIZE && job->owner->waits)
                job->owner->waits(job);
        return decode(job);
}

/* ---- the rows ---- */

bool load_begin(Job *job, EngineConnection *connection) {
        const Engine *engine = job_engine(job);
        const JobSpec *spec = job->spec;
        bool ok = engine->compile(connection, spec->sql, spec->sql_size, !job->started, NULL, &job->statement, &job->error);

        if (!ok && job->error.error == ERROR_BUSY)
                engine->give_up(&job->error);
        if (!ok)
                return false;
        job->load->statement = job->statement;
        ok = load_check(job) && (job->started || job->owner->started(job));
        job->started = job->started || ok;
        job->statement = NULL;
        if (!ok)
                load_stop(job);
        return ok;
}

/* An error of the engine is about a row; the reason of an interrupt is not. */
static bool name_row(Job *job) {
        SqlError named = SQL_ERROR_INIT;

        if (job->error.extended_code == 0)
                return false;
        (void) sql_error_set(&named, job->error.error, "row %" PRIu64 ": %s", job->load->source.n_rows + 1,
                             sql_error_as_failure(&job->error).message);
        named.extended_code = job->error.extended_code;
        sql_error_done(&job->error);
        job->error = named;
        return false;
}

static bool run_rows(Job *job) {
        RowSource *s = &job->load->source;

        if (s->event == PAGE_ROW) {
                if (!job_set_time_zone(job))
                        return false;
                if (!job_engine(job)->load(job->load->statement, s, &job->error))
                        return name_row(job);
                job->sink.n_rows = s->n_rows;
                job->counters.n_changes = s->n_changes;
                job->owner->progress(job);
        }
        if (job->error.error != ERROR_NONE) /* it may have been cancelled in its last moment */
                return false;
        return s->event == PAGE_MORE || load_has_rows(job->load) || fail(job, s->event);
}

bool load_run(Job *job) {
        Load *l = job->load;

        l->source.until_usec = now_usec() + TURN_USEC;
        do {
                if (!run_rows(job))
                        return false;
        } while (l->source.event == PAGE_MORE && now_usec() < l->source.until_usec && load_read(job) && !l->waits);
        return job->error.error == ERROR_NONE;
}

void load_stop(Job *job) {
        if (job->load->statement)
                job_engine(job)->release(job->load->statement);
        job->load->statement = NULL;
}
