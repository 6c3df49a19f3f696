/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executing a statement: sqlipc_execute() (sqlipc.h), and the request for a run, over the bus or a channel (transport.h).
 * Library.
 */
#include "client-lib/call-file.h"
#include "client-lib/bindings.h"
#include "client-lib/call.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/cursor-life.h"
#include "client-lib/cursor-next.h"
#include "client-lib/cursor.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/open-rows.h"
#include "client-lib/parameter-row.h"
#include "client-lib/parameter.h"
#include "client-lib/prepared-channel.h"
#include "client-lib/prepared-life.h"
#include "client-lib/prepared.h"
#include "client-lib/repeat.h"
#include "client-lib/transact.h"
#include "client-lib/transport.h"

/* True if the failure concerns only the statement, not the transaction to which the run belongs. */
static bool spares_transaction(const sqlipc_cursor *c, Fate fate, const Error *e) {
        return e->number == ERROR_UNKNOWN_STATEMENT || e->number == ERROR_PIPE_CLOSED ||
               (fate == FATE_NOT_BEGUN && !transact_is_at(c->transaction, c->fetch->source->owner));
}

/* Prepares the statement again for a Fetch that was refused, or whose worker was lost. */
static bool retry_after_reply(sqlipc_cursor *c, sd_bus_message *reply) {
        Fate fate;
        Error e;

        (void) error_set_reply(&e, reply);
        fate = repeat_fate_of_reply(reply, &e);
        if (cursor_take_pin(c, &e))
                return true;
        if ((!c->transaction || spares_transaction(c, fate, &e)) && repeat_take(&c->repeats, fate, c->read_only)) {
                c->fetch->cursor = NULL;
                cursor_life_move(&c->state, CURSOR_WAITING);
                prepared_lose(c->statement);
                return true;
        }
        if (e.number == ERROR_DAEMON_LOST)
                prepared_lose(c->statement);
        return false;
}

static void on_fetch_reply(sd_bus_message *reply, void *userdata) {
        Fetch *fetch = userdata;
        sqlipc_cursor *c = fetch->cursor;
        uint64_t number;
        Error e;
        int r;

        fetch->source->call = call_free(fetch->source->call);
        if (!sd_bus_message_get_error(reply)) {
                r = sd_bus_message_read(reply, "t", &number);
                if (r >= 0)
                        fetch_set_number(fetch, number);
                else if (c)
                        cursor_fail_errno(c, r);
                return;
        }
        fetch_set_ended(fetch);
        if (error_set_reply(&e, reply) < 0 && repeat_fate_of_reply(reply, &e) == FATE_UNKNOWN)
                fetch->pipe.at_end_of_file = true; /* it may have rows of the lost service, which are not of the next run */
        if (c && c->state == CURSOR_RUNNING && !retry_after_reply(c, reply))
                cursor_fail_reply(c, reply);
}

static int new_fetch(sqlipc_cursor *c, sd_bus_message **ret) {
        const sqlipc_statement *s = c->statement;
        const Bindings *b = c->bindings;
        _cleanup_message_ sd_bus_message *m = NULL;
        _cleanup_(close_file) int fd = -1;
        int r;

        r = connection_bus_new_call(s->connection, &m, s->fetch.source->owner, s->fetch.path, "Fetch");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "t", s->number);
        if (r < 0)
                return r;
        r = call_file_append(m, connection_bus_descriptors(s->connection) != DESCRIPTORS_NONE, NULL,
                             b ? b->values : NULL, b ? b->n_values : 0, s->description.n_parameters, &fd);
        if (r < 0)
                return r;
        r = call_append_options(c->connection, m, false, true, c->run_timeout_usec, transact_place(c->transaction),
                                s->fetch.link->foreign_keys, fd);
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

static void start(sqlipc_cursor *c);

static void send_fetch(sqlipc_cursor *c) {
        _cleanup_message_ sd_bus_message *m = NULL;
        sqlipc_statement *s = c->statement;
        Call *call;
        int r;

        r = new_fetch(c, &m);
        if (r >= 0)
                r = call_new(&call, c->connection, m, on_fetch_reply, NULL, &s->fetch, UINT64_MAX);
        if (r >= 0) {
                fetch_begin(&s->fetch, c, call, 0);
                cursor_begin(c, SQLIPC_TRANSPORT_PIPE);
        } else if (!c->transaction && connection_bus_may_send_again(c->connection, r) &&
                   repeat_take(&c->repeats, FATE_NOT_BEGUN, c->read_only)) {
                s->number = 0;
                prepared_lose(s);
                start(c); /* nothing else would wake it */
        } else
                cursor_fail_send(c, r);
}

/* Runs the statement through its pipe, which the daemon may first have to create. */
static void start_on_bus(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        int r;

        if (s->state == STATEMENT_READY && s->number > 0) {
                r = fetch_drain(&s->fetch);
                if (r == -EAGAIN) {
                        cursor_life_move(&c->state, CURSOR_DRAINING);
                        return;
                }
                if (r >= 0 && !s->fetch.pipe.at_end_of_file) {
                        send_fetch(c);
                        return;
                }
        }
        r = prepared_prepare(s);
        if (r < 0)
                cursor_fail_send(c, r);
}

