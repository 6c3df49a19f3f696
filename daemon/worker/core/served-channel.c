/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See served-channel.h. From top to bottom: creation and destruction, input, requests, turns.
 */
#include "daemon/worker/core/served-channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/worker/compile-limit.h"
#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/channel-state.h"
#include "daemon/worker/core/monotonic.h"

#define TURN_USEC USEC_PER_MSEC          /* one turn takes requests for so long */
#define QUIET_USEC (10 * USEC_PER_SEC)   /* after this time without requests the channel goes back to the supervisor */
#define SQL_KEPT_SIZE ((size_t) 64 * 1024)

#define DROPPED "the service closed this channel: open another, and ask again"

/* ---- creation and destruction ---- */

/* The largest payload of a request: SQL, a row, and the largest head. */
static size_t payload_max(const JobContext *context, const ChannelSetup *setup) {
        uint64_t row = setup->row_size_max < CHANNEL_REQUEST_SIZE_MAX ? setup->row_size_max : CHANNEL_REQUEST_SIZE_MAX;

        return (size_t) row + context->setup->sql_size_max + CHANNEL_QUERY_HEAD_SIZE;
}

static int set_up(ServedChannel *c, JobContext *context, const ReceivedMessage *received) {
        const ChannelSetup *setup = &received->message.channel;
        int r;

        r = job_init_channel(&c->job, context, c, received->pipe_fd, setup->page_size);
        if (r == 0)
                r = channel_input_init(&c->input, payload_max(context, setup));
        if (r == 0 && setup->state.size > 0)
                r = channel_state_unpack(setup->state, &c->input, &c->statements);
        if (r == 0 && !(fcntl(received->pipe_fd, F_GETFL) & O_NONBLOCK))
                r = -EBADMSG; /* a blocking socket would block the worker */
        return r;
}

int served_channel_new(JobContext *context, ReceivedMessage *received, ServedChannel **ret) {
        ServedChannel *c = calloc(1, sizeof *c);
        int r;

        if (!c)
                return -ENOMEM;
        c->setup = received->message.channel;
        c->fd = -1;
        c->statements.n_max = c->setup.statements_max;
        c->progress.number = c->setup.number;
        c->used_usec = now_coarse_usec();
        c->readable = true; /* the supervisor hands a channel over when its socket is readable */
        r = set_up(c, context, received);
        c->setup.state = (Bytes) {};
        if (r < 0) {
                (void) served_channel_free(c);
                return r;
        }
        c->fd = received->pipe_fd;
        received->pipe_fd = -1;
        received_message_done(received);
        *ret = c;
        return 0;
}

ServedChannel *served_channel_free(ServedChannel *c) {
        if (!c)
                return NULL;
        if (c->job.context)
                job_done_channel(&c->job);
        channel_input_free(&c->input);
        channel_statements_free(&c->statements);
        free(c->sql);
        if (c->fd >= 0)
                (void) close(c->fd);
        free(c);
        return NULL;
}

/* ---- input ---- */

/* Works like read(). *ret_more: more bytes may be left, without another event for them. This is so after a message with
 * descriptors, which are not expected and dropped: the kernel does not join it with other bytes. It is also so for the
 * end-of-file of a half-closed socket. */
static ssize_t read_some(ServedChannel *c, uint8_t *room, size_t size, bool *ret_more) {
        struct iovec part = { .iov_base = room, .iov_len = size };
        struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n = recvmsg(c->fd, &m, 0);

        *ret_more = n > 0 && ((size_t) n == size || m.msg_flags & MSG_CTRUNC || c->half_closed);
        return n;
}

/* Reads as much as there is room for. False: nothing came. */
static bool read_more(ServedChannel *c) {
        while (c->readable && !c->job.reader_left) {
                uint8_t *room;
                size_t size;
                ssize_t n;
                bool more;

                if (channel_input_reserve(&c->input, &room, &size) < 0) {
                        c->job.reader_left = true; /* without memory no request is served: the client opens another */
                        return false;
                }
                if (size == 0)
                        return false;
                n = read_some(c, room, size, &more);
                if (n < 0 && errno == EINTR)
                        continue;
                c->readable = more; /* otherwise the socket is empty, and epoll reports new bytes */
                if (n > 0) {
                        channel_input_commit(&c->input, (size_t) n);
                        return true;
                }
                c->ended = n == 0;
                c->job.reader_left = n < 0 && errno != EAGAIN;
        }
        return false;
}

void served_channel_look(ServedChannel *c) {
        (void) read_more(c);
}

