/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sending a run, over the bus or a channel (cursor.h, transport.h). Library. */
#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/parameter-row.h"
#include "client-lib/prepared.h"
#include "client-lib/repeat.h"

static void on_fetch_reply(sd_bus_message *reply, void *userdata) {
        Fetch *fetch = userdata;
        sqlipc_cursor *c = fetch->cursor;
        Fate fate;
        Error e;
        int r;

        fetch->call = call_free(fetch->call);
        if (!sd_bus_message_get_error(reply)) {
                r = sd_bus_message_read(reply, "t", &fetch->number);
                if (r < 0 && c)
                        cursor_fail_errno(c, r);
                else if (fetch->cancel_wanted && fetch->under_way)
                        fetch_cancel(fetch);
                return;
        }

        fetch->under_way = false; /* nothing comes through the pipe */
        if (!c || c->state != CURSOR_RUNNING)
                return;
        (void) error_set_reply(&e, reply);
        fate = fate_of_reply(reply, &e);
        /* if the run killed the service, it might do so again */
        if (fate != FATE_UNKNOWN && may_repeat(fate, c->read_only) && !c->retried) {
                c->retried = true;
                fetch->cursor = NULL;
                c->state = CURSOR_WAITING;
                prepared_lose(c->statement);
                return;
        }
        if (e.number == ERROR_DAEMON_LOST)
                prepared_lose(c->statement);
        cursor_fail_reply(c, reply);
}

static int new_fetch(sqlipc_cursor *c, sd_bus_message **ret) {
        const sqlipc_statement *s = c->statement;
        const Bindings *b = c->bindings;
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = connection_new_call(s->connection, &m, s->fetch.owner, s->fetch.path, "Fetch");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "t", s->number);
        if (r < 0)
                return r;
        r = parameter_append_all(m, b ? b->values : NULL, b ? b->n_values : 0, s->description.n_parameters);
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

        r = bindings_resolve(c->bindings, prepared_look_up, c->statement, &unknown);
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
                r = call_new(&call, c->connection, m, on_fetch_reply, NULL, &s->fetch, UINT64_MAX);
        if (r >= 0) {
                fetch_begin(&s->fetch, c, call);
                c->state = CURSOR_RUNNING;
                c->transport = SQLIPC_TRANSPORT_PIPE;
        } else if (connection_may_send_again(c->connection, r) && !c->retried) {
                c->retried = true;
                s->number = 0;
                prepared_lose(s);
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
                r = fetch_drain(&s->fetch);
                if (r == -EAGAIN)
                        return;
                if (r >= 0 && !s->fetch.at_end_of_file) {
                        send_fetch(c);
                        return;
                }
        }
        r = prepared_prepare(s);
        if (r < 0) {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
        }
}

static int send_fetch_on_channel(sqlipc_cursor *c, const ParameterRow *row) {
        sqlipc_statement *s = c->statement;
        uint64_t number;
        uint8_t *payload;
        int r;

        if (!prepared_is_on_channel(s)) {
                r = prepared_send_prepare(s);
                if (r < 0)
                        return r;
        }
        payload = channel_link_request(s->fetch.channel, &s->fetch, REQUEST_FETCH, CHANNEL_FETCH_HEAD_SIZE + row->size,
                                       &number);
        if (!payload)
                return -ENOMEM;
        store_le64(payload, s->channel_number);
        store_le64(payload + 8, cursor_timeout_on_channel(c));
        store_le32(payload + 16, row->n_positional);
        store_le32(payload + 20, row->n_named);
        parameter_row_write(row, payload + CHANNEL_FETCH_HEAD_SIZE);
        fetch_begin(&s->fetch, c, NULL);
        s->fetch.number = number;
        return 0;
}

static void start_on_channel(sqlipc_cursor *c, const ParameterRow *row) {
        sqlipc_statement *s = c->statement;
        Error e;
        int r;

        prepared_leave_bus(s);
        fetch_enter_channel(&s->fetch);
        s->state = STATEMENT_READY;
        r = send_fetch_on_channel(c, row);
        if (r < 0) {
                (void) error_set_send(&e, r);
                cursor_fail(c, &e);
                return;
        }
        c->read_only |= s->fetch.channel->read_only;
        c->state = CURSOR_RUNNING;
        c->transport = SQLIPC_TRANSPORT_CHANNEL;
}

/* Runs the statement by OpenRows, which compiles it for each run: no descriptor is kept for it in between. */
static void start_as_rows(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        const Bindings *b = c->bindings;
        Error e;
        int r;

        prepared_leave_bus(s);
        s->state = STATEMENT_READY;
        r = source_rows_open(&s->fetch, c, s->sql, b ? b->values : NULL, b ? b->n_values : 0, s->description.n_parameters);
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
        ChannelLink *ch = s->fetch.channel;
        ParameterRow row;
        Error e;
        int r;

        if (check_bindings(c) < 0)
                return;
        r = parameter_row_init(&row, c->bindings ? c->bindings->values : NULL, c->bindings ? c->bindings->n_values : 0,
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
        int r = c->bus_only ? prepared_prepare(c->statement) : prepared_prepare_anywhere(c->statement);

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
        prepared_advance(s);
        if (s->state == STATEMENT_FAILED)
                cursor_fail(c, &s->error);
        else if (s->state != STATEMENT_PREPARING && s->described)
                start_described(c);
        else if (s->state != STATEMENT_PREPARING)
                start_undescribed(c);
}

void cursor_restart(sqlipc_cursor *c, bool bus_only) {
        if (c->fetch->under_way)
                fetch_cancel(c->fetch);
        fetch_leave_channel(c->fetch);
        c->fetch->cursor = NULL;
        c->fetch->under_way = false;
        c->n_values = 0;
        c->bus_only |= bus_only;
        c->opened = false;
        c->state = CURSOR_WAITING;
        c->transport = SQLIPC_TRANSPORT_AUTO;
}
