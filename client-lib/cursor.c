/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs as the program sees them (cursor.h). Library.
 *
 * cursor_step() is the state machine and never waits; sqlipc_cursor_next() adds the waiting. While the decoder has rows, a
 * step is one call of the decoder, without a system call or a look at the clock.
 */
#include <string.h>

#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/prepared.h"
#include "client-lib/repeat.h"

/* How long a living daemon may take to answer that it lives. */
#define ASK_TIMEOUT_USEC USEC_PER_SEC

/* How long a blocking sqlipc_execute() or sqlipc_query() waits for a run on a channel to show that it has started. */
#define START_TIMEOUT_USEC (USEC_PER_SEC / 10)

int cursor_new(sqlipc_cursor **ret, sqlipc_connection *connection, sqlipc_statement *s, char *path) {
        sqlipc_cursor *c = connection->spare_cursor ? steal(connection->spare_cursor) : malloc(sizeof *c);
        ChannelLink *channel = path ? channel_link_get(connection, path) : NULL;

        if (!c || (path && !channel)) {
                free(c);
                free(path);
                return -ENOMEM;
        }
        *c = (sqlipc_cursor) { .connection = sqlipc_connection_ref(connection), .state = CURSOR_WAITING, .statement = s,
                               .retries_left = CHANNEL_RETRIES_MAX, .error = { .sql_offset = -1 },
                               .run_timeout_usec = connection->run_timeout_usec,
                               .n_interrupts = connection_interrupts(connection) };
        atomic_init(&c->cancelled, false);
        if (s) {
                c->fetch = &s->fetch;
                c->bindings = bindings_ref(s->bindings);
                s->cursor = c;
        } else {
                fetch_init(&c->own, connection, path, channel);
                c->fetch = &c->own;
        }
        TAILQ_INSERT_TAIL(&connection->cursors, c, link);
        *ret = c;
        return 0;
}

uint64_t cursor_timeout_on_channel(const sqlipc_cursor *c) {
        return c->run_timeout_usec == UINT64_MAX ? 0 : c->run_timeout_usec;
}

static void note_result(sqlipc_cursor *c, uint64_t n_bytes, uint64_t usec) {
        transport_on_result(c->fetch->channel, c->statement ? &c->statement->habit : NULL, c->sql_sum, n_bytes, usec);
}

/* Abandons the run, because the cursor reads no further. A program that wants one row often leaves the end after it
 * unread; the run counts with its counters if the end is there. A run on a channel that is still in progress after its
 * first rows counts as large or slow. */
static void abandon(sqlipc_cursor *c) {
        Fetch *fetch = c->fetch;
        bool was_under_way = fetch->under_way;

        if (fetch_abandon(fetch) == PAGE_END)
                note_result(c, fetch->decoder.end_counters.n_bytes, fetch->decoder.end_counters.usec);
        else if (was_under_way && fetch->under_way && fetch->on_channel && c->delivered)
                note_result(c, UINT64_MAX, UINT64_MAX);
}

/* Ends the cursor for good. Gives back a query's pipe at once. */
static void finish(sqlipc_cursor *c) {
        c->state = CURSOR_DONE;
        c->n_values = 0;
        c->bindings = bindings_unref(c->bindings);
        if (c->fetch && c->fetch->cursor == c)
                abandon(c);
        if (c->fetch == &c->own) {
                c->own.under_way = false;
                c->own.call = call_free(c->own.call);
                fetch_close_pipe(&c->own);
                free(steal(c->query));
        }
}

void cursor_fail(sqlipc_cursor *c, const Error *e) {
        c->error = *e;
        finish(c);
}

void cursor_fail_reply(sqlipc_cursor *c, sd_bus_message *reply) {
        sqlipc_connection *connection = c->connection;
        Fate fate;
        Error e;

        (void) error_set_reply(&e, reply);
        fate = fate_of_reply(reply, &e);
        if (fate == FATE_UNKNOWN && connection->open_bus && !connection->bus_was_ready)
                fate = FATE_NOT_BEGUN; /* for example, ssh could not reach the host */
        error_set_outcome(&e, fate, c->read_only);
        cursor_fail(c, &e);
}