static int send_fetch_on_channel(sqlipc_cursor *c, const ParameterRow *row) {
        sqlipc_statement *s = c->statement;
        uint64_t number;
        uint8_t *payload;
        int r;

        if (!prepared_is_on_channel(s)) {
                r = prepared_channel_send(s);
                if (r < 0)
                        return r;
        }
        payload = channel_link_request(s->fetch.link, &s->fetch.channel.reader, REQUEST_FETCH,
                                       CHANNEL_FETCH_HEAD_SIZE + row->size, &number);
        if (!payload)
                return -ENOMEM;
        store_le64(payload, s->channel_number);
        store_le64(payload + 8, cursor_timeout_on_channel(c));
        store_le32(payload + 16, row->n_positional);
        store_le32(payload + 20, row->n_named);
        parameter_row_write(row, payload + CHANNEL_FETCH_HEAD_SIZE);
        fetch_begin(&s->fetch, c, NULL, number);
        return 0;
}

/* The statement is compiled together with the run. */
static void set_ready(sqlipc_statement *s) {
        if (s->state != STATEMENT_READY)
                prepared_life_move(&s->state, STATEMENT_READY);
}

static void start_on_channel(sqlipc_cursor *c, const ParameterRow *row) {
        sqlipc_statement *s = c->statement;
        int r;

        prepared_leave_bus(s);
        fetch_use_channel(&s->fetch);
        set_ready(s);
        r = send_fetch_on_channel(c, row);
        if (r < 0) {
                cursor_fail_send(c, r);
                return;
        }
        c->read_only |= s->fetch.link->read_only;
        cursor_begin(c, SQLIPC_TRANSPORT_CHANNEL);
}

/* Runs the statement by OpenRows, which compiles it for each run: no descriptor is kept for it in between. */
static void start_as_rows(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        const Bindings *b = c->bindings;
        int r;

        prepared_leave_bus(s);
        set_ready(s);
        r = open_rows(c, s->sql, b ? b->values : NULL, b ? b->n_values : 0, s->description.n_parameters);
        if (r < 0)
                cursor_fail_send(c, r);
}

/* Starts a run whose statement is known: checks the parameters here, for all transports. */
static void start_described(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        ChannelLink *ch = s->fetch.link;
        ParameterRow row;
        int r;

        if (check_bindings(c) < 0)
                return;
        r = parameter_row_init(&row, c->bindings ? c->bindings->values : NULL, c->bindings ? c->bindings->n_values : 0,
                               s->description.n_parameters, SQLIPC_ROW_SIZE_MAX);
        if (r < 0) {
                cursor_fail_send(c, r);
                return;
        }
        c->read_only = s->description.read_only;
        switch (cursor_choose_way(c, s->habit.large, row.size)) {
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

/* True if the service refused to keep the statement, because the user has all that it may have. The program did not ask for
 * a statement that is kept, unless it waited for sqlipc_prepare(), so that must not refuse the run. */
static bool is_not_kept(const sqlipc_cursor *c) {
        return c->statement->error.number == ERROR_LIMITS_EXCEEDED && c->connection->transport == SQLIPC_TRANSPORT_AUTO &&
               !c->needs_channel;
}

/* True if the run belongs to no transaction, or to one that is open. Ends the cursor if the transaction has ended. */
static bool check_transaction(sqlipc_cursor *c) {
        Error e;
        int r = c->transaction ? cursor_check_transaction(c, &e) : 1;

        if (r < 0)
                cursor_fail(c, &e);
        return r > 0;
}

/* Runs the statement by OpenRows, for which the service keeps none. The next execution tries to have it kept again. */
static void start_not_kept(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;
        const Bindings *b = c->bindings;
        size_t n_values = b ? b->n_values : 0, n_named = b ? b->n_named : 0;
        _cleanup_free_ Parameter *all = calloc(n_values + n_named + 1, sizeof *all);
        int r = -ENOMEM;

        if (!check_transaction(c))
                return;
        prepared_life_move(&s->state, STATEMENT_LOST);
        cursor_set_read_only(c, s->described && s->description.read_only);
        if (all) {
                for (size_t i = 0; i < n_values; i++)
                        all[i] = b->values[i];
                for (size_t i = 0; i < n_named; i++) /* if it was never compiled, the service looks their names up */
                        all[n_values + i] = b->named[i];
                r = open_rows(c, s->sql, all, n_values + n_named, s->description.n_parameters);
        }
        if (r < 0)
                cursor_fail_send(c, r);
}

static void start_undescribed(sqlipc_cursor *c) {
        int r = c->attempt == ATTEMPT_BUS ? prepared_prepare(c->statement) : prepared_channel_start(c->statement);

        if (r < 0)
                cursor_fail_send(c, r);
        else if (c->statement->state == STATEMENT_FAILED)
                cursor_fail(c, &c->statement->error);
}

/* A statement that needs the pin is compiled there, too. */
static bool has_its_pin(sqlipc_cursor *c) {
        return (!c->pin && (!c->transaction || !c->transaction->is_pin)) || check_transaction(c);
}

/* Advances the statement and the run until something must be waited for, or the run is sent. */
static void start(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;

        prepared_channel_advance(s);
        if (s->state == STATEMENT_FAILED && is_not_kept(c))
                start_not_kept(c);
        else if (s->state == STATEMENT_FAILED)
                cursor_fail(c, &s->error);
        else if (!has_its_pin(c))
                return;
        else if (s->state != STATEMENT_PREPARING && s->described)
                start_described(c);
        else if (s->state != STATEMENT_PREPARING)
                start_undescribed(c);
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
                prepared_life_move(&s->state, STATEMENT_LOST);
        r = cursor_new(&c, connection, s, NULL, start);
        if (r < 0)
                return connection_fail_errno(connection, r);
        if (connection->blocking) {
                r = cursor_next_wait_started(c);
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
