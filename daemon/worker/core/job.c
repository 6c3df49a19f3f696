/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job.h for the states. From top to bottom: creation and destruction, the end, the start, the slice, and
 * events from outside (progress, cancel; for time see job-time.c). Encoding into the page is in job-encode.h.
 */
#include "daemon/worker/core/job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/worker/core/job-encode.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/statement-frames.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

#define RETRY_FIRST_USEC (2 * USEC_PER_MSEC)  /* after a lock was met; doubles up to RETRY_MAX_USEC */
#define RETRY_MAX_USEC (50 * USEC_PER_MSEC)

#define READER_LEFT "the reader closed the pipe"

/* ---- creation and destruction ---- */

static int page_new(JobContext *context, size_t size, uint8_t **ret) {
        void *page;

        if (size == SQLIPC_PAGE_SIZE_DEFAULT && context->spare_page) {
                *ret = context->spare_page;
                context->spare_page = NULL;
                return 0;
        }
        /* by mmap: the kernel provides memory as the page fills, and gets it back piece by piece */
        page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return -ENOMEM;
        *ret = page;
        return 0;
}

static void page_free(JobContext *context, uint8_t *page, size_t size) {
        if (!page)
                return;
        if (size == SQLIPC_PAGE_SIZE_DEFAULT && !context->spare_page)
                context->spare_page = page;
        else
                (void) munmap(page, size);
}

void job_context_trim(JobContext *context) {
        if (context->spare_page)
                (void) munmap(context->spare_page, SQLIPC_PAGE_SIZE_DEFAULT);
        context->spare_page = NULL;
}

int job_init(Job *job, const JobOwner *owner, JobContext *context, int fd, uint32_t page_size) {
        *job = (Job) {
                .owner = owner,
                .context = context,
                .writer = { .fd = fd },
                .error = SQL_ERROR_INIT,
        };
        if (page_size == 0)
                return 0;
        if (page_new(context, page_size, &job->page) < 0)
                return -ENOMEM;
        page_encoder_init(&job->encoder, job->page, page_size, 0);
        return 0;
}

static const Engine *engine_of(const Job *job) {
        return job->context->engine;
}

/* Gives statement and connection back to the engine, and ends the transaction. */
static void give_back(Job *job) {
        if (!job->connection)
                return;
        page_writer_keep_tail(&job->writer);
        if (job->statement)
                engine_of(job)->release(job->statement);
        job->statement = NULL;
        if (job->keeps && job->error.error == ERROR_NONE) /* after some errors the engine has ended the transaction */
                job->kept = job->connection;
        else
                engine_of(job)->disconnect(job->context->pool, job->connection);
        job->connection = NULL;
}

void job_let_go(Job *job) {
        if (job->kept)
                engine_of(job)->disconnect(job->context->pool, job->kept);
        job->kept = NULL;
        job->keeps = false;
}

static void release(Job *job) {
        give_back(job);
        free(job->payload);
        job->payload = NULL;
}

void job_done(Job *job) {
        if (!job->context)
                return;
        release(job);
        job_let_go(job);
        page_free(job->context, job->page, job->encoder.page_size);
        sql_error_done(&job->error);
}

/* ---- the state ---- */

bool job_state_may_follow(JobState from, JobState to) {
        static const unsigned may[_JOB_STATE_MAX] = {
                [JOB_OVER] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_READY] = 1 << JOB_RETRY | 1 << JOB_PARKED | 1 << JOB_ENDING | 1 << JOB_OVER,
                [JOB_RETRY] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_PARKED] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_ENDING] = 1 << JOB_DRAINING | 1 << JOB_OVER,
                [JOB_DRAINING] = 1 << JOB_ENDING | 1 << JOB_OVER,
        };

        return from < _JOB_STATE_MAX && to < _JOB_STATE_MAX && may[from] & 1u << to;
}

JobState job_set_state(Job *job, JobState state) {
        assert(job_state_may_follow(job->state, state));
        return job->state = state;
}