static void fail_cancelled(sqlipc_cursor *c) {
        (void) error_set(&c->error, ERROR_CANCELLED, "The run was cancelled.");
        finish(c);
}

/* Ends the cursor with the error that is already set. Later bytes for the statement could not be told from this run's, so
 * the statement is compiled again. */
static void fail_and_lose(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;

        finish(c);
        if (s)
                prepared_lose(s);
}

void cursor_fail_errno(sqlipc_cursor *c, int r) {
        if (r == -EBADMSG)
                (void) error_set_errno(&c->error, r,
                                       "The service sent data that sqlipc's interface and page format do not allow.");
        else
                (void) error_set_send(&c->error, r);
        fail_and_lose(c);
}

static void fail_large_row(sqlipc_cursor *c) {
        (void) error_set(&c->error, ERROR_ROW_TOO_LARGE,
                         "A row is larger than this library reads: select fewer or shorter columns.");
        fail_and_lose(c);
}

/* ---- Ending ------------------------------------------------------------------------------------------------------- */

/* True if nothing has come of the run yet. */
static bool is_unheard_of(const sqlipc_cursor *c) {
        return c->fetch->on_channel ? !c->delivered && !c->fetch->decoder.in_run : c->fetch->call && !c->fetch->number;
}

/* A run of which nothing is known yet is given up here at once, and cancelled at the service when its number comes.
 * Otherwise the rows that are on their way still arrive, and then the end that the cancellation causes. */
static void apply_cancel(sqlipc_cursor *c) {
        switch (c->state) {
        case CURSOR_WAITING:
                fail_cancelled(c);
                return;
        case CURSOR_RUNNING:
                if (is_unheard_of(c))
                        fail_cancelled(c);
                else
                        fetch_cancel(c->fetch);
                return;
        case CURSOR_ASKING:
                fail_cancelled(c);
                return;
        case CURSOR_DONE:
                return;
        }
}

static bool is_cancelled(sqlipc_cursor *c) {
        return atomic_load_explicit(&c->cancelled, memory_order_relaxed) ||
               connection_interrupts(c->connection) != c->n_interrupts;
}

void cursor_advance(sqlipc_cursor *c) {
        if (is_cancelled(c))
                apply_cancel(c);
        if (c->state == CURSOR_WAITING)
                cursor_start(c);
}

/* Handles the failure of the PREPARE that was sent with the run. */
static void on_prepare_failed(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;

        s->channel_number = 0;
        s->state = STATEMENT_FAILED;
        (void) error_set_frame(&s->error, &c->fetch->decoder);
        cursor_fail(c, &s->error);
}

/* Repeats the run after an error of a channel that says nothing about the run itself, so that it may succeed the next
 * time. */
static bool retry_after_error(sqlipc_cursor *c) {
        uint32_t number = c->fetch->decoder.error_number;
        bool prepare = c->statement && c->fetch->decoder.run == c->statement->channel_number;
        bool full = number == ERROR_LIMITS_EXCEEDED && prepare && !c->needs_channel; /* the bus may have room for it */

        if (!c->fetch->on_channel || c->delivered || c->retried || is_cancelled(c) ||
            !may_repeat(full ? FATE_NOT_BEGUN : fate_of_frame(number), c->read_only))
                return false;
        c->retried = true;
        if (c->statement)
                c->statement->channel_number = 0;
        cursor_restart(c, full || (number == ERROR_SHUTTING_DOWN && !c->needs_channel));
        return true;
}

static void on_error_frame(sqlipc_cursor *c) {
        uint32_t number = c->fetch->decoder.error_number;

        if (retry_after_error(c))
                return;
        if (c->fetch->on_channel && c->statement && c->fetch->decoder.run == c->statement->channel_number) {
                on_prepare_failed(c);
                return;
        }

        if (is_cancelled(c) && (number == ERROR_CANCELLED || number == ERROR_WORKER_LOST)) {
                fail_cancelled(c);
                return;
        }
        (void) error_set_frame(&c->error, &c->fetch->decoder);
        /* The daemon cancels the runs of a client that has left the bus, so report the lost connection instead. */
        if (number == ERROR_CANCELLED && !connection_is_open(c->connection))
                (void) error_set(&c->error, ERROR_DAEMON_LOST, "The connection to the bus was lost, and the run with it.");
        finish(c);
}