bool served_channel_on_events(ServedChannel *c, uint32_t events) {
        const Job *job = &c->job;

        if (events & (EPOLLHUP | EPOLLERR))
                c->job.reader_left = true;
        if (events & EPOLLIN)
                c->readable = true;
        if (events & EPOLLRDHUP)
                c->half_closed = true;
        if (c->busy)
                served_channel_look(c);
        if (job->reader_left || (c->busy && c->input.cancelled))
                return true;
        switch (job->state) {
        case JOB_IDLE:
                return c->readable;
        case JOB_PARKED:
        case JOB_DRAINING:
                return events & EPOLLOUT;
        default:
                return false;
        }
}

/* ---- requests ---- */

/* The answer will be an error. Returns where it must be stored. */
static SqlError *refuse(ServedChannel *c) {
        return job_refuse(&c->job, &c->spec);
}

static void begin_prepare(ServedChannel *c, const ChannelRequest *q) {
        SqlError error = SQL_ERROR_INIT;
        ChannelStatement *s = NULL;

        if (pool_check_sql_size(c->job.context->setup, q->size, &error))
                s = channel_statements_add(&c->statements, q->number, q->payload, q->size, &error);
        if (!s) {
                *refuse(c) = error;
                return;
        }
        c->spec.sql = s->sql;
        c->spec.sql_size = s->sql_size;
        job_begin(&c->job, &c->spec, true, &s->hint);
        c->has_timeout = false;
        c->spec.deadline_usec = UINT64_MAX; /* a compile cannot be interrupted, and has its own limit (compile-limit.h) */
}

/* `timeout` is the client's. */
static void begin_run(ServedChannel *c, uint64_t timeout, StatementHint *hint) {
        uint64_t usec = timeout > 0 && timeout < c->setup.run_timeout_usec ? timeout : c->setup.run_timeout_usec, taken;

        if (!job_parameters_are_valid(&c->spec)) {
                (void) sql_error_set(refuse(c), ERROR_INVALID_REQUEST,
                                     "the parameters are not one row of as many values as announced");
                return;
        }
        job_begin(&c->job, &c->spec, false, hint);
        taken = c->job.taken_usec;
        c->has_timeout = timeout > 0;
        c->spec.deadline_usec = usec < UINT64_MAX - taken ? taken + usec : UINT64_MAX;
}

static void set_parameters(JobSpec *job, uint32_t n_positional, uint32_t n_named, const uint8_t *row, size_t size) {
        job->n_positional = n_positional;
        job->n_named = n_named;
        job->parameters = size > 0 ? row : NULL;
        job->parameters_size = size;
}

static void begin_fetch(ServedChannel *c, const ChannelRequest *q) {
        const uint8_t *p = q->payload;
        ChannelStatement *s;

        if (q->size < CHANNEL_FETCH_HEAD_SIZE) {
                (void) sql_error_set(refuse(c), ERROR_INVALID_REQUEST, "a FETCH is cut short");
                return;
        }
        s = channel_statements_find(&c->statements, load_le64(p));
        if (!s) {
                (void) sql_error_set(refuse(c), ERROR_UNKNOWN_STATEMENT,
                                     "there is no such statement on this channel: prepare it again");
                return;
        }
        c->spec.sql = s->sql;
        c->spec.sql_size = s->sql_size;
        set_parameters(&c->spec, load_le32(p + 16), load_le32(p + 20), p + CHANNEL_FETCH_HEAD_SIZE,
                       q->size - CHANNEL_FETCH_HEAD_SIZE);
        begin_run(c, load_le64(p + 8), &s->hint);
}

/* Copies the SQL and adds a NUL, which SQLite needs. */
static bool copy_sql(ServedChannel *c, const uint8_t *sql, size_t size) {
        if (size >= c->sql_capacity) {
                char *bytes = realloc(c->sql, size + 1);

                if (!bytes)
                        return false;
                c->sql = bytes;
                c->sql_capacity = size + 1;
        }
        memcpy(c->sql, sql, size);
        c->sql[size] = 0;
        c->spec.sql = c->sql;
        c->spec.sql_size = size;
        return true;
}

static void begin_query(ServedChannel *c, const ChannelRequest *q) {
        const uint8_t *p = q->payload, *sql = p + CHANNEL_QUERY_HEAD_SIZE;
        SqlError error = SQL_ERROR_INIT;
        size_t sql_size;

        if (q->size < CHANNEL_QUERY_HEAD_SIZE || load_le32(p + 16) > q->size - CHANNEL_QUERY_HEAD_SIZE ||
            load_le32(p + 20) != 0) {
                (void) sql_error_set(refuse(c), ERROR_INVALID_REQUEST, "a QUERY is cut short, or says what it should not");
                return;
        }
        sql_size = load_le32(p + 16);
        if (!pool_check_sql_size(c->job.context->setup, sql_size, &error)) {
                *refuse(c) = error;
                return;
        }
        if (!copy_sql(c, sql, sql_size)) {
                (void) sql_error_set(refuse(c), ERROR_OUT_OF_MEMORY, "out of memory");
                return;
        }
        set_parameters(&c->spec, load_le32(p + 8), load_le32(p + 12), sql + sql_size,
                       q->size - CHANNEL_QUERY_HEAD_SIZE - sql_size);
        begin_run(c, load_le64(p), NULL);
}

