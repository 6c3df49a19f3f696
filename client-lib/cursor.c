/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs as the program sees them (cursor.h). Library.
 *
 * cursor_step() is the state machine and never waits; sqlipc_cursor_next() puts the waiting around it. As long as the
 * decoder has rows, a step is one call of it: no system call, no clock.
 */
#include <string.h>

#include "connection.h"
#include "cursor.h"
#include "statement.h"

/* How long a daemon that lives may take to say so. */
#define ASK_TIMEOUT_USEC USEC_PER_SEC

int cursor_new(sqlipc_cursor **ret, sqlipc_connection *connection, sqlipc_statement *s, char *path) {
        sqlipc_cursor *c = malloc(sizeof *c);

        if (!c) {
                free(path);
                return -ENOMEM;
        }
        *c = (sqlipc_cursor) { .connection = connection, .state = CURSOR_WAITING, .statement = s };
        atomic_init(&c->cancelled, false);
        if (s) {
                c->run = &s->run;
                c->bindings = bindings_ref(s->bindings);
                s->cursor = c;
        } else {
                run_init(&c->own, connection, path);
                c->run = &c->own;
        }
        LIST_INSERT_HEAD(&connection->cursors, c, link);
        *ret = c;
        return 0;
}

/* The last word on this cursor. A query's pipe is given back at once. */
static void finish(sqlipc_cursor *c) {
        c->state = CURSOR_DONE;
        c->n_values = 0;
        c->bindings = bindings_unref(c->bindings);
        if (c->run == &c->own) {
                if (c->own.under_way)
                        run_cancel(&c->own);
                c->own.under_way = false;
                c->own.call = call_free(c->own.call);
                run_close_pipe(&c->own);
        } else if (c->run && c->run->cursor == c)
                run_abandon(c->run);
}

void cursor_fail(sqlipc_cursor *c, const Error *e) {
        c->error = *e;
        finish(c);
}

static void fail_cancelled(sqlipc_cursor *c) {
        (void) error_set(&c->error, ERROR_CANCELLED, "The run was cancelled.");
        finish(c);
}

/* Neither the daemon nor its frames can be believed or reached any more. */
static void fail_errno(sqlipc_cursor *c, int r) {
        sqlipc_statement *s = c->statement;

        if (r == -EBADMSG)
                (void) error_set_errno(&c->error, r, "What came down the pipe is not sqlipc's page format.");
        else
                (void) error_set_send(&c->error, r);
        finish(c);
        if (s)
                statement_lose(s);
}

/* ---- Starting ----------------------------------------------------------------------------------------------------- */

/* Errors of Fetch that say that this statement is no longer there, not that the run is wrong. The bus denies us an
 * instance that gave up the service's name. */
static bool is_statement_gone(sd_bus_message *reply, const Error *e) {
        static const char bus[] = "org.freedesktop.DBus.Error.";

        if (e->number == ERROR_UNKNOWN_STATEMENT || e->number == ERROR_WORKER_LOST || e->number == ERROR_PIPE_CLOSED ||
            e->number == ERROR_SHUTTING_DOWN)
                return true;
        if (strncmp(e->name, bus, strlen(bus)) != 0)
                return false;
        return e->result == -EHOSTDOWN ||
               (e->number == ERROR_ACCESS_DENIED && sd_bus_message_get_sender(reply) &&
                strcmp(sd_bus_message_get_sender(reply), "org.freedesktop.DBus") == 0);
}

static void on_fetch_reply(sd_bus_message *reply, void *userdata) {
        Run *run = userdata;
        sqlipc_cursor *c = run->cursor;
        Error e;
        int r;

        run->call = call_free(run->call);
        if (!sd_bus_message_get_error(reply)) {
                r = sd_bus_message_read(reply, "t", &run->number);
                if (r < 0 && c)
                        fail_errno(c, r);
                else if (run->cancel_wanted && run->under_way)
                        run_cancel(run);
                return;
        }

        run->under_way = false; /* nothing goes down the pipe */
        (void) error_set_reply(&e, reply);
        if (!c || c->state != CURSOR_RUNNING)
                return;
        if (is_statement_gone(reply, &e) && !c->retried) {
                c->retried = true;
                run->cursor = NULL;
                c->state = CURSOR_WAITING;
                statement_lose(c->statement);
                return;
        }
        if (e.number == ERROR_DAEMON_LOST)
                statement_lose(c->statement);
        cursor_fail(c, &e);
}