/* The fate of a run whose pipe or channel ended before the run did. */
static Fate fate_of_stream(const sqlipc_cursor *c) {
        return c->fetch->on_channel && c->fetch->never_sent ? FATE_NOT_BEGUN : FATE_UNKNOWN;
}

static void fail_lost(sqlipc_cursor *c, bool daemon_lives) {
        if (daemon_lives && c->fetch->on_channel && !c->delivered)
                (void) error_set(&c->error, ERROR_WORKER_LOST, "The service closed one channel after another without an "
                                 "answer: its worker is lost each time, or cannot be had; another transport tells more.");
        else if (daemon_lives)
                (void) error_set(&c->error, ERROR_WORKER_LOST, "The worker that computed this result is gone; the result "
                                 "is incomplete.");
        else
                (void) error_set(&c->error, ERROR_DAEMON_LOST, "The service is gone; the result is incomplete.");
        error_set_outcome(&c->error, fate_of_stream(c), c->read_only);
        finish(c);
        if (c->statement)
                prepared_lose(c->statement);
}

/* Only an answer from the same instance that served the run shows that it lives; an error from the bus, or from sd-bus
 * itself, does not. On a connection without a bus only the daemon can answer. */
static void on_alive_reply(sd_bus_message *reply, void *userdata) {
        Fetch *fetch = userdata;
        const char *sender = sd_bus_message_get_sender(reply);

        fetch->call = call_free(fetch->call);
        if (fetch->cursor)
                fail_lost(fetch->cursor, fetch->owner ? sender && strcmp(sender, fetch->owner) == 0 : !sender);
}

/* The pipe broke: sends Finalize or Cancel to the daemon instance that served the run, to see if it still answers. */
static int ask_if_service_lives(sqlipc_cursor *c) {
        _cleanup_message_ sd_bus_message *m = NULL;
        Fetch *fetch = c->fetch;
        bool statement = c->statement && !fetch->on_channel;
        uint64_t number = fetch->on_channel ? 0 : statement ? c->statement->number : fetch->number; /* 0: no run has it */
        int r;

        if (!connection_is_open(c->connection))
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(c->connection->bus, &m, fetch->owner, fetch->path, "org.sqlipc1.Database",
                                           statement ? "Finalize" : "Cancel");
        if (r < 0)
                return r;
        r = sd_bus_message_set_auto_start(m, false);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ta{sv}", number, 0);
        if (r < 0)
                return r;
        r = call_new(&fetch->call, c->connection, m, on_alive_reply, NULL, fetch, ASK_TIMEOUT_USEC);
        if (r < 0)
                return r;
        if (c->statement)
                c->statement->number = 0;
        return 0;
}

static void on_end_of_file(sqlipc_cursor *c) {
        c->n_values = 0;
        if (c->fetch->on_channel && !c->delivered && !is_cancelled(c) && c->retries_left > 0 &&
            may_repeat(fate_of_stream(c), c->read_only)) {
                c->retries_left--;
                cursor_restart(c, !c->needs_channel);
                return;
        }
        c->fetch->under_way = false;
        if (is_cancelled(c)) { /* killed, because it could not be interrupted */
                fail_cancelled(c);
                if (c->statement)
                        prepared_lose(c->statement);
        } else if (ask_if_service_lives(c) < 0)
                fail_lost(c, false);
        else
                c->state = CURSOR_ASKING;
}

/* Handles the failure of NextRows. */
static void on_failure_reply(sqlipc_cursor *c) {
        (void) error_set_reply(&c->error, c->fetch->rows.failure);
        c->fetch->under_way = false;
        if (is_cancelled(c) && (c->error.number == ERROR_CANCELLED || c->error.number == ERROR_UNKNOWN_RUN))
                fail_cancelled(c);
        else if (c->error.number == ERROR_DAEMON_LOST && connection_is_open(c->connection))
                fail_lost(c, false);
        else {
                error_set_outcome(&c->error, fate_of_reply(c->fetch->rows.failure, &c->error), c->read_only);
                finish(c);
        }
}