void job_wake(Job *job) {
        if (job->state == JOB_PARKED)
                (void) job_set_state(job, JOB_READY);
        else if (job->state == JOB_DRAINING)
                (void) job_set_state(job, JOB_ENDING);
}

/* The position of the page's next byte in the stream that the writer writes. */
static uint64_t position(const Job *job) {
        return job->writer.total + (job->writer.bytes ? job->writer.size - job->writer.sent : job->encoder.fill);
}

uint64_t job_bytes(const Job *job) {
        return position(job) - job->sink.start_bytes;
}

/* The run begins with the next byte of the page, which may have answers of earlier runs. */
static void begin_sink(Job *job) {
        job->sink = (RowSink) {
                .encoder = &job->encoder,
                .writer = &job->writer,
                .start_bytes = position(job),
                .row_size_max = job->spec->row_size_max,
                .n_rows_max = job->spec->result_rows_max,
                .first_row_usec = page_encoder_is_empty(&job->encoder) ? now_coarse_usec() : job->sink.first_row_usec,
        };
}

static void begin(Job *job, const JobSpec *spec, bool is_prepare, EngineHint *hint) {
        sql_error_done(&job->error);
        job->spec = spec;
        job->hint = hint;
        job->is_prepare = is_prepare;
        job->deadline_usec = is_prepare ? UINT64_MAX : spec->deadline_usec; /* a compile has its own limit */
        job->told = JOB_TOLD_NOTHING;
        job->refused = job->started = job->rows_ended = job->big_row = job->end_encoded = false;
        (void) page_encoder_finish(&job->encoder);
        job->encoder.run = spec->number;
        begin_sink(job);
        job->payload_kind = is_prepare ? (FrameKind) FRAME_STATEMENT : FRAME_COLUMNS;
        job->counters = (EndCounters) {};
        job->wait = (JobWait) {};
        job->writer_usec = 0;
        job->taken_usec = now_usec();
}

void job_begin(Job *job, const JobSpec *spec, bool is_prepare, EngineHint *hint) {
        begin(job, spec, is_prepare, hint);
        (void) job_set_state(job, JOB_READY);
}

SqlError *job_refuse(Job *job, const JobSpec *spec) {
        begin(job, spec, false, NULL);
        job->refused = true;
        (void) job_set_state(job, JOB_ENDING);
        return &job->error;
}

/* ---- the end ---- */

static void take_counters(Job *job) {
        job->counters = (EndCounters) {
                .n_rows = job->sink.n_rows,
                .usec = now_usec() - job->taken_usec,
        };
        if (job->statement)
                engine_of(job)->counters(job->statement, &job->counters);
}

/* Puts the END or ERROR frame into the page and starts to write it, unless the owner does that later. False: there was no
 * room; the page must be written first. */
