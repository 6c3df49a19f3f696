/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See run.h for the states. From top to bottom: creation and destruction, the end, the start, the slice, and
 * events from outside (progress, cancel; for time see run-time.c). Encoding into the page is in run-encode.h, reports to the
 * supervisor are in run-report.h.
 */
#include "daemon/worker/run.h"

#include <errno.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/worker/clock.h"
#include "daemon/worker/describe.h"
#include "daemon/worker/run-encode.h"
#include "daemon/worker/run-report.h"
#include "daemon/worker/sqlite/bind.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

#define ROW_WAITS_USEC (2 * USEC_PER_MSEC)    /* a row waits at most so long for its page to fill */
#define FIRST_PAGE_SIZE ((size_t) 16 * 1024)  /* sent at this size: the reader has rows while the next page fills */
#define RETRY_FIRST_USEC (2 * USEC_PER_MSEC)  /* after SQLITE_BUSY; doubles up to RETRY_MAX_USEC */
#define RETRY_MAX_USEC (50 * USEC_PER_MSEC)
#define N_FULL_BEFORE_FILLING 2
#define LACK_USEC (10 * USEC_PER_MSEC) /* until the next attempt if the kernel has no memory for a pipe */

/* ---- creation and destruction ---- */

static int page_new(RunContext *context, size_t size, uint8_t **ret) {
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

static void page_free(RunContext *context, uint8_t *page, size_t size) {
        if (!page)
                return;
        if (size == SQLIPC_PAGE_SIZE_DEFAULT && !context->spare_page)
                context->spare_page = page;
        else
                (void) munmap(page, size);
}

void run_context_trim(RunContext *context) {
        if (context->spare_page)
                (void) munmap(context->spare_page, SQLIPC_PAGE_SIZE_DEFAULT);
        context->spare_page = NULL;
}

int run_new(RunContext *context, ReceivedMessage *received, Run **ret) {
        const Job *job = &received->message.job;
        Run *run = calloc(1, sizeof *run);
        int r;

        if (!run)
                return -ENOMEM;
        *run = (Run) {
                .context = context,
                .is_prepare = received->message.kind == MESSAGE_PREPARE,
                .state = RUN_READY,
                .taken_usec = now_usec(),
                .payload_kind = FRAME_COLUMNS,
                .error = SQL_ERROR_INIT,
        };
        if (!run->is_prepare) {
                r = page_new(context, job->page_size, &run->page);
                if (r < 0) {
                        free(run);
                        return r;
                }
                page_encoder_init(&run->encoder, run->page, job->page_size, job->number);
        }
        run->received = *received;
        *received = RECEIVED_MESSAGE_INIT;
        run->job = &run->received.message.job;
        run->progress_usec = run->taken_usec;
        run->writer = (PageWriter) { .fd = run->received.pipe_fd };
        *ret = run;
        return 0;
}

/* Releases SQLite: the statement goes to the cache, the connection to the pool, and the transaction ends. */
static void give_back(Run *run) {
        if (!run->connection)
                return;
        page_writer_keep_tail(&run->writer);
        connection_keep(run->connection, run->stmt);
        run->stmt = NULL;
        if (run->keeps && run->error.error == ERROR_NONE) /* after some errors SQLite has ended the transaction */
                run->kept = run->connection;
        else
                pool_give(run->context->pool, run->connection);
        run->connection = NULL;
}

void run_let_go(Run *run) {
        pool_give(run->context->pool, run->kept);
        run->kept = NULL;
        run->keeps = false;
}

static void release(Run *run) {
        give_back(run);
        free(run->payload);
        run->payload = NULL;
}

Run *run_free(Run *run) {
        if (!run)
                return NULL;
        release(run);
        free(run->payload);
        page_free(run->context, run->page, run->job->page_size);
        sql_error_done(&run->error);
        received_message_done(&run->received);
        free(run);
        return NULL;
}

int run_init_channel(Run *run, RunContext *context, Channel *channel, int fd, uint32_t page_size) {
        *run = (Run) {
                .context = context,
                .channel = channel,
                .state = RUN_IDLE,
                .writer = { .fd = fd },
                .received = RECEIVED_MESSAGE_INIT,
                .error = SQL_ERROR_INIT,
        };
        if (page_new(context, page_size, &run->page) < 0)
                return -ENOMEM;
        page_encoder_init(&run->encoder, run->page, page_size, 0);
        return 0;
}

void run_done_channel(Run *run) {
        release(run);
        run_let_go(run);
        page_free(run->context, run->page, run->encoder.page_size);
        sql_error_done(&run->error);
}

/* The position of the page's next byte in the stream that the writer writes. */
static uint64_t position(const Run *run) {
        return run->writer.total + (run->writer.bytes ? run->writer.size - run->writer.sent : run->encoder.fill);
}

uint64_t run_bytes(const Run *run) {
        return position(run) - run->start_bytes;
}

void run_begin(Run *run, const Job *job, bool is_prepare, StatementHint *hint) {
        sql_error_done(&run->error);
        run->job = job;
        run->hint = hint;
        run->is_prepare = is_prepare;
        run->state = RUN_READY;
        run->refused = run->started = run->row_waits = run->rows_ended = run->big_row = false;
        run->ending = run->end_encoded = run->ended_said = run->drained_said = run->parked_said = false;
        (void) page_encoder_finish(&run->encoder);
        run->encoder.run = job->number;
        run->start_bytes = position(run);
        run->payload_kind = is_prepare ? (FrameKind) FRAME_STATEMENT : FRAME_COLUMNS;
        run->n_columns = 0;
        run->n_rows = 0;
        run->counters = (EndCounters) {};
        run->retry_delay_usec = run->drain_until_usec = 0;
        run->writer_usec = 0;
        run->taken_usec = now_usec();
        if (page_encoder_is_empty(&run->encoder))
                run->first_row_usec = now_coarse_usec();
}

SqlError *run_refuse(Run *run, const Job *job) {
        run_begin(run, job, false, NULL);
        run->ending = run->refused = true;
        return &run->error;
}

/* ---- the end ---- */

static void take_counters(Run *run) {
        run->counters = (EndCounters) {
                .n_rows = run->n_rows,
                .usec = now_usec() - run->taken_usec,
        };
        if (!run->stmt)
                return;
        run->counters.vm_steps = (uint64_t) sqlite3_stmt_status(run->stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
        run->counters.fullscan_steps = (uint64_t) sqlite3_stmt_status(run->stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
        run->counters.sorts = (uint64_t) sqlite3_stmt_status(run->stmt, SQLITE_STMTSTATUS_SORT, 1);
        run->counters.autoindexes = (uint64_t) sqlite3_stmt_status(run->stmt, SQLITE_STMTSTATUS_AUTOINDEX, 1);
}

/* Puts the END or ERROR frame into the page and starts to write it. A channel writes it later, when it has no more
 * requests. False: there was no room; the page must be written first. */
static bool encode_end(Run *run) {
        size_t offset = page_encoder_finish(&run->encoder), size;
        int fits = 1;

        run->counters.n_bytes = run->writer.total + offset - run->start_bytes;
        if (run->error.error != ERROR_NONE) {
                Failure f = sql_error_as_failure(&run->error);

                fits = page_encoder_error(&run->encoder, f.error, f.extended_code, f.sql_offset, f.message,
                                          strlen(f.message));
        } else if (!run->is_prepare)
                fits = page_encoder_end(&run->encoder, &run->counters);
        size = page_encoder_finish(&run->encoder);
        run->end_encoded = fits;
        if (fits && run->channel)
                return true;
        if (fits)
                page_writer_begin_last(&run->writer, run->page, size, offset);
        else
                page_writer_begin(&run->writer, run->page, size);
        return fits;
}

/* The reader is gone, so only the supervisor is told. */
static RunState close_down(Run *run) {
        (void) sql_error_set(&run->error, ERROR_PIPE_CLOSED, "the reader closed the pipe");
        release(run);
        run_report_end(run, true);
        return run->state = RUN_OVER;
}

/* Writes the page. If the kernel has no memory for the pipe, the pipe counts as full for now, so that its reader gets the
 * rest later. Such a pipe polls writable all the same, so a timer starts the next attempt. */
static int write_page(Run *run) {
        int r = page_writer_flush(&run->writer);

        if (r != -ENOMEM || run->channel) { /* a socket has a queue of fixed size, and lacks memory only for a moment */
                run->lacking_usec = run->again_usec = 0;
                return r == -ENOMEM ? PAGE_WRITER_FULL : r;
        }
        run->again_usec = now_usec() + LACK_USEC;
        if (run->lacking_usec == 0)
                run->lacking_usec = now_usec();
        return PAGE_WRITER_FULL;
}

RunState run_drain(Run *run) {
        uint64_t now = now_usec(), drain_usec = run->context->setup->drain_usec;

        if (!run->channel && run->drained_said) /* DRAINED was sent; the last piece only waits for the kernel's memory */
                run->drain_until_usec = UINT64_MAX;
        else if (run->drain_until_usec == 0)
                run->drain_until_usec = drain_usec < UINT64_MAX - now ? now + drain_usec : UINT64_MAX;
        return run->state = RUN_DRAINING;
}

/* Puts the end into a page of its own. The bytes before it were copied elsewhere, and count as written. */
static size_t encode_end_alone(Run *run) {
        page_encoder_clear(&run->encoder);
        (void) encode_end(run); /* it fits an empty page */
        return page_encoder_finish(&run->encoder);
}

int run_take_unread(Run *run, uint8_t **ret, size_t *ret_size) {
        PageWriter *w = &run->writer;
        size_t n = w->bytes ? w->size - w->sent : 0;
        uint8_t *bytes = malloc(n + UNREAD_END_SIZE_MAX);

        if (!bytes)
                return -ENOMEM;
        if (n > 0)
                memcpy(bytes, w->bytes + w->sent, n);
        w->total += n;
        w->bytes = NULL;
        if (run->ending && !run->end_encoded) {
                size_t end_size = encode_end_alone(run);

                memcpy(bytes + n, run->page, end_size);
                n += end_size;
                w->bytes = NULL;
        }
        page_encoder_clear(&run->encoder);
        *ret = bytes;
        *ret_size = n;
        return 0;
}

/* Writes the rest, then the end. SQLite is reset already. */
static RunState finish(Run *run) {
        for (;;) {
                int r;

                if (page_writer_is_idle(&run->writer) && !run->end_encoded && encode_end(run) && run->channel) {
                        run_report_end(run, true);
                        return run->state = RUN_OVER;
                }
                r = write_page(run);
                if (r == PAGE_WRITER_LAST) {
                        run_report_parked(run, false);
                        run_report_end(run, true);
                } else if (r == PAGE_WRITER_FULL) {
                        run_report_end(run, false);
                        return run_drain(run);
                } else if (r < 0)
                        return close_down(run);
                else if (run->end_encoded)
                        return run->state = RUN_OVER;
                else
                        page_encoder_clear(&run->encoder);
        }
}

/* Ends the run, with run->error or without. Before STARTED the error becomes the method's reply, and nothing is written to
 * the pipe. */
static RunState run_end(Run *run) {
        take_counters(run);
        release(run);
        run->ending = true;
        if (!run->started && !run->channel) {
                run_report_end(run, true);
                return run->state = RUN_OVER;
        }
        return finish(run);
}

/* Ends the run with SQLite's failure. If the progress handler has set an error, that is the reason, whatever SQLite made of
 * the interrupt: a virtual table may turn it into another error. */
static RunState fail(Run *run, int rc) {
        if (run->error.error == ERROR_NONE)
                (void) database_fail(&run->connection->database, run->context->setup, rc, 0, &run->error);
        if (run->error.error == ERROR_LIMITS_EXCEEDED && (rc & 0xff) == SQLITE_TOOBIG)
                run->error.error = ERROR_ROW_TOO_LARGE; /* already one value is too large */
        return run_end(run);
}

/* Called with a page that is not sent yet: if the result is too large, the page is dropped. */
static bool over_result_size(Run *run) {
        (void) page_encoder_finish(&run->encoder);
        return run_bytes(run) > run->job->result_size_max;
}

static RunState result_too_large(Run *run) {
        uint64_t sent = run->writer.total;

        /* keeps the answers to earlier requests of a channel */
        page_encoder_cut(&run->encoder, run->start_bytes > sent ? (size_t) (run->start_bytes - sent) : 0);
        (void) sql_error_set(&run->error, ERROR_LIMITS_EXCEEDED,
                             "the result is over ResultSizeMax= (%llu bytes): ask for less at a time",
                             (unsigned long long) run->job->result_size_max);
        return run_end(run);
}

/* Earlier rows are already sent, or still in the page: they go out before the ERROR. */
static RunState too_many_rows(Run *run) {
        (void) sql_error_set(&run->error, ERROR_LIMITS_EXCEEDED,
                             "the result has more than the %llu rows of ResultRowsMax=: ask for less at a time",
                             (unsigned long long) run->job->result_rows_max);
        return run_end(run);
}

static RunState row_too_large(Run *run, uint64_t size) {
        (void) sql_error_set(
                &run->error, ERROR_ROW_TOO_LARGE,
                "a row of %llu bytes is over the limit of %llu: select less of it, substr() of the long values for one",
                (unsigned long long) size, (unsigned long long) run->job->row_size_max);
        return run_end(run);
}

/* ---- the start ---- */

static bool reader_is_gone(const Run *run) {
        struct pollfd p = { .fd = run->received.pipe_fd };

        if (run->channel)
                return run->reader_left;
        return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP));
}

/* `code` is SQLite's result for the obstacle. */
static RunState retry(Run *run, int code) {
        uint64_t now = now_usec(), until = run->taken_usec + run->context->setup->busy_usec;

        if ((run->channel || !run->is_prepare) && reader_is_gone(run))
                return close_down(run);
        if (now >= until) {
                run_set_busy(run, code);
                return run_end(run);
        }
        sql_error_done(&run->error);
        run->retry_delay_usec = run->retry_delay_usec == 0 ? RETRY_FIRST_USEC : 2 * run->retry_delay_usec;
        if (run->retry_delay_usec > RETRY_MAX_USEC)
                run->retry_delay_usec = RETRY_MAX_USEC;
        run->retry_usec = now + run->retry_delay_usec < until ? now + run->retry_delay_usec : until;
        if (run->stmt)
                (void) sqlite3_reset(run->stmt);
        if (run->connection)
                database_let_go(&run->connection->database); /* a run that waits for a lock must hold none */
        return run->state = RUN_RETRY;
}

/* A statement of a channel was compiled: its description is the whole answer. */
static bool begin_prepared(Run *run) {
        if (!describe_prepared(run->stmt, &run->payload, &run->payload_size, &run->error))
                return false;
        give_back(run);
        run->payload_done = 0;
        return run->started = run->rows_ended = true;
}

/* Gets a connection and a statement, and binds the parameters. False with run->error; if that is Busy, the caller must try
 * again. */
static bool start(Run *run) {
        if (!run->connection) {
                run->connection = run->kept;
                run->kept = NULL;
        }
        if (!run->connection &&
            !pool_take(run->context->pool, run->job->sql, run->job->sql_size, run->hint, &run->connection, &run->error))
                return false;
        if (run->keeps)
                database_hold(&run->connection->database);
        if (!run->stmt && (run->is_prepare || run->job->describe))
                connection_refresh(run->connection);
        if (!run->stmt && !connection_compile(run->connection, run->context->setup, run->job->sql, run->job->sql_size,
                                              run->hint, &run->stmt, &run->error))
                return false;
        if (run->is_prepare)
                return run->channel ? begin_prepared(run) : run_report_started(run, &run->error);
        if (!bind_parameters(run->connection->database.db, run->stmt, run->job, &run->error))
                return false;
        return run_report_started(run, &run->error);
}

/* ---- the slice ---- */

static void begin_flush(Run *run) {
        PageEncoder *e = &run->encoder;

        page_writer_begin_with(&run->writer, run->page, page_encoder_finish(e), e->tail, e->tail_size);
}

static RunState park(Run *run) {
        run->parked_usec = run->lacking_usec > 0 ? run->lacking_usec : now_usec();
        if (++run->n_full >= N_FULL_BEFORE_FILLING && !run->filling_said) {
                run->filling_said = true;
                run_report_filling(run);
        }
        return run->state = RUN_PARKED;
}

/* Writes the page. READY: it is written; PARKED; OVER. */
static RunState flush(Run *run) {
        int r;

        if (page_writer_is_idle(&run->writer)) {
                if (over_result_size(run))
                        return result_too_large(run);
                begin_flush(run);
        }
        r = write_page(run);
        if (r == PAGE_WRITER_FULL)
                return park(run);
        if (r < 0)
                return close_down(run);
        run_report_parked(run, false);
        run_report_progress(run);
        page_encoder_clear(&run->encoder);
        return run->state = RUN_READY;
}

/* Puts the whole COLUMNS frame into the page without a copy, if it is in the cache and the page has room. But not if the
 * progress handler has begun to send the page: that must be finished first. */
static bool encode_cached_columns(Run *run) {
        PageEncoder *e = &run->encoder;
        const uint8_t *payload;
        size_t size;

        if (!page_writer_is_idle(&run->writer) ||
            !connection_columns(run->connection, run->stmt, run->job->page_size, &payload, &size, &run->error) ||
            !page_encoder_begin_part(e, FRAME_COLUMNS) || page_encoder_part_room(e) < size)
                return false;
        (void) page_encoder_append(e, payload, size);
        page_encoder_end_part(e, false);
        return true;
}

/* The number of columns may have changed between the compile and the first step, if another program changed the schema. */
static bool begin_columns(Run *run) {
        if (page_encoder_is_empty(&run->encoder))
                run->first_row_usec = now_coarse_usec(); /* valid until there is a row */
        if (!encode_cached_columns(run)) {
                if (run->error.error != ERROR_NONE || !describe_columns(run->stmt, run->job->page_size, &run->payload,
                                                                         &run->payload_size, &run->error))
                        return false;
                run->payload_done = 0;
        }
        run->n_columns = (unsigned) sqlite3_column_count(run->stmt);
        return true;
}

/* True if another program is in the way for a moment: a lock, a log that is being recovered, a schema that keeps
 * changing. */
static bool is_transient(int rc) {
        return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_PROTOCOL || (rc & 0xff) == SQLITE_SCHEMA;
}

/* Makes one step, and stores its result in the run's flags. READY: continue. */
static RunState step(Run *run) {
        int rc = sqlite3_step(run->stmt);

        if (rc != SQLITE_ROW && rc != SQLITE_DONE) { /* the connection has the reason until it is used again */
                if (is_transient(rc) && run->n_columns == 0 && run->error.error == ERROR_NONE)
                        return retry(run, rc);
                return fail(run, rc);
        }
        if (run->n_columns == 0 && !run->keeps) /* the statement has the transaction now, if it reads from the file at all */
                database_let_go(&run->connection->database);
        run->row_waits = rc == SQLITE_ROW;
        run->rows_ended = rc == SQLITE_DONE;
        if (run->n_columns == 0 && !begin_columns(run))
                return run_end(run);
        if (run->row_waits && run->n_rows >= run->job->result_rows_max)
                return too_many_rows(run);
        return RUN_READY;
}

static RunState out_of_memory(Run *run) {
        return fail(run, SQLITE_NOMEM);
}

static void row_is_in(Run *run) {
        run->row_waits = false;
        if (run->encoder.n_rows == 1 && run->encoder.frame == 0)
                run->first_row_usec = now_coarse_usec();
        run->n_rows++;
}

/* Puts the waiting row into the page. *ret_full: the page must be sent, either with the row or to make room for it. */
static RunState place_row(Run *run, bool *ret_full) {
        uint64_t size;
        int r = run_encode_row(run);

        if (r == -EMSGSIZE)
                return row_too_large(run, run->row_size);
        if (r < 0)
                return out_of_memory(run);
        if (r > 0) {
                row_is_in(run);
                *ret_full = (run->writer.total <= run->start_bytes && run->encoder.fill >= FIRST_PAGE_SIZE) ||
                            now_coarse_usec() - run->first_row_usec >= ROW_WAITS_USEC;
                return RUN_READY;
        }
        if (!page_encoder_is_empty(&run->encoder) && !run_row_is_big(run)) {
                *ret_full = true;
                return RUN_READY;
        }
        r = run_begin_big_row(run, &size);
        if (r < 0)
                return out_of_memory(run);
        return r > 0 ? RUN_READY : row_too_large(run, size);
}

/* Steps and encodes until a page must be sent (READY with *ret_full) or the run changes its state. */
static RunState fill_page(Run *run, bool *ret_full) {
        *ret_full = false;
        while (!*ret_full) {
                RunState state = RUN_READY;

                if (run->payload) {
                        int r = run_encode_payload(run);

                        if (r < 0)
                                return out_of_memory(run);
                        *ret_full = r == 0 || run->encoder.tail; /* the tail is invalid after the next step */
                } else if (run->row_waits)
                        state = place_row(run, ret_full);
                else if (run->rows_ended)
                        return over_result_size(run) ? result_too_large(run) : run_end(run);
                else {
                        state = step(run);
                        /* if the progress handler has begun to send the page, that must be finished before the page
                         * changes */
                        *ret_full = state == RUN_READY && !page_writer_is_idle(&run->writer);
                }
                if (state != RUN_READY || run->ending)
                        return run->state;
        }
        return RUN_READY;
}

RunState run_slice(Run *run) {
        bool full = false;
        RunState state;

        run->state = RUN_READY;
        if (run->ending)
                return finish(run);
        if (!run->started) {
                if (!start(run))
                        return run->error.error == ERROR_BUSY ? retry(run, run->error.extended_code) : run_end(run);
                if (run->is_prepare && !run->channel) {
                        release(run);
                        return run->state = RUN_OVER;
                }
        }
        if (page_writer_is_idle(&run->writer)) {
                /* checked here, too, because the progress handler is hardly called while a run goes from page to page */
                if (run_is_in_writers_way(run, now_usec()))
                        return run_end(run);
                state = fill_page(run, &full);
                if (state != RUN_READY)
                        return state;
        }
        return flush(run);
}

/* ---- from outside ---- */

void run_cancel(Run *run, ErrorNumber error, const char *message) {
        if (run->ending) { /* the first reason counts; but without a reader the end is not written at all */
                if (error == ERROR_PIPE_CLOSED && run->state == RUN_DRAINING)
                        (void) close_down(run);
                return;
        }
        (void) sql_error_set(&run->error, error, "%s", message);
        (void) run_end(run);
}

int run_on_progress(Run *run, uint64_t now, bool look) {
        if (run->error.error != ERROR_NONE)
                return 1;
        if (run->is_prepare && !run->channel)
                return 0;
        if (run->job->deadline_usec <= now)
                return !sql_error_set(&run->error, ERROR_TIMED_OUT,
                                      "the query ran past its time limit (RunTimeoutSec= or timeout-usec)");
        if (look && run_is_in_writers_way(run, now))
                return 1;
        if (look && reader_is_gone(run))
                return !sql_error_set(&run->error, ERROR_PIPE_CLOSED, "the reader closed the pipe");
        if (page_writer_is_idle(&run->writer)) {
                /* first_row_usec is from the coarse clock: by the precise clock a row would seem to wait since the last
                 * tick */
                if (page_encoder_is_empty(&run->encoder) || now_coarse_usec() < run->first_row_usec + ROW_WAITS_USEC)
                        return 0;
                begin_flush(run);
        } else if (!look)
                return 0;
        /* if the pipe is full or broken, the slice will find that again, and can handle it */
        if (page_writer_flush(&run->writer) == PAGE_WRITER_DONE) {
                run_report_progress(run);
                page_encoder_clear(&run->encoder);
        }
        return 0;
}