static bool may_restart(const sqlipc_cursor *c) {
        return c && c->state == CURSOR_RUNNING && !c->delivered && may_repeat(FATE_UNKNOWN, c->read_only);
}

/* Before the answer to this run is one that the program does not read, and that is too large to be kept. One of the two
 * runs moves to a pipe. */
static void on_crowded(sqlipc_cursor *c) {
        Fetch *first = channel_link_first_fetch(c->fetch->channel);
        sqlipc_cursor *other = first ? first->cursor : NULL;
        Error e;

        if (may_restart(other))
                cursor_restart(other, true);
        else if (may_restart(c))
                cursor_restart(c, true);
        else {
                (void) error_set_errno(&e, -ENOBUFS,
                                       "The answer comes after one that the program has not read, and is too large to be "
                                       "kept.");
                error_set_outcome(&e, FATE_UNKNOWN, c->read_only);
                cursor_fail(c, &e);
        }
}

/* ---- Stepping ----------------------------------------------------------------------------------------------------- */

/* Handles an event of the decoder. 1: a row; 0: look at the state again; -EAGAIN. */
static int take_event(sqlipc_cursor *c, int event) {
        int r;

        switch (event) {
        case PAGE_ROW:
                c->n_values = c->fetch->decoder.n_columns;
                c->delivered = true;
                return 1;
        case PAGE_COLUMNS:
                return 0;
        case PAGE_STATEMENT:
                r = prepared_read_description(c->statement);
                if (r < 0)
                        cursor_fail_errno(c, r);
                else
                        c->read_only |= c->statement->description.read_only;
                return 0;
        case PAGE_END:
                c->totals = c->fetch->decoder.end_counters;
                c->error.result = 0;
                note_result(c, c->totals.n_bytes, c->totals.usec);
                finish(c);
                return 0;
        case PAGE_ERROR:
                on_error_frame(c);
                return 0;
        case -EAGAIN:
                c->n_values = 0;
                return -EAGAIN;
        case -ECONNRESET:
                if (c->fetch->call) /* the reply that is still to come has the reason */
                        return -EAGAIN;
                if (c->fetch->as_rows && c->fetch->rows.failure)
                        on_failure_reply(c);
                else
                        on_end_of_file(c);
                return 0;
        case -ENOBUFS:
                on_crowded(c);
                return 0;
        case -EMSGSIZE:
                fail_large_row(c);
                return 0;
        default:
                cursor_fail_errno(c, event);
                return 0;
        }
}

static int cursor_step(sqlipc_cursor *c) {
        int r;

        for (;;)
                switch (c->state) {
                case CURSOR_RUNNING:
                        if (is_cancelled(c)) {
                                apply_cancel(c);
                                if (c->state != CURSOR_RUNNING)
                                        break;
                        }
                        r = take_event(c, fetch_next(c->fetch));
                        if (r != 0)
                                return r;
                        break;
                case CURSOR_WAITING:
                        cursor_advance(c);
                        if (c->state == CURSOR_WAITING)
                                return -EAGAIN;
                        break;
                case CURSOR_ASKING:
                        if (is_cancelled(c))
                                apply_cancel(c);
                        else
                                return -EAGAIN;
                        break;
                case CURSOR_DONE:
                        return c->error.result < 0 ? connection_fail(c->connection, &c->error) : 0;
                }
}

/* The pipe or channel that may bring news; fd -1: only the bus can. Never wait for a pipe that is not read: once broken,
 * it would wake the program forever. */
static struct pollfd cursor_pollfd(const sqlipc_cursor *c) {
        const sqlipc_statement *s = c->statement;