static bool encode_end(Job *job) {
        size_t offset = page_encoder_finish(&job->encoder), size;
        int fits = 1;

        job->counters.n_bytes = job->writer.total + offset - job->sink.start_bytes;
        if (job->error.error != ERROR_NONE) {
                Failure f = sql_error_as_failure(&job->error);

                fits = page_encoder_error(&job->encoder, f.error, f.extended_code, f.sql_offset, f.message,
                                          strlen(f.message));
        } else if (!job->is_prepare)
                fits = page_encoder_end(&job->encoder, &job->counters);
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

static void set_parked(Job *job, bool parked) {
        if (job->wait.settled == parked)
                return;
        job->wait.settled = parked;
        job->owner->parked(job, parked);
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

/* Writes the rest, then the end. */
static JobState finish(Job *job) {
        for (;;) {
                int r;

                if (page_writer_is_idle(&job->writer) && !job->end_encoded && encode_end(job) && job->owner->collects)
                        return end_unwritten(job);
                r = job->owner->write_page(job);
                if (r == PAGE_WRITER_LAST) {
                        set_parked(job, false);
                        tell_end(job, true);
                } else if (r == PAGE_WRITER_FULL) {
                        tell_end(job, false);
                        return drain(job);
                } else if (r < 0)
                        return job_end(job, ERROR_PIPE_CLOSED, READER_LEFT);
                else if (job->end_encoded)
                        return job_set_state(job, JOB_OVER);
                else
                        page_encoder_clear(&job->encoder);
        }
}

JobState job_end(Job *job, ErrorNumber reason, const char *message) {
        bool ends = !job_is_ending(job);

        if (reason == ERROR_PIPE_CLOSED || (ends && reason != ERROR_NONE))
                (void) sql_error_set(&job->error, reason, "%s", message);
        if (ends) {
                take_counters(job);
                release(job);
                (void) job_set_state(job, JOB_ENDING);
        }
        if (reason == ERROR_PIPE_CLOSED || (!job->started && !job->owner->collects))
                return end_unwritten(job);
        return ends ? finish(job) : job->state;
}

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
                return job_end(job, ERROR_PIPE_CLOSED, READER_LEFT);
        if (now >= until) {
                engine_of(job)->give_up(&job->error);
                return job_end(job, ERROR_NONE, NULL);
        }
        sql_error_done(&job->error);
        job->wait.retry_delay_usec = job->wait.retry_delay_usec == 0 ? RETRY_FIRST_USEC : 2 * job->wait.retry_delay_usec;
        if (job->wait.retry_delay_usec > RETRY_MAX_USEC)
                job->wait.retry_delay_usec = RETRY_MAX_USEC;
        job->wait.retry_usec = now + job->wait.retry_delay_usec < until ? now + job->wait.retry_delay_usec : until;
        if (job->statement)
                engine_of(job)->reset(job->statement);
        if (job->connection)
                engine_of(job)->let_go(job->connection); /* a job that waits for a lock must hold none */
        return job_set_state(job, JOB_RETRY);
}

bool job_describe(Job *job) {
        EngineDescription d;
        bool ok;

        if (!engine_of(job)->describe(job->statement, &d, &job->error))
                return false;
        ok = statement_frames_statement(&d, &job->payload, &job->payload_size, &job->error);
        free(d.strings);
        if (!ok)
                return false;
        give_back(job);
        job->payload_done = 0;
        return job->rows_ended = true;
}

/* Gets a connection and a statement, and binds the parameters. False with job->error; if that is Busy, the caller must try
 * again. */
static bool start(Job *job) {
        const Engine *engine = engine_of(job);
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

/* ---- the slice ---- */

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
                return job_end(job, ERROR_PIPE_CLOSED, READER_LEFT);
        set_parked(job, false);
        job->owner->progress(job);
        page_encoder_clear(&job->encoder);
        return job->state;
}

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
        if (!engine_of(job)->columns(job->statement, job->spec->page_size, &payload, &size, &job->error))
                return false;
        if (encode_columns(job, payload, size))
                return true;
        job->payload = malloc(size);
        if (!job->payload)
                return sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
        memcpy(job->payload, payload, size);
        job->payload_size = size;
        job->payload_done = 0;
        return true;
}

/* Makes the first step. READY: continue. */
static JobState step(Job *job) {
        EngineResult result = engine_of(job)->step(job->statement, &job->sink, &job->error);

        if (result == ENGINE_BUSY)
                return retry(job);
        if (result == ENGINE_FAILED)
                return job_end(job, ERROR_NONE, NULL);
        if (!job->keeps) /* the statement has the transaction now, if it reads from the database at all */
                engine_of(job)->let_go(job->connection);
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
        switch (engine_of(job)->fill(job->statement, &job->sink, &job->error)) {
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

                if (job->payload) {
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
                return finish(job);
        if (!job->started) {
                if (!start(job))
                        return job->error.error == ERROR_BUSY ? retry(job) : job_end(job, ERROR_NONE, NULL);
                if (!job->page) { /* the answer was given */
                        release(job);
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

/* ---- from outside ---- */

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
                return !sql_error_set(&job->error, ERROR_PIPE_CLOSED, READER_LEFT);
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
