/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Query and OpenRows (query-call.h). Library. */
#include <string.h>

#include "client-lib/call-file.h"
#include "client-lib/call.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/parameter.h"
#include "client-lib/prepared.h"
#include "client-lib/query-call.h"
#include "client-lib/transact.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

/* Closing the reply also closes a pipe in it. The worker would notice that when it writes; Cancel tells it earlier. */
void query_call_undo(sd_bus_message *reply, const char *path) {
        uint64_t number;

        if (sd_bus_message_read(reply, "t", &number) > 0)
                call_notify(sd_bus_message_get_bus(reply), sd_bus_message_get_sender(reply), path, "Cancel", number);
}

int query_call_new(sqlipc_cursor *c, sd_bus_message **ret, const char *method, const char *sql, const Parameter *parameters,
                   size_t n_parameters, size_t n_positional_min) {
        _cleanup_message_ sd_bus_message *m = NULL;
        bool is_piped = strcmp(method, "Query") == 0;
        _cleanup_(close_file) int fd = -1;
        bool describe = !is_piped || c->connection->describe_option == DESCRIBE_REFUSED;
        int r;

        if (!c->transaction) { /* which no other bus can name */
                r = connection_bus_ensure(c->connection);
                if (r < 0)
                        return r;
        }
        r = connection_bus_new_call(c->connection, &m, c->transaction ? c->transaction->owner : NULL, c->fetch->path,
                                    method);
        if (r < 0)
                return r;
        r = call_file_append(m, connection_bus_descriptors(c->connection) != DESCRIPTORS_NONE, sql, parameters,
                             n_parameters, n_positional_min, &fd);
        if (r < 0)
                return r;
        c->has_file = fd >= 0;
        /* the frames of a pipe describe the rows, so the reply need not wait for that */
        r = call_append_options(c->connection, m, is_piped, describe, c->run_timeout_usec, transact_place(c->transaction),
                                c->fetch->link->foreign_keys, fd);
        if (r < 0)
                return r;
        *ret = steal(m);
        return 0;
}

/* The file of a call (call-file.h), which the call keeps; -1: it has none. Reads its options. */
static int read_file(sd_bus_message *sent, int *ret_fd) {
        const char *key;
        int r = sd_bus_message_enter_container(sent, 'a', "{sv}");

        *ret_fd = -1;
        while (r >= 0 && (r = sd_bus_message_enter_container(sent, 'e', "sv")) > 0) {
                r = sd_bus_message_read(sent, "s", &key);
                if (r >= 0)
                        r = strcmp(key, "arguments") == 0 ? sd_bus_message_read(sent, "v", "h", ret_fd)
                                                          : sd_bus_message_skip(sent, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(sent);
        }
        return r;
}

/* The same SQL and parameters as in `sent`, with the options that hold for the run now. */
static int copy_arguments(const sqlipc_cursor *c, sd_bus_message *sent, const char *owner, bool describe,
                          sd_bus_message **ret) {
        _cleanup_message_ sd_bus_message *m = NULL;
        const char *method = sd_bus_message_get_member(sent);
        int fd, r = connection_bus_new_call(c->connection, &m, owner, c->fetch->path, method);

        if (r >= 0)
                r = sd_bus_message_rewind(sent, true);
        for (unsigned i = 0; r >= 0 && i < 3; i++) /* SQL, positional and named parameters */
                r = sd_bus_message_copy(m, sent, false);
        if (r >= 0)
                r = read_file(sent, &fd);
        if (r >= 0)
                r = call_append_options(c->connection, m, strcmp(method, "Query") == 0, describe, c->run_timeout_usec,
                                        transact_place(c->transaction), c->fetch->link->foreign_keys, fd);
        if (r < 0)
                return r;
        *ret = steal(m);
        return 0;
}

int query_call_copy(const sqlipc_cursor *c, sd_bus_message **ret) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        if (c->transaction)
                return copy_arguments(c, c->sent, c->transaction->owner,
                                      strcmp(sd_bus_message_get_member(c->sent), "Query") != 0 ||
                                              c->connection->describe_option == DESCRIBE_REFUSED,
                                      ret);
        r = connection_bus_new_call(c->connection, &m, NULL, c->fetch->path, sd_bus_message_get_member(c->sent));
        if (r >= 0)
                r = sd_bus_message_rewind(c->sent, true);
        if (r >= 0)
                r = sd_bus_message_copy(m, c->sent, true);
        if (r < 0)
                return r;
        *ret = steal(m);
        return 0;
}

int query_call_send(sqlipc_cursor *c, sd_bus_message *m, call_handler on_reply, sqlipc_transport transport) {
        Call *call;
        int r = call_new(&call, c->connection, m, on_reply, query_call_undo, c, UINT64_MAX);

        if (r < 0)
                return r;
        if (!c->statement) {
                sd_bus_message_unref(c->sent);
                c->sent = sd_bus_message_ref(m);
        }
        fetch_begin(c->fetch, c, call, 0);
        cursor_begin(c, transport);
        return 0;
}

static int append_sql(const sqlipc_cursor *c, sd_bus_message *m) {
        _cleanup_free_ char *sql = NULL;
        int r;

        if (c->sent && c->has_file)
                return -ENODATA;
        if (c->sent) {
                r = sd_bus_message_rewind(c->sent, true);
                return r < 0 ? r : sd_bus_message_copy(m, c->sent, false);
        }
        if (c->statement)
                return sd_bus_message_append(m, "s", c->statement->sql);
        if (!c->query)
                return -ENODATA;
        sql = strndup((const char *) c->query + CHANNEL_QUERY_HEAD_SIZE, load_le32(c->query + 16));
        return sql ? sd_bus_message_append(m, "s", sql) : -ENOMEM;
}

int query_call_prepare(const sqlipc_cursor *c, sd_bus_message **ret) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = connection_bus_new_call(c->connection, &m, NULL, c->fetch->path, "Prepare");

        if (r >= 0)
                r = append_sql(c, m);
        if (r >= 0)
                r = call_append_options(NULL, m, true, true, UINT64_MAX, (CallPlace) {}, FOREIGN_KEYS_CONFIGURED, -1);
        if (r < 0)
                return r;
        *ret = steal(m);
        return 0;
}

int query_call_without_describe(const sqlipc_cursor *c, sd_bus_message *sent, sd_bus_message **ret) {
        return copy_arguments(c, sent, sd_bus_message_get_destination(sent), true, ret);
}