static int new_fetch(sqlipc_statement *s, Bindings *b, sd_bus_message **ret) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = connection_new_call(s->connection, &m, s->run.owner, s->run.path, "Fetch");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "t", s->number);
        if (r < 0)
                return r;
        r = append_parameters(m, b ? b->values : NULL, b ? b->n_values : 0, s->description.n_parameters);
        if (r < 0)
                return r;
        r = call_append_options(m);
        if (r < 0)
                return r;
        *ret = steal(m);
        return 0;
}

/* What was bound before the statement was compiled is checked now. */
static int check_bindings(sqlipc_cursor *c) {
        unsigned n = c->statement->description.n_parameters;
        const char *unknown;
        Error e;
        int r;

        r = bindings_resolve(c->bindings, statement_look_up, c->statement, &unknown);
        if (r == -ENXIO) {
                (void) error_set(&e, ERROR_UNKNOWN_PARAMETER, "The statement has no parameter named %s, or several of that "
                                 "name.", unknown);
                e.result = r;
        } else if (r < 0)
                (void) error_set_errno(&e, r, NULL);
        else if (c->bindings && c->bindings->n_values > n)
                r = error_set(&e, ERROR_PARAMETER_COUNT, "Parameter %u is bound, but the statement has %u.",
                              c->bindings->n_values, n);
        if (r < 0)
                cursor_fail(c, &e);
        return r;
}

static void send_fetch(sqlipc_cursor *c) {
        _cleanup_message_ sd_bus_message *m = NULL;
        sqlipc_statement *s = c->statement;
        Call *call;
        Error e;
        int r;

        if (check_bindings(c) < 0)
                return;
        r = new_fetch(s, c->bindings, &m);
        if (r >= 0)
                r = call_new(&call, c->connection, m, on_fetch_reply, NULL, &s->run, UINT64_MAX);
        if (r >= 0) {
                run_begin(&s->run, c, call);
                c->state = CURSOR_RUNNING;
        } else if (!connection_is_open(c->connection) && !c->retried) {
                c->retried = true;
                s->number = 0;
                statement_lose(s);
        } else {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
        }
}

/* Goes through the statement's states until something must be waited for, or Fetch is sent. */
static void start(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        Error e;
        int r;

        while (c->state == CURSOR_WAITING)
                switch (s->state) {
                case STATEMENT_PREPARING:
                        return;
                case STATEMENT_FAILED:
                        cursor_fail(c, &s->error);
                        return;
                case STATEMENT_LOST:
                        r = statement_prepare(s);
                        if (r < 0) {
                                (void) error_set_send(&e, r);
                                cursor_fail(c, &e);
                        }
                        return;
                case STATEMENT_READY:
                        r = run_drain(&s->run);
                        if (r == -EAGAIN)
                                return;
                        if (r < 0 || s->run.at_end_of_file)
                                statement_lose(s);
                        else
                                send_fetch(c);
                        break;
                }
}

/* ---- Ending ------------------------------------------------------------------------------------------------------- */

/* Before anything is known of the run there is nothing to wait for: it is given up here, and cancelled there once its number
 * comes. Afterwards rows that are on their way still arrive, then the end that the cancellation brings. */
static void apply_cancel(sqlipc_cursor *c) {
        switch (c->state) {
        case CURSOR_WAITING:
                fail_cancelled(c);
                return;
        case CURSOR_RUNNING:
                if (c->run->call && !c->run->number)
                        fail_cancelled(c);
                else
                        run_cancel(c->run);
                return;
        case CURSOR_ASKING:
                fail_cancelled(c);
                return;
        case CURSOR_DONE:
                return;
        }
}