        switch (c->state) {
        case CURSOR_RUNNING:
                return fetch_pollfd(c->fetch);
        case CURSOR_WAITING: /* for the end of the previous run, which cursor_start() reads, or else for a reply */
                if (s && s->state == STATEMENT_PREPARING)
                        return prepared_pollfd(s);
                if (s && s->state == STATEMENT_READY && c->fetch->under_way && !c->fetch->on_channel)
                        return fetch_pollfd(c->fetch);
                break;
        case CURSOR_ASKING:
        case CURSOR_DONE:
                break;
        }
        return CONNECTION_NO_DATA;
}

/* True if the run has started: over the bus a reply says so, on a channel its first frame. */
static bool has_started(const sqlipc_cursor *c) {
        return c->state == CURSOR_RUNNING && (c->fetch->on_channel ? c->fetch->decoder.in_run : !c->fetch->call);
}

/* Advances the run as far as possible without waiting. 0: it waits; 1: it has started or failed. */
static int advance_to_start(sqlipc_cursor *c) {
        for (;;) {
                cursor_advance(c);
                if (c->state == CURSOR_DONE || has_started(c))
                        return 1;
                if (c->state != CURSOR_RUNNING || !c->fetch->on_channel || take_event(c, fetch_next(c->fetch)) == -EAGAIN)
                        return 0;
        }
}

/* Waits until the run may have advanced. Over the bus the service reports the start of a run before the run computes. On
 * a channel only the first page shows it, so the wait is short, and the program can cancel the run after it. 1: stop
 * waiting. */
static int wait_for_start(sqlipc_cursor *c, uint64_t *deadline, uint64_t *start_by) {
        bool on_channel = c->state == CURSOR_RUNNING && c->fetch->on_channel;
        int r;

        if (on_channel && *start_by == 0) {
                uint64_t timeout = c->connection->timeout_usec;

                *start_by = now_usec() + (timeout < START_TIMEOUT_USEC ? timeout : START_TIMEOUT_USEC);
        }
        r = connection_wait(c->connection, cursor_pollfd(c), on_channel ? start_by : deadline);
        if (r == -ETIMEDOUT && on_channel)
                return 1;
        if (r > 0 && c->state == CURSOR_RUNNING && !c->fetch->on_channel && fetch_pollfd(c->fetch).fd >= 0)
                return 1; /* the pipe was quicker than the reply */
        return r < 0 ? r : 0;
}

int cursor_wait_started(sqlipc_cursor *c) {
        uint64_t deadline = connection_answer_deadline(c->connection), start_by = 0;
        int r;

        for (;;) {
                connection_be_patient(c->connection);
                r = advance_to_start(c);
                connection_look_at_bus(c->connection);
                if (r == 0)
                        r = wait_for_start(c, &deadline, &start_by);
                if (r < 0)
                        return connection_fail_wait(c->connection, r);
                if (r > 0)
                        break;
        }
        return c->state == CURSOR_DONE && c->error.result < 0 ? connection_fail(c->connection, &c->error) : 0;
}

static int step_patiently(sqlipc_cursor *c) {
        int r;

        if (!c->fetch || !c->fetch->on_channel)
                return cursor_step(c);
        connection_be_patient(c->connection);
        r = cursor_step(c);
        c->connection->patient = false;
        return r;
}

/* Copies the details of a failed call, whose run goes on, from the connection to the cursor. */
static int report(sqlipc_cursor *c, int r) {
        c->error = c->connection->error;
        return r;
}

_public_ int sqlipc_cursor_next(sqlipc_cursor *c) {
        uint64_t deadline = 0;
        struct pollfd data;
        int r;

        if (!c)
                return -EINVAL;
        for (;;) {
                r = step_patiently(c);
                if (r != -EAGAIN)
                        return r;
                if (!c->connection->blocking)
                        break;
                r = connection_wait(c->connection, cursor_pollfd(c), &deadline);
                if (r < 0)
                        return report(c, connection_fail_wait(c->connection, r));
        }
        c->fetch->waits_since = c->connection->n_turns;
        c->waiting.waits = true;
        data = cursor_pollfd(c);
        if (data.fd >= 0) {
                r = connection_arm(c->connection, data, fetch_source(c->fetch));
                if (r < 0)
                        return report(c, connection_fail_errno(c->connection, r));
        }
        return -EAGAIN;
}

