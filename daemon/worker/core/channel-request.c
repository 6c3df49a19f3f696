/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-request.h. From top to bottom: the owner of the job, the kinds of requests, the next request,
 * those after it, the end.
 */
#include "daemon/worker/core/channel-request.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/change-numbers.h"
#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/monotonic.h"

#define SQL_KEPT_SIZE ((size_t) 64 * 1024)

/* ---- the owner of the job ---- */

static ServedChannel *channel_of(const Job *job) {
        return (ServedChannel *) (void *) ((char *) job - offsetof(ServedChannel, job));
}

/* The description of a prepared statement is its whole answer. */
static bool started(Job *job) {
        return !job->is_prepare || job_describe(job);
}

/* A client that reads an answer must find the database unlocked. A socket has a queue of fixed size, and lacks memory only
 * for a moment. */
static int write_page(Job *job) {
        int r;

        job_context_let_go(job->context);
        r = page_writer_flush(&job->writer);
        return r == -ENOMEM ? PAGE_WRITER_FULL : r;
}

static bool client_left(const Job *job) {
        return channel_of(job)->client_left;
}

static void parked(Job *job, bool is_parked) {
        channel_report_now(channel_of(job));
}

static void progress(Job *job) {
        channel_report_progress(channel_of(job), now_coarse_usec());
}

static void ended(Job *job, bool drained) {
        ServedChannel *c = channel_of(job);

        channel_report_count(c);
        served_channel_note_end(c, job->write.writes);
        if (job->wait.settled || !drained) { /* nothing is pinned now, even if the end cannot be written yet */
                job->wait.settled = false;
                channel_report_now(c);
        }
}

static void hand_over(Job *job) {
        (void) served_channel_set_state(channel_of(job), CHANNEL_SLOW);
}

const JobOwner channel_request_owner = {
        .collects = true,
        .started = started,
        .write_page = write_page,
        .reader_left = client_left,
        .parked = parked,
        .progress = progress,
        .ended = ended,
        .hand_over = hand_over,
};

/* ---- the kinds of requests ---- */

/* The answer will be the error that the caller stores at the result. */
static SqlError *refuse(ServedChannel *c) {
        c->is_quick = true;
        return job_refuse(&c->job, &c->spec);
}

static void begin_prepare(ServedChannel *c, const ChannelRequest *q) {
        SqlError error = SQL_ERROR_INIT;
        ChannelStatement *s = NULL;

        if (engine_check_sql_size(c->job.context->setup, q->size, &error))
                s = channel_statements_add(&c->statements, q->number, q->payload, q->size, &error);
        if (!s) {
                *refuse(c) = error;
                return;
        }
        c->spec.sql = s->sql;
        c->spec.sql_size = s->sql_size;
        job_begin(&c->job, &c->spec, true, &s->hint);
}

/* `timeout` is the client's. */
static void begin_run(ServedChannel *c, uint64_t timeout, EngineHint *hint) {
        uint64_t usec = timeout > 0 && timeout < c->setup.run_timeout_usec ? timeout : c->setup.run_timeout_usec, taken;

        if (!job_parameters_are_valid(&c->spec)) {
                (void) sql_error_set(refuse(c), ERROR_INVALID_REQUEST,
                                     "the parameters are not one row of as many values as announced");
                return;
        }
        job_begin(&c->job, &c->spec, false, hint);
        taken = c->job.taken_usec;
        c->job.has_own_limit = timeout > 0;
        c->job.deadline_usec = usec < UINT64_MAX - taken ? taken + usec : UINT64_MAX;
}

static void set_parameters(JobSpec *spec, uint32_t n_positional, uint32_t n_named, const uint8_t *row, size_t size) {
        spec->n_positional = n_positional;
        spec->n_named = n_named;
        spec->parameters = size > 0 ? row : NULL;
        spec->parameters_size = size;
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
        c->fetched = s;
        c->is_quick = s->quick;
        set_parameters(&c->spec, load_le32(p + 16), load_le32(p + 20), p + CHANNEL_FETCH_HEAD_SIZE,
                       q->size - CHANNEL_FETCH_HEAD_SIZE);
        begin_run(c, load_le64(p + 8), &s->hint);
}

