/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job.h for the states. From top to bottom: creation and destruction, the end, the start, the slice, and
 * events from outside (progress, cancel; for time see job-time.c). Encoding into the page is in job-encode.h.
 */
#include "daemon/worker/core/job.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/worker/core/job-encode.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/describe.h"
#include "daemon/worker/sqlite/bind.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

#define ROW_WAITS_USEC (2 * USEC_PER_MSEC)    /* a row waits at most so long for its page to fill */
#define FIRST_PAGE_SIZE ((size_t) 16 * 1024)  /* sent at this size: the reader has rows while the next page fills */
#define RETRY_FIRST_USEC (2 * USEC_PER_MSEC)  /* after SQLITE_BUSY; doubles up to RETRY_MAX_USEC */
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

/* Releases SQLite: the statement goes to the cache, the connection to the pool, and the transaction ends. */
static void give_back(Job *job) {
        if (!job->connection)
                return;
        page_writer_keep_tail(&job->writer);
        connection_keep(job->connection, job->stmt);
        job->stmt = NULL;
        if (job->keeps && job->error.error == ERROR_NONE) /* after some errors SQLite has ended the transaction */
                job->kept = job->connection;
        else
                pool_give(job->context->pool, job->connection);
        job->connection = NULL;
}

void job_let_go(Job *job) {
        pool_give(job->context->pool, job->kept);
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
        return position(job) - job->start_bytes;
}

static void begin(Job *job, const JobSpec *spec, bool is_prepare, StatementHint *hint) {
        sql_error_done(&job->error);
        job->spec = spec;
        job->hint = hint;
        job->is_prepare = is_prepare;
        job->deadline_usec = is_prepare ? UINT64_MAX : spec->deadline_usec; /* a compile has its own limit */
        job->told = JOB_TOLD_NOTHING;
        job->refused = job->started = job->row_waits = job->rows_ended = job->big_row = job->end_encoded = false;
        (void) page_encoder_finish(&job->encoder);
        job->encoder.run = spec->number;
        job->start_bytes = position(job);
        job->payload_kind = is_prepare ? (FrameKind) FRAME_STATEMENT : FRAME_COLUMNS;
        job->n_columns = 0;
        job->n_rows = 0;
        job->counters = (EndCounters) {};
        job->wait = (JobWait) {};
        job->writer_usec = 0;
        job->taken_usec = now_usec();
        if (page_encoder_is_empty(&job->encoder))
                job->first_row_usec = now_coarse_usec();
}

