/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements (prepared.h): compiled by the daemon, and compiled again if the daemon lost them. Library. */
#include <string.h>

#include "client-lib/call-file.h"
#include "client-lib/bindings.h"
#include "client-lib/call.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/description.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/fetch.h"
#include "client-lib/prepared-channel.h"
#include "client-lib/prepared-life.h"
#include "client-lib/prepared.h"
#include "client-lib/transact.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/sqlipc-names.h"

static int read_reply(sqlipc_statement *s, sd_bus_message *reply) {
        _cleanup_(description_done) Description description = { .page_size = 0 };
        uint64_t number;
        int fd, r;

        r = sd_bus_message_read(reply, "th", &number, &fd);
        if (r < 0)
                return r;
        r = description_read(&description, reply);
        if (r < 0)
                return r;
        r = fetch_use_pipe(&s->fetch, reply, fd, description.page_size);
        if (r < 0)
                return r;
        description_done(&s->description);
        s->description = description;
        description = (Description) { .page_size = 0 };
        s->number = number;
        s->described = true;
        return 0;
}

void prepared_undo(sd_bus_message *reply, const char *path) {
        uint64_t number;

        if (sd_bus_message_read(reply, "t", &number) > 0)
                call_notify(sd_bus_message_get_bus(reply), sd_bus_message_get_sender(reply), path, "Finalize", number);
}

static int send_prepare(sqlipc_statement *s);

/* Asks once more, because the service is older than the option. */
static bool prepare_without_cached(sqlipc_statement *s, sd_bus_message *reply) {
        if (!s->asks_cached || !sd_bus_message_is_method_error(reply, SQLIPC_ERROR_PREFIXED(UnknownOption)))
                return false;
        s->connection->without_cached = true;
        return send_prepare(s) >= 0;
}

static void on_prepare_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_statement *s = userdata;
        int r;

        s->prepare = call_free(s->prepare);
        if (prepare_without_cached(s, reply))
                return;
        if (sd_bus_message_get_error(reply)) {
                (void) error_set_reply(&s->error, reply);
                transact_on_failure_of_pin(s->connection, s->pin_id, &s->error);
                if (!prepared_take_pin(s))
                        prepared_fail(s);
                return;
        }
        r = read_reply(s, reply);
        if (r >= 0) {
                prepared_life_move(&s->state, STATEMENT_READY);
                return;
        }
        (void) error_set_errno(&s->error, r, NULL);
        prepared_fail(s);
        (void) sd_bus_message_rewind(reply, true);
        prepared_undo(reply, s->fetch.path);
}

bool prepared_take_pin(sqlipc_statement *s) {
        if (s->error.number != ERROR_NEEDS_PIN || s->pin_id > 0 ||
            transact_take_pin(s->connection, s->fetch.path, &s->pin, &s->error) < 0)
                return false;
        if (s->cursor && s->cursor->state != CURSOR_DONE)
                cursor_use_pin(s->cursor, s->pin);
        return true;
}

void prepared_fail(sqlipc_statement *s) {
        if (s->state != STATEMENT_FAILED)
                prepared_life_move(&s->state, STATEMENT_FAILED);
}

void prepared_leave_bus(sqlipc_statement *s) {
        s->prepare = call_free(s->prepare);
        fetch_stop(&s->fetch);
        if (s->number) {
                call_notify(s->connection->bus, s->fetch.pipe.source.owner, s->fetch.path, "Finalize", s->number);
                event_loop_update(s->connection);
        }
        s->number = 0;
}

bool prepared_is_on_channel(const sqlipc_statement *s) {
        const ChannelLink *ch = s->fetch.link;

        return s->channel_number > 0 && ch->state == CHANNEL_LINK_OPEN && s->channel_generation == ch->generation;
}

/* Gives back everything that the daemon and its workers hold for the statement. */
static void release(sqlipc_statement *s) {
        s->pin = transact_unref(s->pin);
        prepared_leave_bus(s);
        if (prepared_is_on_channel(s))
                channel_link_finalize(s->fetch.link, s->channel_number);
        s->channel_number = 0;
}

/* The library prepares a statement again if the service has released it, so the program never asks for one to be kept. */
static int send_prepare(sqlipc_statement *s) {
        _cleanup_message_ sd_bus_message *m = NULL;
        const sqlipc_transaction *pin = transact_pin_of(s->connection, s->fetch.path);
        int r;

        if (strlen(s->sql) > MESSAGE_PREPARE_MAX)
                return -E2BIG;
        r = connection_bus_new_call(s->connection, &m, pin ? pin->owner : NULL, s->fetch.path, "Prepare");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", s->sql);
        if (r < 0)
                return r;
        s->pin_id = pin ? pin->pin_id : 0;
        s->asks_cached = !s->connection->without_cached;
        r = call_append_prepare_options(s->connection, m, s->asks_cached, transact_place(pin));
        if (r < 0)
                return r;
        return call_new(&s->prepare, s->connection, m, on_prepare_reply, prepared_undo, s, UINT64_MAX);
}