static void begin_job(ServedChannel *c, uint64_t number) {
        c->busy = true;
        c->spec = (JobSpec) {
                .number = number,
                .sql = "",
                .page_size = c->setup.page_size,
                .row_size_max = c->setup.row_size_max,
                .result_rows_max = c->setup.result_rows_max,
                .result_size_max = c->setup.result_size_max,
        };
}

/* Decides if the request continues the read transaction of the one before, or begins a new one. */
static void join_batch(ServedChannel *c, uint64_t number) {
        if (number > c->batch) {
                job_let_go(&c->job);
                c->batch = c->input.scanned_number;
        }
        c->job.keeps = number < c->batch;
}

static void end_batch(ServedChannel *c) {
        job_let_go(&c->job);
        c->batch = 0;
}

static void begin(ServedChannel *c, const ChannelRequest *q) {
        begin_job(c, q->number);
        join_batch(c, q->number);
        if (q->cancelled)
                (void) sql_error_set(refuse(c), ERROR_CANCELLED, "the request was cancelled before it was run");
        else if (q->too_large)
                (void) sql_error_set(refuse(c), ERROR_LIMITS_EXCEEDED,
                                     "a request has at most %zu bytes (RowSizeMax= and SQLSizeMax=)", c->input.payload_max);
        else if (q->kind == REQUEST_PREPARE)
                begin_prepare(c, q);
        else if (q->kind == REQUEST_FETCH)
                begin_fetch(c, q);
        else
                begin_query(c, q);
}

/* Makes the last answer of the channel. */
static void begin_invalid(ServedChannel *c) {
        begin_job(c, load_le64(c->input.bytes + c->input.scanned + 8));
        c->closing = true;
        (void) sql_error_set(refuse(c), ERROR_INVALID_REQUEST, "this is no request, so the channel is closed");
}

/* False: there is no request now. */
static bool begin_next(ServedChannel *c) {
        ChannelRequest q;
        int r;

        do
                while ((r = channel_input_take(&c->input, &q)) > 0) {
                        if (q.kind != REQUEST_FINALIZE) {
                                begin(c, &q);
                                return true;
                        }
                        channel_statements_remove(&c->statements, q.number);
                        channel_input_done(&c->input);
                }
        while (r == 0 && read_more(c));
        if (r == 0 && c->ended)
                c->closing = true;
        else if (r == -EBADMSG)
                begin_invalid(c);
        else if (r < 0)
                c->job.reader_left = true;
        return r == -EBADMSG;
}

static void end_request(ServedChannel *c) {
        if (c->job.is_prepare && c->job.error.error != ERROR_NONE)
                channel_statements_remove(&c->statements, c->spec.number);
        if (c->job.error.error == ERROR_PIPE_CLOSED)
                c->job.reader_left = true;
        if (c->sql_capacity > SQL_KEPT_SIZE) {
                free(c->sql);
                c->sql = NULL;
                c->sql_capacity = 0;
        }
        channel_input_done(&c->input);
        c->busy = false;
}

/* ---- turns ---- */

JobState served_channel_flush(ServedChannel *c) {
        Job *job = &c->job;
        int r;

        if (page_writer_is_idle(&job->writer) && !page_encoder_is_empty(&job->encoder))
                page_writer_begin(&job->writer, job->page, page_encoder_finish(&job->encoder));
        r = page_writer_flush(&job->writer);
        if (r == PAGE_WRITER_FULL)
                return job_drain(job);
        if (r < 0)
                return job->state = JOB_OVER;
        job->drain_until_usec = 0;
        page_encoder_clear(&job->encoder);
        if (c->closing || job->reader_left)
                return job->state = JOB_OVER;
        return job->state = served_channel_waits(c) ? JOB_READY : JOB_IDLE;
}

void served_channel_cancel(ServedChannel *c, ErrorNumber error, const char *message) {
        if (!c->busy)
                return;
        job_cancel(&c->job, error, message);
        if (c->job.state != JOB_OVER)
                return;
        end_request(c);
        c->job.state = JOB_READY; /* the next turn sends the error */
}

