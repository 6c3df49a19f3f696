/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queries (sqlipc.h): prepared, run and finalized in one round trip. Library. */
#include <stdarg.h>
#include <string.h>

#include "client-lib/arguments.h"
#include "client-lib/call.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/cursor-event.h"
#include "client-lib/cursor-next.h"
#include "client-lib/cursor.h"
#include "client-lib/description.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/open-rows.h"
#include "client-lib/parameter-row.h"
#include "client-lib/parameter.h"
#include "client-lib/query-call.h"
#include "client-lib/query.h"
#include "client-lib/transact.h"
#include "client-lib/transport.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/call-arguments.h"

static int read_reply(sqlipc_cursor *c, sd_bus_message *reply) {
        _cleanup_(description_done) Description description = { .page_size = 0 };
        uint64_t number;
        int fd, r;

        r = sd_bus_message_read(reply, "th", &number, &fd);
        if (r < 0)
                return r;
        r = description_read(&description, reply); /* the run's own columns come again through the pipe */
        if (r < 0)
                return r;
        r = fetch_use_pipe(c->fetch, reply, fd, description.page_size);
        if (r < 0)
                return r;
        fetch_set_number(c->fetch, number);
        c->fetch->pipe.starts_in_frames = description.not_started;
        cursor_set_read_only(c, description.read_only);
        return 0;
}

static void on_query_reply(sd_bus_message *reply, void *userdata);

/* Sends the query again if the service refused the option `describe`. The refused call had not begun. */
static bool send_without_describe(sqlipc_cursor *c, sd_bus_message *reply) {
        _cleanup_message_ sd_bus_message *m = NULL;

        if (c->connection->describe_option != DESCRIBE_UNTRIED || c->has_file ||
            !sd_bus_message_is_method_error(reply, SQLIPC_ERROR_PREFIXED(UnknownOption)))
                return false;
        c->connection->describe_option = DESCRIBE_REFUSED;
        if (cursor_is_cancelled(c)) {
                cursor_end(c, CURSOR_END_CANCELLED);
                return true;
        }
        if (query_call_without_describe(c, c->sent, &m) < 0 ||
            call_new(&c->fetch->source->call, c->connection, m, on_query_reply, query_call_undo, c, UINT64_MAX) < 0)
                return false;
        sd_bus_message_unref(c->sent);
        c->sent = steal(m);
        return true;
}

static void on_query_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_cursor *c = userdata;
        Error e;
        int r;

        c->fetch->source->call = call_free(c->fetch->source->call);
        if (send_without_describe(c, reply) || cursor_event_ask_if_it_reads(c, reply))
                return;
        if (sd_bus_message_get_error(reply)) {
                fetch_set_ended(c->fetch);
                cursor_fail_reply(c, reply);
                return;
        }
        if (c->connection->describe_option == DESCRIBE_UNTRIED)
                c->connection->describe_option = DESCRIBE_KNOWN;
        r = read_reply(c, reply);
        if (r < 0) {
                (void) error_set_errno(&e, r, NULL);
                cursor_fail(c, &e);
                (void) sd_bus_message_rewind(reply, true);
                query_call_undo(reply, c->fetch->path);
        }
}

static int send_query(sqlipc_cursor *c, const char *sql, const Parameter *parameters, size_t n_parameters) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = query_call_new(c, &m, "Query", sql, parameters, n_parameters, 0);

        return r < 0 ? r : query_call_send(c, m, on_query_reply, SQLIPC_TRANSPORT_PIPE);
}

/* `way`: WAY_BUS or WAY_ROWS. */
static int send_on_bus(sqlipc_cursor *c, Way way, const char *sql, const Parameter *parameters, size_t n_parameters) {
        int r;

        cursor_set_read_only(c, false); /* until the reply says so */
        if (way == WAY_ROWS)
                return open_rows(c, sql, parameters, n_parameters, 0);
        r = send_query(c, sql, parameters, n_parameters);
        if (!c->transaction && connection_bus_may_send_again(c->connection, r))
                r = send_query(c, sql, parameters, n_parameters);
        return r;
}

/* ---- On a channel ------------------------------------------------------------------------------------------------- */

/* Keeps a query as the payload of QUERY, because it may have to be sent more than once. */
static int keep_query(sqlipc_cursor *c, const char *sql, const ParameterRow *row) {
        size_t sql_size = strlen(sql);

        /* what is too large for a channel goes to the bus in a file */
        if (row->size >= CALL_ARGUMENTS_SIZE_MAX / 2 || sql_size >= CALL_ARGUMENTS_SIZE_MAX / 2)
                return -E2BIG;
        c->query_size = CHANNEL_QUERY_HEAD_SIZE + sql_size + row->size;
        c->query = malloc(c->query_size);
        if (!c->query)
                return -ENOMEM;
        store_le64(c->query, cursor_timeout_on_channel(c));
        store_le32(c->query + 8, row->n_positional);
        store_le32(c->query + 12, row->n_named);
        store_le32(c->query + 16, (uint32_t) sql_size);
        store_le32(c->query + 20, 0);
        memcpy(c->query + CHANNEL_QUERY_HEAD_SIZE, sql, sql_size);
        parameter_row_write(row, c->query + CHANNEL_QUERY_HEAD_SIZE + sql_size);
        return 0;
}