int prepared_prepare(sqlipc_statement *s) {
        int r;

        release(s);
        if (s->state != STATEMENT_LOST)
                prepared_life_move(&s->state, STATEMENT_LOST);
        s->n_interrupts = connection_interrupts(s->connection);
        r = connection_bus_ensure(s->connection);
        if (r < 0)
                return r;
        r = send_prepare(s);
        if (connection_bus_may_send_again(s->connection, r)) {
                r = connection_bus_ensure(s->connection);
                if (r < 0)
                        return r;
                r = send_prepare(s);
        }
        if (r < 0)
                return r;
        prepared_life_move(&s->state, STATEMENT_PREPARING);
        return 0;
}

void prepared_interrupt(sqlipc_statement *s) {
        if (s->channel_number > 0)
                channel_link_cancel(s->fetch.link, &s->fetch.channel.reader);
        release(s);
        (void) error_set(&s->error, ERROR_CANCELLED, "The statement was interrupted while it was compiled.");
        prepared_fail(s);
}

void prepared_lose(sqlipc_statement *s) {
        release(s);
        if (s->state == STATEMENT_READY)
                prepared_life_move(&s->state, STATEMENT_LOST);
}

/* ---- As a member of the connection -------------------------------------------------------------------------------- */

/* Gives back what the service holds for the statement, which fails with -ENOTCONN from now on. */
static void on_connection_closed(Member *member) {
        sqlipc_statement *s = (sqlipc_statement *) member;

        release(s);
        (void) error_set_errno(&s->error, -ENOTCONN, "The connection was closed.");
        prepared_fail(s);
}

static void on_bus_lost(Member *member) {
        sqlipc_statement *s = (sqlipc_statement *) member;

        if (s->state == STATEMENT_READY && s->number > 0)
                prepared_life_move(&s->state, STATEMENT_LOST); /* a cursor may still read the pipe */
        s->number = 0;
}

static const void *descriptor_owner(const Member *member) {
        return fetch_descriptor_owner(&((const sqlipc_statement *) member)->fetch);
}

static bool call_back(Member *member) {
        sqlipc_statement *s = (sqlipc_statement *) member;

        if (!s->on_ready)
                return false;
        s->on_ready(s, s->on_ready_userdata); /* may free it */
        return true;
}

static const MemberOperations member_operations = {
        .close = on_connection_closed,
        .on_bus_lost = on_bus_lost,
        .descriptor_owner = descriptor_owner,
        .call_back = call_back,
};

/* ---- What programs call ------------------------------------------------------------------------------------------- */

static int statement_new(sqlipc_statement **ret, sqlipc_connection *c, const char *database, const char *sql) {
        _cleanup_free_ char *path = NULL, *copy = strdup(sql);
        sqlipc_statement *s;
        ChannelLink *channel;
        int r;

        r = call_database_path(database, &path);
        if (r < 0)
                return r;
        channel = channel_link_get(c, path);
        s = malloc(sizeof *s);
        if (!s || !copy || !channel) {
                free(s);
                return -ENOMEM;
        }
        *s = (sqlipc_statement) { .member.operations = &member_operations, .connection = sqlipc_connection_ref(c),
                                  .state = STATEMENT_LOST, .sql = steal(copy), .reported = { .sql_offset = -1 } };
        fetch_init(&s->fetch, c, steal(path), channel);
        TAILQ_INSERT_HEAD(&c->statements, &s->member, link);
        *ret = s;
        return 0;
}

/* Waits until the statement is compiled or failed. */
static int wait_ready(sqlipc_statement *s) {
        uint64_t deadline = connection_answer_deadline(s->connection);
        int r;

        for (;;) {
                connection_be_patient(s->connection);
                prepared_channel_advance(s);
                connection_look_at_bus(s->connection);
                if (s->state != STATEMENT_PREPARING)
                        break;
                r = connection_wait(s->connection, prepared_channel_pollfd(s), &deadline);
                if (r < 0)
                        return connection_fail_wait(s->connection, r);
        }
        return s->state == STATEMENT_FAILED ? connection_fail(s->connection, &s->error) : 0;
}

static int prepare(sqlipc_connection *connection, const char *database, const char *sql,
                   sqlipc_statement **ret_statement) {
        _cleanup_(sqlipc_finalizep) sqlipc_statement *s = NULL;
        int r;

        r = connection_check(connection);
        if (r < 0)
                return r;
        r = call_check_sql(&connection->error, sql);
        if (r < 0)
                return r;
        r = statement_new(&s, connection, database, sql);
        if (r < 0)
                return connection_fail_errno(connection, r);
        r = prepared_channel_start(s);
        if (r < 0)
                return connection_fail_send(connection, r);
        if (connection->blocking) {
                r = wait_ready(s);
                if (r < 0)
                        return r;
        }
        *ret_statement = steal(s);
        return 0;
}