void served_channel_on_time(ServedChannel *c, uint64_t now) {
        if (c->job.state == JOB_DRAINING && c->job.drain_until_usec <= now) {
                c->slow = true;
                c->job.state = JOB_OVER;
                return;
        }
        if (!c->busy)
                return;
        job_on_time(&c->job, now);
        if (c->job.state != JOB_OVER)
                return;
        end_request(c);
        c->job.state = JOB_READY;
}

void served_channel_drain(ServedChannel *c) {
        c->closing = true;
        if (!c->busy)
                (void) served_channel_flush(c);
}

void served_channel_drop(ServedChannel *c, bool in_step) {
        c->closing = c->dropped = true;
        if (in_step) {
                if (c->job.error.error == ERROR_NONE)
                        (void) sql_error_set(&c->job.error, ERROR_SHUTTING_DOWN, DROPPED);
                return;
        }
        served_channel_cancel(c, ERROR_SHUTTING_DOWN, DROPPED);
        if (!c->busy && !c->job.reader_left)
                (void) served_channel_flush(c);
}

/* The supervisor does not know the client's time limit, and one SQL function may compute for minutes. */
static void run_within_limit(ServedChannel *c) {
        if (c->has_timeout)
                compile_limit_run_begin(c->spec.deadline_usec);
        (void) job_slice(&c->job);
        if (c->has_timeout)
                compile_limit_run_end();
}

/* Continues the request under way. JOB_OVER: it is answered. */
static JobState slice(ServedChannel *c) {
        JobState state;

        if (c->input.cancelled && !c->job.ending)
                job_cancel(&c->job, ERROR_CANCELLED, "the query was cancelled");
        else
                run_within_limit(c);
        state = c->job.state;
        if (state == JOB_OVER)
                end_request(c);
        return state;
}

static bool may_begin(const ServedChannel *c) {
        return !c->closing && !c->job.context->leaving;
}

static JobState take_turn(ServedChannel *c) {
        Job *job = &c->job;
        uint64_t until = UINT64_MAX;

        c->used_usec = now_coarse_usec();
        if (!c->busy && !page_writer_is_idle(&job->writer) && served_channel_flush(c) != JOB_READY && job->state != JOB_IDLE)
                return job->state;
        while (!job->reader_left && (c->busy || (may_begin(c) && begin_next(c)))) {
                JobState state = slice(c);

                if (state == JOB_RETRY && served_channel_flush(c) == JOB_OVER)
                        break;
                /* epoll does not report again what was already readable when the request began */
                if (state != JOB_OVER && read_more(c) && c->input.cancelled)
                        continue;
                if (state == JOB_RETRY) /* a lock may last, and nothing else reports it */
                        channel_report_progress(c, c->used_usec);
                if (state != JOB_OVER)
                        return job->state = state;
                if (until == UINT64_MAX)
                        until = job->taken_usec + TURN_USEC;
                if (job->taken_usec + job->counters.usec >= until)
                        break;
        }
        channel_report_progress(c, c->used_usec);
        end_batch(c); /* first of all: a client that reads an answer must find the database unlocked */
        return job->reader_left ? (job->state = JOB_OVER) : served_channel_flush(c);
}

JobState served_channel_turn(ServedChannel *c) {
        JobState state = take_turn(c);

        end_batch(c);
        return state;
}

bool served_channel_is_answered(const ServedChannel *c) {
        return !c->busy && page_writer_is_idle(&c->job.writer) && page_encoder_is_empty(&c->job.encoder);
}

static bool can_go_on(const ServedChannel *c) {
        return !c->closing && !c->job.reader_left && !c->input.invalid &&
               channel_state_size(&c->input, &c->statements) <= CHANNEL_STATE_SIZE_MAX;
}

bool served_channel_can_move(const ServedChannel *c) {
        return served_channel_is_answered(c) && can_go_on(c);
}

int served_channel_take_unread(ServedChannel *c, uint8_t **ret, size_t *ret_size, bool *ret_can_move) {
        int r = job_take_unread(&c->job, ret, ret_size);

        if (r < 0)
                return r;
        if (c->busy)
                end_request(c);
        *ret_can_move = can_go_on(c);
        return 0;
}

uint64_t served_channel_quiet_until(const ServedChannel *c) {
        if (c->closing && c->job.state == JOB_DRAINING)
                return c->used_usec + c->job.context->setup->park_usec;
        if (c->job.state != JOB_IDLE)
                return UINT64_MAX;
        if (channel_input_is_partial(&c->input))
                return c->used_usec + c->job.context->setup->park_usec;
        return c->used_usec + QUIET_USEC;
}