static bool is_cancelled(sqlipc_cursor *c) {
        return atomic_load_explicit(&c->cancelled, memory_order_relaxed);
}

void cursor_advance(sqlipc_cursor *c) {
        if (is_cancelled(c))
                apply_cancel(c);
        if (c->state == CURSOR_WAITING)
                start(c);
}

static void on_error_frame(sqlipc_cursor *c) {
        uint32_t number = c->run->decoder.error_number;

        if (is_cancelled(c) && (number == ERROR_CANCELLED || number == ERROR_WORKER_LOST)) {
                fail_cancelled(c);
                return;
        }
        (void) error_set_frame(&c->error, &c->run->decoder);
        /* Nobody but us may end our run, so the daemon did because the bus told it that we are gone. */
        if (number == ERROR_CANCELLED && !connection_is_open(c->connection))
                (void) error_set(&c->error, ERROR_DAEMON_LOST, "The connection to the bus was lost, and the run with it.");
        finish(c);
}

static void fail_lost(sqlipc_cursor *c, bool daemon_lives) {
        if (daemon_lives)
                (void) error_set(&c->error, ERROR_WORKER_LOST, "The worker that computed this result is gone; the result "
                                 "is incomplete.");
        else
                (void) error_set(&c->error, ERROR_DAEMON_LOST, "The service is gone; the result is incomplete.");
        finish(c);
        if (c->statement)
                statement_lose(c->statement);
}

/* Only an answer from the very instance that served us shows that it lives; what the bus, or sd-bus itself, says in its
 * place does not. On a bus without names nobody else can answer. */
static void on_alive_reply(sd_bus_message *reply, void *userdata) {
        Run *run = userdata;
        const char *sender = sd_bus_message_get_sender(reply);

        run->call = call_free(run->call);
        if (run->cursor)
                fail_lost(run->cursor, run->owner ? sender && strcmp(sender, run->owner) == 0 : !sender);
}

/* The pipe broke: the daemon instance that served us is asked for its statement, or its run, back. */
static int ask_who_died(sqlipc_cursor *c) {
        _cleanup_message_ sd_bus_message *m = NULL;
        Run *run = c->run;
        uint64_t number = c->statement ? c->statement->number : run->number;
        int r;

        if (!connection_is_open(c->connection))
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(c->connection->bus, &m, run->owner, run->path, "org.sqlipc1.Database",
                                           c->statement ? "Finalize" : "Cancel");
        if (r < 0)
                return r;
        r = sd_bus_message_set_auto_start(m, false);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ta{sv}", number, 0);
        if (r < 0)
                return r;
        r = call_new(&run->call, c->connection, m, on_alive_reply, NULL, run, ASK_TIMEOUT_USEC);
        if (r < 0)
                return r;
        if (c->statement)
                c->statement->number = 0;
        return 0;
}

static void on_end_of_file(sqlipc_cursor *c) {
        c->run->under_way = false;
        c->n_values = 0;
        if (is_cancelled(c)) { /* killed, because it could not be interrupted */
                fail_cancelled(c);
                if (c->statement)
                        statement_lose(c->statement);
        } else if (ask_who_died(c) < 0)
                fail_lost(c, false);
        else
                c->state = CURSOR_ASKING;
}

/* ---- Stepping ----------------------------------------------------------------------------------------------------- */