_public_ int sqlipc_cursor_next_block(sqlipc_cursor *c, size_t n_rows_max, const sqlipc_value **ret_values,
                                      size_t *ret_n_rows) {
        int r;

        if (!c)
                return -EINVAL;
        if (!ret_values || !ret_n_rows)
                return report(c, connection_fail_errno(c->connection, -EINVAL));
        r = sqlipc_cursor_next(c);
        if (r <= 0)
                return r;
        r = block_take(&c->fetch->block, &c->fetch->decoder, n_rows_max, ret_n_rows);
        if (r < 0) { /* a row was taken that cannot be returned: the rest would not be a complete result */
                cursor_fail_errno(c, r);
                return connection_fail(c->connection, &c->error);
        }
        *ret_values = c->fetch->block.values;
        return 1;
}

_public_ int sqlipc_cursor_set_ready_callback(sqlipc_cursor *cursor, sqlipc_cursor_callback callback, void *userdata) {
        if (!cursor)
                return -EINVAL;
        cursor->on_ready = callback;
        cursor->on_ready_userdata = userdata;
        return 0;
}

_public_ int sqlipc_cursor_cancel(sqlipc_cursor *c) {
        int saved = errno; /* may run in a signal handler */
        uint64_t one = 1;

        if (!c)
                return -EINVAL;
        if (connection_is_foreign(c->connection))
                return -ECHILD;
        atomic_store_explicit(&c->cancelled, true, memory_order_release);
        if (write(c->connection->wake_fd, &one, sizeof one) < 0)
                errno = saved; /* the counter is full: wake_fd is readable in any case */
        return 0;
}

void cursor_detach(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;

        if (c->state != CURSOR_DONE) {
                (void) error_set_errno(&c->error, -ESTALE, "The statement was executed again or finalized.");
                finish(c);
        }
        if (s && s->cursor == c)
                s->cursor = NULL;
        c->statement = NULL;
        c->fetch = NULL;
        c->n_values = 0;
}

void cursor_close_connection(sqlipc_cursor *c) {
        if (c->state != CURSOR_DONE) {
                (void) error_set_errno(&c->error, -ENOTCONN, "The connection was closed.");
                finish(c);
        }
        c->n_values = 0;
}

_public_ sqlipc_cursor *sqlipc_cursor_close(sqlipc_cursor *c) {
        sqlipc_connection *connection;

        if (!c)
                return NULL;
        connection = c->connection;
        TAILQ_REMOVE(&connection->cursors, c, link);
        if (c->fetch == &c->own) {
                finish(c);
                fetch_done(&c->own);
        } else
                cursor_detach(c);
        if (connection->spare_cursor)
                free(c);
        else
                connection->spare_cursor = c;
        (void) sqlipc_connection_unref(connection);
        return NULL;
}

_public_ sqlipc_transport sqlipc_cursor_get_transport(sqlipc_cursor *cursor) {
        return cursor ? cursor->transport : SQLIPC_TRANSPORT_AUTO;
}

_public_ void sqlipc_cursor_closep(sqlipc_cursor **cursor) {
        (void) sqlipc_cursor_close(*cursor);
}

static int execute(sqlipc_statement *s, sqlipc_cursor **ret_cursor) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *c = NULL;
        sqlipc_connection *connection = s->connection;
        int r;

        if (!ret_cursor)
                return connection_fail_errno(connection, -EINVAL);
        r = connection_check(connection);
        if (r < 0)
                return r;
        if (s->cursor)
                cursor_detach(s->cursor);
        if (s->state == STATEMENT_FAILED)
                s->state = STATEMENT_LOST;
        r = cursor_new(&c, connection, s, NULL);
        if (r < 0)
                return connection_fail_errno(connection, r);
        if (connection->blocking) {
                r = cursor_wait_started(c);
                if (r < 0)
                        return r;
        } else
                cursor_advance(c);
        *ret_cursor = steal(c);
        return 0;
}

_public_ int sqlipc_execute(sqlipc_statement *statement, sqlipc_cursor **ret_cursor) {
        return statement ? prepared_report(statement, execute(statement, ret_cursor)) : -EINVAL;
}