void job_begin(Job *job, const JobSpec *spec, bool is_prepare, StatementHint *hint) {
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
                .n_rows = job->n_rows,
                .usec = now_usec() - job->taken_usec,
        };
        if (!job->stmt)
                return;
        job->counters.vm_steps = (uint64_t) sqlite3_stmt_status(job->stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
        job->counters.fullscan_steps = (uint64_t) sqlite3_stmt_status(job->stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
        job->counters.sorts = (uint64_t) sqlite3_stmt_status(job->stmt, SQLITE_STMTSTATUS_SORT, 1);
        job->counters.autoindexes = (uint64_t) sqlite3_stmt_status(job->stmt, SQLITE_STMTSTATUS_AUTOINDEX, 1);
}

/* Puts the END or ERROR frame into the page and starts to write it, unless the owner does that later. False: there was no
 * room; the page must be written first. */
static bool encode_end(Job *job) {
        size_t offset = page_encoder_finish(&job->encoder), size;
        int fits = 1;

        job->counters.n_bytes = job->writer.total + offset - job->start_bytes;
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

/* Ends the job with SQLite's failure. If the progress handler has set an error, that is the reason, whatever SQLite made of
 * the interrupt: a virtual table may turn it into another error. */
static JobState fail(Job *job, int rc) {
        if (job->error.error == ERROR_NONE)
                (void) database_fail(&job->connection->database, job->context->setup, rc, 0, &job->error);
        if (job->error.error == ERROR_LIMITS_EXCEEDED && (rc & 0xff) == SQLITE_TOOBIG)
                job->error.error = ERROR_ROW_TOO_LARGE; /* already one value is too large */
        return job_end(job, ERROR_NONE, NULL);
}

/* Called with a page that is not sent yet: if the result is too large, the page is dropped. */
static bool over_result_size(Job *job) {
        (void) page_encoder_finish(&job->encoder);
        return job_bytes(job) > job->spec->result_size_max;
}

static JobState result_too_large(Job *job) {
        uint64_t sent = job->writer.total;

        /* keeps the answers to earlier requests of a channel */
        page_encoder_cut(&job->encoder, job->start_bytes > sent ? (size_t) (job->start_bytes - sent) : 0);
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

/* `code` is SQLite's result for the obstacle. */
static JobState retry(Job *job, int code) {
        uint64_t now = now_usec(), until = job->taken_usec + job->context->setup->busy_usec;

        if (job->owner->reader_left(job))
                return job_end(job, ERROR_PIPE_CLOSED, READER_LEFT);
        if (now >= until) {
                job_set_busy(job, code);
                return job_end(job, ERROR_NONE, NULL);
        }
        sql_error_done(&job->error);
        job->wait.retry_delay_usec = job->wait.retry_delay_usec == 0 ? RETRY_FIRST_USEC : 2 * job->wait.retry_delay_usec;
        if (job->wait.retry_delay_usec > RETRY_MAX_USEC)
                job->wait.retry_delay_usec = RETRY_MAX_USEC;
        job->wait.retry_usec = now + job->wait.retry_delay_usec < until ? now + job->wait.retry_delay_usec : until;
        if (job->stmt)
                (void) sqlite3_reset(job->stmt);
        if (job->connection)
                database_let_go(&job->connection->database); /* a job that waits for a lock must hold none */
        return job_set_state(job, JOB_RETRY);
}

bool job_describe(Job *job) {
        if (!describe_prepared(job->stmt, &job->payload, &job->payload_size, &job->error))
                return false;
        give_back(job);
        job->payload_done = 0;
        return job->rows_ended = true;
}

/* Gets a connection and a statement, and binds the parameters. False with job->error; if that is Busy, the caller must try
 * again. */
static bool start(Job *job) {
        if (!job->connection) {
                job->connection = job->kept;
                job->kept = NULL;
        }
        if (!job->connection &&
            !pool_take(job->context->pool, job->spec->sql, job->spec->sql_size, job->hint, &job->connection, &job->error))
                return false;
        if (job->keeps)
                database_hold(&job->connection->database);
        if (!job->stmt && (job->is_prepare || job->spec->describe))
                connection_refresh(job->connection);
        if (!job->stmt && !connection_compile(job->connection, job->context->setup, job->spec->sql, job->spec->sql_size,
                                              job->hint, &job->stmt, &job->error))
                return false;
        if (!job->is_prepare && !bind_parameters(job->connection->database.db, job->stmt, job->spec, &job->error))
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

/* Puts the whole COLUMNS frame into the page without a copy, if it is in the cache and the page has room. But not if the
 * progress handler has begun to send the page: that must be finished first. */
static bool encode_cached_columns(Job *job) {
        PageEncoder *e = &job->encoder;
        const uint8_t *payload;
        size_t size;

        if (!page_writer_is_idle(&job->writer) ||
            !connection_columns(job->connection, job->stmt, job->spec->page_size, &payload, &size, &job->error) ||
            !page_encoder_begin_part(e, FRAME_COLUMNS) || page_encoder_part_room(e) < size)
                return false;
        (void) page_encoder_append(e, payload, size);
        page_encoder_end_part(e, false);
        return true;
}

/* The number of columns may have changed between the compile and the first step, if another program changed the schema. */
static bool begin_columns(Job *job) {
        if (page_encoder_is_empty(&job->encoder))
                job->first_row_usec = now_coarse_usec(); /* valid until there is a row */
        if (!encode_cached_columns(job)) {
                if (job->error.error != ERROR_NONE || !describe_columns(job->stmt, job->spec->page_size, &job->payload,
                                                                         &job->payload_size, &job->error))
                        return false;
                job->payload_done = 0;
        }
        job->n_columns = (unsigned) sqlite3_column_count(job->stmt);
        return true;
}

/* True if another program is in the way for a moment: a lock, a log that is being recovered, a schema that keeps
 * changing. */
static bool is_transient(int rc) {
        return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_PROTOCOL || (rc & 0xff) == SQLITE_SCHEMA;
}

/* Makes one step, and stores its result in the job's flags. READY: continue. */
static JobState step(Job *job) {
        int rc = sqlite3_step(job->stmt);

        if (rc != SQLITE_ROW && rc != SQLITE_DONE) { /* the connection has the reason until it is used again */
                if (is_transient(rc) && job->n_columns == 0 && job->error.error == ERROR_NONE)
                        return retry(job, rc);
                return fail(job, rc);
        }
        if (job->n_columns == 0 && !job->keeps) /* the statement has the transaction now, if it reads from the file at all */
                database_let_go(&job->connection->database);
        job->row_waits = rc == SQLITE_ROW;
        job->rows_ended = rc == SQLITE_DONE;
        if (job->n_columns == 0 && !begin_columns(job))
                return job_end(job, ERROR_NONE, NULL);
        if (job->row_waits && job->n_rows >= job->spec->result_rows_max)
                return too_many_rows(job);
        return JOB_READY;
}

static JobState out_of_memory(Job *job) {
        return fail(job, SQLITE_NOMEM);
}

static void row_is_in(Job *job) {
        job->row_waits = false;
        if (job->encoder.n_rows == 1 && job->encoder.frame == 0)
                job->first_row_usec = now_coarse_usec();
        job->n_rows++;
}

/* Puts the waiting row into the page. *ret_full: the page must be sent, either with the row or to make room for it. */
static JobState place_row(Job *job, bool *ret_full) {
        uint64_t size;
        int r = job_encode_row(job);

        if (r == -EMSGSIZE)
                return row_too_large(job, job->row_size);
        if (r < 0)
                return out_of_memory(job);
        if (r > 0) {
                row_is_in(job);
                *ret_full = (job->writer.total <= job->start_bytes && job->encoder.fill >= FIRST_PAGE_SIZE) ||
                            now_coarse_usec() - job->first_row_usec >= ROW_WAITS_USEC;
                return JOB_READY;
        }
        if (!page_encoder_is_empty(&job->encoder) && !job_row_is_big(job)) {
                *ret_full = true;
                return JOB_READY;
        }
        r = job_begin_big_row(job, &size);
        if (r < 0)
                return out_of_memory(job);
        return r > 0 ? JOB_READY : row_too_large(job, size);
}

/* Steps and encodes until a page must be sent (READY with *ret_full) or the job changes its state. */
static JobState fill_page(Job *job, bool *ret_full) {
        *ret_full = false;
        while (!*ret_full) {
                JobState state = JOB_READY;

                if (job->payload) {
                        int r = job_encode_payload(job);

                        if (r < 0)
                                return out_of_memory(job);
                        *ret_full = r == 0 || job->encoder.tail; /* the tail is invalid after the next step */
                } else if (job->row_waits)
                        state = place_row(job, ret_full);
                else if (job->rows_ended)
                        return over_result_size(job) ? result_too_large(job) : job_end(job, ERROR_NONE, NULL);
                else {
                        state = step(job);
                        /* if the progress handler has begun to send the page, that must be finished before the page
                         * changes */
                        *ret_full = state == JOB_READY && !page_writer_is_idle(&job->writer);
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
                        return job->error.error == ERROR_BUSY ? retry(job, job->error.extended_code)
                                                              : job_end(job, ERROR_NONE, NULL);
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
                if (page_encoder_is_empty(&job->encoder) || now_coarse_usec() < job->first_row_usec + ROW_WAITS_USEC)
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