/* What came out of the pipe. 1: a row; 0: look at the state again; -EAGAIN. */
static int take_event(sqlipc_cursor *c, int event) {
        switch (event) {
        case PAGE_ROW:
                c->n_values = c->run->decoder.n_columns;
                return 1;
        case PAGE_COLUMNS:
                return 0;
        case PAGE_END:
                c->totals = c->run->decoder.end_counters;
                finish(c);
                return 0;
        case PAGE_ERROR:
                on_error_frame(c);
                return 0;
        case -EAGAIN:
                c->n_values = 0;
                return -EAGAIN;
        case -ECONNRESET:
                if (c->run->call) /* the reply that is still to come knows better */
                        return -EAGAIN;
                on_end_of_file(c);
                return 0;
        default:
                fail_errno(c, event);
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
                        r = take_event(c, run_next(c->run));
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

/* The pipe that may bring news, -1: only the bus can. A pipe that is not read must not be waited for: once broken it
 * would wake us for ever. */
static int wait_fd(const sqlipc_cursor *c) {
        switch (c->state) {
        case CURSOR_RUNNING:
                return run_wait_fd(c->run);
        case CURSOR_WAITING: /* for the end of the run before, which start() reads, or else for a reply */
                return c->statement->state == STATEMENT_READY && c->run->under_way ? run_wait_fd(c->run) : -1;
        case CURSOR_ASKING:
        case CURSOR_DONE:
                break;
        }
        return -1;
}

int cursor_wait_started(sqlipc_cursor *c) {
        uint64_t deadline = connection_answer_deadline(c->connection);
        int r;

        for (;;) {
                cursor_advance(c);
                if (c->state == CURSOR_DONE && c->error.result < 0)
                        return connection_fail(c->connection, &c->error);
                if (c->state == CURSOR_DONE || (c->state == CURSOR_RUNNING && !c->run->call))
                        return 0;
                r = connection_wait(c->connection, wait_fd(c), &deadline);
                if (r < 0)
                        return connection_fail_wait(c->connection, r);
                if (r > 0 && c->state == CURSOR_RUNNING && run_wait_fd(c->run) >= 0)
                        return 0; /* the pipe was quicker than the reply */
        }
}

_public_ int sqlipc_cursor_next(sqlipc_cursor *c) {
        uint64_t deadline = 0;
        int r;

        if (!c)
                return -EINVAL;
        for (;;) {
                r = cursor_step(c);
                if (r != -EAGAIN)
                        return r;
                if (!c->connection->blocking)
                        break;
                r = connection_wait(c->connection, wait_fd(c), &deadline);
                if (r < 0)
                        return connection_fail_wait(c->connection, r);
        }
        if (wait_fd(c) >= 0) {
                r = connection_arm(c->connection, wait_fd(c));
                if (r < 0)
                        return connection_fail_errno(c->connection, r);
        }
        return -EAGAIN;
}

_public_ int sqlipc_cursor_cancel(sqlipc_cursor *c) {
        int saved = errno; /* may run in a signal handler */
        uint64_t one = 1;

        if (!c)
                return -EINVAL;
        atomic_store_explicit(&c->cancelled, true, memory_order_release);
        if (write(c->connection->wake_fd, &one, sizeof one) < 0)
                errno = saved; /* the counter is full: it wakes all the same */
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
        c->run = NULL;
        c->n_values = 0;
}

_public_ sqlipc_cursor *sqlipc_cursor_close(sqlipc_cursor *c) {
        if (!c)
                return NULL;
        LIST_REMOVE(c, link);
        if (c->run == &c->own) {
                finish(c);
                run_done(&c->own);
        } else
                cursor_detach(c);
        free(c);
        return NULL;
}

_public_ void sqlipc_cursor_closep(sqlipc_cursor **cursor) {
        (void) sqlipc_cursor_close(*cursor);
}

_public_ int sqlipc_execute(sqlipc_statement *statement, sqlipc_cursor **ret_cursor) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *c = NULL;
        sqlipc_connection *connection;
        int r;

        if (!statement)
                return -EINVAL;
        connection = statement->connection;
        if (!ret_cursor)
                return connection_fail_errno(connection, -EINVAL);

        if (statement->cursor)
                cursor_detach(statement->cursor);
        if (statement->state == STATEMENT_FAILED)
                statement->state = STATEMENT_LOST;
        r = cursor_new(&c, connection, statement, NULL);
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