/* Copies the SQL and adds a NUL, which engines need. */
static bool copy_sql(ServedChannel *c, const uint8_t *sql, size_t size) {
        if (size >= c->sql_capacity) {
                char *bytes = realloc(c->sql, size + 1);

                if (!bytes)
                        return false;
                c->sql = bytes;
                c->sql_capacity = size + 1;
        }
        c->is_quick = size > 0 && c->quick_sql_size == size && memcmp(c->sql, sql, size) == 0;
        c->quick_sql_size = 0;
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
        if (!engine_check_sql_size(c->job.context->setup, sql_size, &error)) {
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
        c->is_quick = false;
        c->fetched = NULL;
        c->spec = (JobSpec) {
                .number = number,
                .sql = "",
                .counts = c->setup.counts,
                .foreign_keys = c->settings.foreign_keys,
                .time_zone = c->settings.keeps ? c->settings.time_zone : NULL,
                .lock_wait_usec = c->settings.lock_wait_usec,
                .page_size = c->setup.page_size,
                .row_size_max = c->setup.row_size_max,
                .result_rows_max = c->setup.result_rows_max,
                .result_size_max = c->setup.result_size_max,
        };
}

/* A request continues the read transaction of the one before, perhaps of another channel, only if it was sent before that
 * began. This is known of the requests that were whole when the turn began (`batch`), and of the first one after them if it
 * had begun to arrive. Any other request ends the transaction, and its own begins another one. */
static void join_batch(ServedChannel *c, uint64_t number) {
        JobContext *context = c->job.context;
        bool was_sent = number <= c->batch || (c->next_was_sent && !c->input.passed);

        if (!was_sent)
                job_context_let_go(context);
        if (!context->shared)
                c->batch = c->input.scanned_number;
        c->next_was_sent = false;
        c->job.keeps = number < c->input.scanned_number || context->shares;
}

/* A slow statement of a server does not share its transaction: while it is awaited, that would keep locks for others. */
static void run_alone(ServedChannel *c) {
        c->job.keeps = false;
        job_context_let_go(c->job.context);
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
        if (!c->is_quick && job_engine(&c->job)->awaited_fd)
                run_alone(c);
}

/* Makes the last answer of the channel. */
static void begin_invalid(ServedChannel *c) {
        begin_job(c, load_le64(c->input.bytes + c->input.scanned + 8));
        served_channel_restrict(c, CHANNEL_CLOSING);
        (void) sql_error_set(refuse(c), ERROR_INVALID_REQUEST, "this is no request, so the channel is closed");
}

static void set_foreign_keys(ServedChannel *c, ForeignKeys foreign_keys) {
        c->settings.foreign_keys = foreign_keys;
        c->settings.keeps = true;
}

static void set_time_zone(ServedChannel *c, const ChannelRequest *q) {
        memcpy(c->settings.time_zone, q->payload, q->size);
        c->settings.time_zone[q->size] = 0;
        c->settings.keeps = true;
}

/* Asked after a request was read. False: the supervisor may have closed the channel before the request was made. */
static bool has_read_orders(const JobContext *context) {
        return context->n_orders == change_numbers_orders();
}

bool channel_request_begin_next(ServedChannel *c) {
        ChannelRequest q;
        int r;

        do {
                if (!has_read_orders(c->job.context))
                        return false;
                while ((r = channel_input_take(&c->input, &q)) > 0) {
                        if (q.kind == REQUEST_FINALIZE)
                                channel_statements_remove(&c->statements, q.number);
                        else if (q.kind == REQUEST_FOREIGN_KEYS)
                                set_foreign_keys(c, (ForeignKeys) q.number);
                        else if (q.kind == REQUEST_TIME_ZONE)
                                set_time_zone(c, &q);
                        else if (q.kind == REQUEST_LOCK_WAIT)
                                c->settings.lock_wait_usec = q.number;
                        else {
                                begin(c, &q);
                                return true;
                        }
                        channel_input_done(&c->input);
                }
        } while (r == 0 && served_channel_read(c));
        if (r == 0 && c->intake == CHANNEL_ENDED)
                served_channel_restrict(c, CHANNEL_CLOSING);
        else if (r == -EBADMSG)
                begin_invalid(c);
        else if (r < 0)
                c->client_left = true;
        return r == -EBADMSG;
}

/* ---- the requests after that ---- */

/* A slow statement would keep back the results of those after it. */
static bool foresee(ServedChannel *c, const ChannelRequest *q) {
        const uint8_t *p = q->payload;
        const ChannelStatement *s;
        JobSpec spec = {};

        if (q->kind != REQUEST_FETCH || q->size < CHANNEL_FETCH_HEAD_SIZE || q->cancelled || q->too_large)
                return false;
        s = channel_statements_find(&c->statements, load_le64(p));
        if (!s || !s->quick || s->hint.writes)
                return false;
        set_parameters(&spec, load_le32(p + 16), load_le32(p + 20), p + CHANNEL_FETCH_HEAD_SIZE,
                       q->size - CHANNEL_FETCH_HEAD_SIZE);
        return job_parameters_are_valid(&spec) && job_engine(&c->job)->foresee(c->job.pool, &spec, &s->hint);
}

bool channel_request_foresee(ServedChannel *c) {
        ChannelRequest q;
        size_t at;

        if (served_channel_is_busy(c) || (!channel_input_waits(&c->input) && !served_channel_read(c)))
                return false;
        c->batch = c->input.scanned_number;
        at = c->input.start;
        while (channel_input_look(&c->input, &at, &q))
                if (!foresee(c, &q))
                        return false;
        return true;
}

/* ---- the end ---- */

/* Remembers if the statement was quick. */
static void note_time(ServedChannel *c) {
        bool quick = c->job.counters.usec <= served_channel_quick_usec(c);

        if (c->job.refused)
                return;
        if (c->fetched)
                c->fetched->quick = quick;
        else if (c->spec.sql == c->sql)
                c->quick_sql_size = quick ? c->spec.sql_size : 0;
}

void channel_request_end(ServedChannel *c) {
        note_time(c);
        if (c->job.is_prepare && c->job.error.error != ERROR_NONE)
                channel_statements_remove(&c->statements, c->spec.number);
        if (c->job.error.error == ERROR_PIPE_CLOSED)
                c->client_left = true;
        if (c->sql_capacity > SQL_KEPT_SIZE) {
                free(c->sql);
                c->sql = NULL;
                c->sql_capacity = c->quick_sql_size = 0;
        }
        channel_input_done(&c->input);
}
