/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sending a run, over the bus or a channel (cursor.h, transport.h). Library. */
#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/parameters-row.h"
#include "client-lib/repeat.h"
#include "client-lib/statement.h"

static void on_fetch_reply(sd_bus_message *reply, void *userdata) {
        Run *run = userdata;
        sqlipc_cursor *c = run->cursor;
        Fate fate;
        Error e;
        int r;

        run->call = call_free(run->call);
        if (!sd_bus_message_get_error(reply)) {
                r = sd_bus_message_read(reply, "t", &run->number);
                if (r < 0 && c)
                        cursor_fail_errno(c, r);
                else if (run->cancel_wanted && run->under_way)
                        run_cancel(run);
                return;
        }

        run->under_way = false; /* nothing comes through the pipe */
        if (!c || c->state != CURSOR_RUNNING)
                return;
        (void) error_set_reply(&e, reply);
        fate = fate_of_reply(reply, &e);
        /* if the run killed the service, it might do so again */
        if (fate != FATE_UNKNOWN && may_repeat(fate, c->read_only) && !c->retried) {
                c->retried = true;
                run->cursor = NULL;
                c->state = CURSOR_WAITING;
                statement_lose(c->statement);
                return;
        }
        if (e.number == ERROR_DAEMON_LOST)
                statement_lose(c->statement);
        cursor_fail_reply(c, reply);
}

static int new_fetch(sqlipc_cursor *c, sd_bus_message **ret) {
        const sqlipc_statement *s = c->statement;
        const Bindings *b = c->bindings;
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
        r = call_append_options(m, false, c->run_timeout_usec);
        if (r < 0)
                return r;
        *ret = steal(m);
        return 0;
}

/* Checks the values that were bound before the statement was compiled. */
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

        r = new_fetch(c, &m);
        if (r >= 0)
                r = call_new(&call, c->connection, m, on_fetch_reply, NULL, &s->run, UINT64_MAX);
        if (r >= 0) {
                run_begin(&s->run, c, call);
                c->state = CURSOR_RUNNING;
                c->transport = SQLIPC_TRANSPORT_PIPE;
        } else if (connection_may_send_again(c->connection, r) && !c->retried) {
                c->retried = true;
                s->number = 0;
                statement_lose(s);
                cursor_start(c); /* nothing else would wake it */
        } else {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
        }
}

/* Runs the statement through its pipe, which the daemon may first have to create. */
static void start_on_bus(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        Error e;
        int r;

        if (s->state == STATEMENT_READY && s->number > 0) {
                r = run_drain(&s->run);
                if (r == -EAGAIN)
                        return;
                if (r >= 0 && !s->run.at_end_of_file) {
                        send_fetch(c);
                        return;
                }
        }
        r = statement_prepare(s);
        if (r < 0) {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
        }
}

static int send_fetch_on_channel(sqlipc_cursor *c, const ParametersRow *row) {
        sqlipc_statement *s = c->statement;
        uint64_t number;
        uint8_t *payload;
        int r;

        if (!statement_is_on_channel(s)) {
                r = statement_send_prepare(s);
                if (r < 0)
                        return r;
        }
        payload = channel_request(s->run.channel, &s->run, REQUEST_FETCH, CHANNEL_FETCH_HEAD_SIZE + row->size, &number);
        if (!payload)
                return -ENOMEM;
        store_le64(payload, s->channel_number);
        store_le64(payload + 8, cursor_timeout_on_channel(c));
        store_le32(payload + 16, row->n_positional);
        store_le32(payload + 20, row->n_named);
        parameters_row_write(row, payload + CHANNEL_FETCH_HEAD_SIZE);
        run_begin(&s->run, c, NULL);
        s->run.number = number;
        return 0;
}

static void start_on_channel(sqlipc_cursor *c, const ParametersRow *row) {
        sqlipc_statement *s = c->statement;
        Error e;
        int r;

        statement_leave_bus(s);
        run_enter_channel(&s->run);
        s->state = STATEMENT_READY;
        r = send_fetch_on_channel(c, row);
        if (r < 0) {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
                return;
        }
        c->read_only |= s->run.channel->read_only;
        c->state = CURSOR_RUNNING;
        c->transport = SQLIPC_TRANSPORT_CHANNEL;
}

/* Runs the statement by OpenRows, which compiles it for each run: no descriptor is kept for it in between. */
static void start_as_rows(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        const Bindings *b = c->bindings;
        Error e;
        int r;

        statement_leave_bus(s);
        s->state = STATEMENT_READY;
        r = rows_open(&s->run, c, s->sql, b ? b->values : NULL, b ? b->n_values : 0, s->description.n_parameters);
        if (r < 0) {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
                return;
        }
        c->state = CURSOR_RUNNING;
        c->transport = SQLIPC_TRANSPORT_DBUS;
}

/* Starts a run whose statement is known: checks the parameters here, for all transports. */
static void start_described(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        Channel *ch = s->run.channel;
        ParametersRow row;
        Error e;
        int r;

        if (check_bindings(c) < 0)
                return;
        r = parameters_row_init(&row, c->bindings ? c->bindings->values : NULL, c->bindings ? c->bindings->n_values : 0,
                                s->description.n_parameters);
        if (r < 0) {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
                return;
        }
        c->needs_channel = transport_needs_channel(ch, row.size);
        c->read_only = s->description.read_only;
        switch (transport_choose(ch, s->habit.large, c->bus_only, &c->opened, row.size)) {
        case WAY_BUS:
                start_on_bus(c);
                return;
        case WAY_CHANNEL:
                start_on_channel(c, &row);
                return;
        case WAY_ROWS:
                start_as_rows(c);
                return;
        case WAY_WAIT:
                return;
        case WAY_NONE:
                cursor_fail(c, &ch->error);
                return;
        }
}

static void start_undescribed(sqlipc_cursor *c) {
        Error e;
        int r = c->bus_only ? statement_prepare(c->statement) : statement_prepare_anywhere(c->statement);

        if (r < 0) {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
        }
}

/* Advances the statement and the run until something must be waited for, or the run is sent. */
void cursor_start(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;

        if (!s) {
                query_start(c);
                return;
        }
        statement_advance(s);
        if (s->state == STATEMENT_FAILED)
                cursor_fail(c, &s->error);
        else if (s->state != STATEMENT_PREPARING && s->described)
                start_described(c);
        else if (s->state != STATEMENT_PREPARING)
                start_undescribed(c);
}

void cursor_restart(sqlipc_cursor *c, bool bus_only) {
        if (c->run->under_way)
                run_cancel(c->run);
        run_leave_channel(c->run);
        c->run->cursor = NULL;
        c->run->under_way = false;
        c->n_values = 0;
        c->bus_only |= bus_only;
        c->opened = false;
        c->state = CURSOR_WAITING;
        c->transport = SQLIPC_TRANSPORT_AUTO;
}