_public_ int sqlipc_prepare(sqlipc_connection *connection, const char *database, const char *sql,
                            sqlipc_statement **ret_statement) {
        _cleanup_(sqlipc_connection_unrefp) sqlipc_connection *kept = NULL;
        int r;

        if (!connection || !database || !sql || !ret_statement)
                return connection_fail_errno(connection, -EINVAL);
        kept = sqlipc_connection_ref(connection); /* a handler may close it */
        r = prepare(connection, database, sql, ret_statement);
        if (r < 0 && connection->blocking) {
                r = transact_ask_to_write(connection, database);
                if (r == 0)
                        r = prepare(connection, database, sql, ret_statement);
        }
        return r;
}

_public_ sqlipc_statement *sqlipc_finalize(sqlipc_statement *s) {
        sqlipc_connection *connection;

        if (!s)
                return NULL;
        connection = s->connection;
        if (s->cursor)
                cursor_detach(s->cursor);
        release(s);
        TAILQ_REMOVE(&connection->statements, &s->member, link);
        fetch_done(&s->fetch);
        description_done(&s->description);
        (void) bindings_unref(s->bindings);
        free(s->sql);
        free(s);
        (void) sqlipc_connection_unref(connection);
        return NULL;
}

_public_ void sqlipc_finalizep(sqlipc_statement **statement) {
        (void) sqlipc_finalize(*statement);
}

int prepared_report(sqlipc_statement *s, int r) {
        if (r < 0)
                s->reported = s->connection->error;
        return r;
}

/* Not ready: arranges that the program's loop wakes when there is news. */
static int statement_wait(sqlipc_statement *s) {
        int r;

        s->member.wait = MEMBER_WAITS;
        r = fetch_wait(&s->fetch, prepared_channel_pollfd(s));
        return r < 0 ? connection_fail_errno(s->connection, r) : 0;
}

_public_ int sqlipc_statement_is_ready(sqlipc_statement *s) {
        if (!s)
                return -EINVAL;
        s->connection->patient = false;
        prepared_channel_advance(s);
        switch (s->state) {
        case STATEMENT_PREPARING:
                return prepared_report(s, statement_wait(s));
        case STATEMENT_FAILED:
                return prepared_report(s, connection_fail(s->connection, &s->error));
        case STATEMENT_READY:
        case STATEMENT_LOST:
        case STATEMENT_STATE_MAX:
                break;
        }
        return 1;
}

_public_ int sqlipc_statement_set_ready_callback(sqlipc_statement *statement, sqlipc_statement_callback callback,
                                                 void *userdata) {
        if (!statement)
                return -EINVAL;
        statement->on_ready = callback;
        statement->on_ready_userdata = userdata;
        return 0;
}

_public_ int sqlipc_statement_is_readonly(sqlipc_statement *s) {
        return s && s->description.read_only;
}

_public_ unsigned sqlipc_statement_column_count(sqlipc_statement *s) {
        return s ? s->description.n_columns : 0;
}

_public_ const char *sqlipc_statement_column_name(sqlipc_statement *s, unsigned column) {
        return s && column < s->description.n_columns ? s->description.columns[column].name : NULL;
}

_public_ const char *sqlipc_statement_column_decltype(sqlipc_statement *s, unsigned column) {
        return s && column < s->description.n_columns ? s->description.columns[column].declared_type : NULL;
}

_public_ unsigned sqlipc_statement_parameter_count(sqlipc_statement *s) {
        return s ? s->description.n_parameters : 0;
}

_public_ const char *sqlipc_statement_parameter_name(sqlipc_statement *s, unsigned index) {
        return s && index >= 1 && index <= s->description.n_parameters ? s->description.parameters[index - 1] : NULL;
}

unsigned prepared_look_up(void *statement, const char *name) {
        const Description *d = &((sqlipc_statement *) statement)->description;
        unsigned found = 0;

        for (unsigned i = 0; i < d->n_parameters; i++) {
                const char *parameter = d->parameters[i];

                if (parameter && strcmp(parameter, name) == 0)
                        return i + 1;
        }
        for (unsigned i = 0; i < d->n_parameters; i++) {
                const char *parameter = d->parameters[i];

                if (!parameter || strcmp(parameter + 1, name) != 0)
                        continue;
                if (found)
                        return 0;
                found = i + 1;
        }
        return found;
}

_public_ unsigned sqlipc_statement_parameter_index(sqlipc_statement *s, const char *name) {
        return s && name ? prepared_look_up(s, name) : 0;
}
