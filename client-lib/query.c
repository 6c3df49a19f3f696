/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queries: prepared, run and finalized in one round trip. Library. */
#include <stdarg.h>
#include <string.h>

#include "connection.h"
#include "cursor.h"
#include "statement.h"

/* The run has a pipe, which is closed with the reply: its worker finds that out when it writes, or earlier by this. */
static void undo_query(sd_bus_message *reply, const char *path) {
        uint64_t number;

        if (sd_bus_message_read(reply, "t", &number) > 0)
                call_notify(sd_bus_message_get_bus(reply), sd_bus_message_get_sender(reply), path, "Cancel", number);
}

static int read_reply(sqlipc_cursor *c, sd_bus_message *reply) {
        _cleanup_(description_done) Description description = { .page_size = 0 };
        uint64_t number;
        int fd, r;

        r = sd_bus_message_read(reply, "th", &number, &fd);
        if (r < 0)
                return r;
        r = description_read(&description, reply); /* the columns come again, as this run has them, down the pipe */
        if (r < 0)
                return r;
        r = run_open_pipe(c->run, reply, fd, description.page_size);
        if (r < 0)
                return r;
        c->run->number = number;
        return 0;
}

static void on_query_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_cursor *c = userdata;
        Error e;
        int r;

        c->run->call = call_free(c->run->call);
        if (sd_bus_message_get_error(reply)) {
                c->run->under_way = false;
                (void) error_set_reply(&e, reply);
                cursor_fail(c, &e);
                return;
        }
        r = read_reply(c, reply);
        if (r < 0) {
                (void) error_set_errno(&e, r, NULL);
                cursor_fail(c, &e);
                (void) sd_bus_message_rewind(reply, true);
                undo_query(reply, c->run->path);
        }
}

static int send_query(sqlipc_cursor *c, const char *sql, const sqlipc_parameter *parameters, size_t n_parameters) {
        _cleanup_message_ sd_bus_message *m = NULL;
        Call *call;
        int r;

        r = connection_ensure_bus(c->connection);
        if (r < 0)
                return r;
        r = connection_new_call(c->connection, &m, NULL, c->run->path, "Query");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", sql);
        if (r < 0)
                return r;
        r = append_parameters(m, parameters, n_parameters, 0);
        if (r < 0)
                return r;
        r = call_append_options(m);
        if (r < 0)
                return r;
        r = call_new(&call, c->connection, m, on_query_reply, undo_query, c, UINT64_MAX);
        if (r < 0)
                return r;
        run_begin(c->run, c, call);
        c->state = CURSOR_RUNNING;
        return 0;
}

_public_ int sqlipc_query_with(sqlipc_connection *connection, const char *database, const char *sql,
                               const sqlipc_parameter *parameters, size_t n_parameters, sqlipc_cursor **ret_cursor) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *c = NULL;
        char *path;
        int r;

        if (!connection || !database || !sql || !ret_cursor || (n_parameters > 0 && !parameters))
                return connection_fail_errno(connection, -EINVAL);
        r = check_sql(&connection->error, sql);
        if (r < 0)
                return r;
        r = database_path(database, &path);
        if (r < 0)
                return connection_fail_errno(connection, r);
        r = cursor_new(&c, connection, NULL, path);
        if (r < 0)
                return connection_fail_errno(connection, r);
        r = send_query(c, sql, parameters, n_parameters);
        if (r < 0 && !connection_is_open(connection)) /* sending found out that the bus is gone */
                r = send_query(c, sql, parameters, n_parameters);
        if (r < 0)
                return connection_fail_send(connection, r);
        if (connection->blocking) {
                r = cursor_wait_started(c);
                if (r < 0)
                        return r;
        }
        *ret_cursor = steal(c);
        return 0;
}

/* One argument as its letter says. */
static int take_argument(sqlipc_parameter *ret, char type, va_list *ap) {
        *ret = (sqlipc_parameter) { .type = SQLIPC_NULL };
        switch (type) {
        case 'i':
                ret->type = SQLIPC_INTEGER;
                ret->integer = va_arg(*ap, int64_t);
                return 0;
        case 'd':
                ret->type = SQLIPC_REAL;
                ret->real = va_arg(*ap, double);
                return 0;
        case 's':
                ret->bytes = va_arg(*ap, const char *);
                if (ret->bytes) {
                        ret->type = SQLIPC_TEXT;
                        ret->size = strlen(ret->bytes);
                }
                return 0;
        case 't':
        case 'b':
                ret->type = type == 't' ? SQLIPC_TEXT : SQLIPC_BLOB;
                ret->bytes = va_arg(*ap, const void *);
                ret->size = va_arg(*ap, size_t);
                return 0;
        case 'n':
                return 0;
        default:
                return -EINVAL;
        }
}

_public_ int sqlipc_query(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_cursor **ret_cursor,
                          const char *types, ...) {
        size_t n = types ? strlen(types) : 0;
        _cleanup_free_ sqlipc_parameter *parameters = calloc(n + 1, sizeof *parameters);
        va_list ap;
        int r = 0;

        if (!parameters)
                return connection_fail_errno(connection, -ENOMEM);
        va_start(ap, types);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = take_argument(&parameters[i], types[i], &ap);
        va_end(ap);
        if (r < 0)
                return connection_fail_errno(connection, r);
        return sqlipc_query_with(connection, database, sql, parameters, n, ret_cursor);
}