static int send_on_channel(sqlipc_cursor *c) {
        uint64_t number;
        uint8_t *payload;

        fetch_use_channel(c->fetch);
        payload = channel_link_request(c->fetch->link, &c->fetch->channel.reader, REQUEST_QUERY, c->query_size, &number);
        if (!payload)
                return -ENOMEM;
        memcpy(payload, c->query, c->query_size);
        fetch_begin(c->fetch, c, NULL, number);
        cursor_set_read_only(c, c->fetch->link->read_only);
        cursor_begin(c, SQLIPC_TRANSPORT_CHANNEL);
        return 0;
}

/* Sends a query that was kept for a channel over the bus. */
static int send_kept_on_bus(sqlipc_cursor *c, Way way) {
        size_t sql_size = load_le32(c->query + 16);
        unsigned n_positional = load_le32(c->query + 8), n_named = load_le32(c->query + 12);
        const uint8_t *text = c->query + CHANNEL_QUERY_HEAD_SIZE;
        _cleanup_free_ char *sql = strndup((const char *) text, sql_size);
        _cleanup_free_ Parameter *parameters = NULL;
        int r;

        if (!sql)
                return -ENOMEM;
        r = parameter_row_read(text + sql_size, n_positional, n_named, &parameters);
        if (r < 0)
                return r;
        return send_on_bus(c, way, sql, parameters, (size_t) n_positional + n_named);
}

static Way choose(sqlipc_cursor *c, size_t size) {
        return cursor_choose_way(c, transport_is_large(c->fetch->link, NULL, c->sql_sum), size);
}

/* Sends a query whose payload is kept. */
static void start_kept(sqlipc_cursor *c) {
        Way way = choose(c, c->query_size - CHANNEL_QUERY_HEAD_SIZE);
        int r = 0;

        switch (way) {
        case WAY_BUS:
        case WAY_ROWS:
                r = send_kept_on_bus(c, way);
                break;
        case WAY_CHANNEL:
                r = send_on_channel(c);
                break;
        case WAY_WAIT:
                return;
        case WAY_NONE:
                cursor_fail(c, &c->fetch->link->error);
                return;
        }
        if (r < 0)
                cursor_fail_send(c, r);
}

/* Sends a query again that was lost before it gave a row, and changes nothing. */
static void restart(sqlipc_cursor *c) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = connection_bus_ensure(c->connection);

        if (r >= 0)
                r = query_call_copy(c, &m);
        if (r >= 0 && strcmp(sd_bus_message_get_member(m), "OpenRows") == 0)
                r = open_rows_send(c, m);
        else if (r >= 0)
                r = query_call_send(c, m, on_query_reply, SQLIPC_TRANSPORT_PIPE);
        if (r < 0)
                cursor_fail_send(c, r);
}

/* Sends a query whose call or payload is kept. */
static void start(sqlipc_cursor *c) {
        Error e;
        int r = c->sent && c->transaction ? cursor_check_transaction(c, &e) : 1;

        if (r < 0)
                cursor_fail(c, &e);
        if (r <= 0)
                return;
        if (c->sent)
                restart(c);
        else
                start_kept(c);
}

/* Sends the query, or keeps it until it can be sent. */
static int begin_query(sqlipc_cursor *c, const char *sql, const Parameter *parameters, size_t n_parameters) {
        ParameterRow row;
        Way way;
        int r;

        r = parameter_row_init(&row, parameters, n_parameters, 0, SQLIPC_ROW_SIZE_MAX);
        if (r < 0)
                return r;
        c->sql_sum = transport_sql_sum(sql);
        way = choose(c, row.size + strlen(sql));
        if (way == WAY_BUS || way == WAY_ROWS)
                return send_on_bus(c, way, sql, parameters, n_parameters);
        r = keep_query(c, sql, &row);
        if (r < 0)
                return r;
        cursor_advance(c);
        return 0;
}

/* Creates the cursor of a query, and sends the query if it can be sent now. `parameters`: in the internal form. `alone`: not
 * in a transaction, or on a pin. */
static int new_query(sqlipc_connection *connection, const char *database, const char *sql, const Parameter *parameters,
                     size_t n_parameters, bool alone, sqlipc_cursor **ret_cursor) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *c = NULL;
        char *path;
        int r;

        r = connection_check(connection);
        if (r < 0)
                return r;
        r = call_check_sql(&connection->error, sql);
        if (r < 0)
                return r;
        r = call_database_path(database, &path);
        if (r < 0)
                return connection_fail_errno(connection, r);
        r = cursor_new(&c, connection, NULL, path, start);
        if (r < 0)
                return connection_fail_errno(connection, r);
        c->alone = alone;
        if (alone && c->transaction) {
                c->transaction = transact_unref(c->transaction);
                c->attempt = ATTEMPT_ANY;
        }
        r = begin_query(c, sql, parameters, n_parameters);
        if (r < 0) {
                (void) connection_fail_send(connection, r);
                if (c->transaction)
                        transact_on_failure(c->transaction, &connection->error);
                return connection_fail(connection, &connection->error);
        }
        *ret_cursor = steal(c);
        return 0;
}

int query_begin_alone(sqlipc_connection *connection, const char *database, const char *sql, const Parameter *parameters,
                      size_t n_parameters, sqlipc_cursor **ret_cursor) {
        return new_query(connection, database, sql, parameters, n_parameters, true, ret_cursor);
}

static int query_with(sqlipc_connection *connection, const char *database, const char *sql, const Parameter *parameters,
                      size_t n_parameters, sqlipc_cursor **ret_cursor) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *c = NULL;
        int r;

        r = new_query(connection, database, sql, parameters, n_parameters, false, &c);
        if (r < 0)
                return r;
        if (connection->blocking) {
                r = cursor_next_wait_started(c);
                if (r < 0)
                        return r;
        }
        *ret_cursor = steal(c);
        return 0;
}

/* Without blocking, the refusal comes later. A handler may close the connection meanwhile. */
static int query_or_ask(sqlipc_connection *connection, const char *database, const char *sql, const Parameter *parameters,
                        size_t n_parameters, sqlipc_cursor **ret_cursor) {
        _cleanup_(sqlipc_connection_unrefp) sqlipc_connection *kept = NULL;
        int r;

        kept = sqlipc_connection_ref(connection);
        r = query_with(connection, database, sql, parameters, n_parameters, ret_cursor);
        if (r < 0 && connection->blocking) {
                r = transact_ask_to_write(connection, database);
                if (r == 0)
                        r = query_with(connection, database, sql, parameters, n_parameters, ret_cursor);
        }
        return r;
}

_public_ int sqlipc_query_with(sqlipc_connection *connection, const char *database, const char *sql,
                               const sqlipc_parameter *parameters, size_t n_parameters, sqlipc_cursor **ret_cursor) {
        _cleanup_free_ Parameter *read = NULL;
        int r;

        if (!connection || !database || !sql || !ret_cursor || (n_parameters > 0 && !parameters))
                return connection_fail_errno(connection, -EINVAL);
        r = parameter_read_all(parameters, n_parameters, &read);
        if (r < 0)
                return connection_fail_send(connection, r);
        return query_or_ask(connection, database, sql, read, n_parameters, ret_cursor);
}

_public_ int sqlipc_query(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_cursor **ret_cursor,
                          const char *types, ...) {
        _cleanup_free_ Parameter *parameters = NULL;
        size_t n;
        va_list ap;
        int r;

        if (!connection || !database || !sql || !ret_cursor)
                return connection_fail_errno(connection, -EINVAL);
        va_start(ap, types);
        r = arguments_read(types, &ap, &parameters, &n);
        va_end(ap);
        if (r < 0)
                return connection_fail_errno(connection, r);
        return query_or_ask(connection, database, sql, parameters, n, ret_cursor);
}

static int exec_with(sqlipc_connection *connection, const char *database, const char *sql, const Parameter *parameters,
                     size_t n_parameters, int64_t *ret_changes) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *c = NULL;
        int r;

        r = new_query(connection, database, sql, parameters, n_parameters, false, &c);
        if (r < 0)
                return r;
        r = cursor_next_wait_ended(c);
        if (r < 0)
                return r;
        if (ret_changes)
                *ret_changes = sqlipc_cursor_changes(c);
        return 0;
}

_public_ int sqlipc_exec_with(sqlipc_connection *connection, const char *database, const char *sql,
                              const sqlipc_parameter *parameters, size_t n_parameters, int64_t *ret_changes) {
        _cleanup_(sqlipc_connection_unrefp) sqlipc_connection *kept = NULL;
        _cleanup_free_ Parameter *read = NULL;
        int r;

        if (!connection || !database || !sql || (n_parameters > 0 && !parameters))
                return connection_fail_errno(connection, -EINVAL);
        if (connection->dispatching) /* a handler cannot wait for the answer, so nothing may be sent */
                return connection_fail_errno(connection, -EBUSY);
        r = parameter_read_all(parameters, n_parameters, &read);
        if (r < 0)
                return connection_fail_send(connection, r);
        kept = sqlipc_connection_ref(connection); /* a handler may close it */
        r = exec_with(connection, database, sql, read, n_parameters, ret_changes);
        if (r < 0) {
                r = transact_ask_to_write(connection, database);
                if (r == 0)
                        r = exec_with(connection, database, sql, read, n_parameters, ret_changes);
        }
        return r;
}

_public_ int sqlipc_exec(sqlipc_connection *connection, const char *database, const char *sql, int64_t *ret_changes) {
        return sqlipc_exec_with(connection, database, sql, NULL, 0, ret_changes);
}
