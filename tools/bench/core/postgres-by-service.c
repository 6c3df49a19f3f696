/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PostgreSQL by sqlipc: the service publishes the server with Engine=postgresql, see database-server.h. */
#include <glib.h>

#include "tools/bench/core/database-server.h"
#include "tools/bench/core/library.h"

struct ServerConnection {
        sqlipc_connection *connection;
        sqlipc_statement *statement; /* NULL: none prepared */
        const char *database;        /* borrowed */
};

static ServerConnection *server_close(ServerConnection *connection) {
        if (!connection)
                return NULL;
        sqlipc_finalize(connection->statement);
        sqlipc_close(connection->connection);
        g_free(connection);
        return NULL;
}

static int server_connect(const DatabaseServerChoice *choice, ServerConnection **ret) {
        ServerConnection *connection = g_new0(ServerConnection, 1);
        int r = library_open(choice->options, SQLIPC_TRANSPORT_AUTO, &connection->connection);

        connection->database = choice->where;
        if (r < 0)
                server_close(connection);
        else
                *ret = connection;
        return r;
}

static int copy_rows(ServerConnection *connection, int r, sqlipc_cursor *cursor, const char *sql, Copy *copy) {
        if (r >= 0)
                r = library_copy_rows(cursor, copy);
        if (r < 0)
                library_failed(connection->connection, r, sql);
        sqlipc_cursor_close(cursor);
        return r;
}

static int server_copy(ServerConnection *connection, const char *sql, Copy *copy) {
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_query(connection->connection, connection->database, sql, &cursor, NULL);

        return copy_rows(connection, r, cursor, sql, copy);
}

static int server_execute(ServerConnection *connection, const char *sql) {
        Copy nothing = {};
        int r = server_copy(connection, sql, &nothing);

        copy_done(&nothing);
        return r;
}

static int server_copy_table(ServerConnection *connection, const char *table, Copy *copy) {
        g_autofree char *sql = g_strconcat("SELECT * FROM ", table, NULL);

        return server_copy(connection, sql, copy);
}

static int server_prepare(ServerConnection *connection, const char *sql) {
        int r = sqlipc_prepare(connection->connection, connection->database, sql, &connection->statement);

        return r < 0 ? library_failed(connection->connection, r, sql) : 0;
}

static int server_copy_prepared(ServerConnection *connection, int64_t key, Copy *copy) {
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_bind_int64(connection->statement, 1, key);

        if (r >= 0)
                r = sqlipc_execute(connection->statement, &cursor);
        return copy_rows(connection, r, cursor, "the prepared statement", copy);
}

/* Its processes are those of the service and of the server. */
static pid_t server_get_pid(ServerConnection *connection) {
        (void) connection;
        return 0;
}

const DatabaseServer database_server_by_service = {
        .name = "PostgreSQL by sqlipc",
        .by_service = true,
        .placeholder = "?1",
        .table_options = "",
        .numbered = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        .durability = "SELECT 'those of PostgreSQL'",
        .settle = "ANALYZE",
        .connect = server_connect,
        .close = server_close,
        .get_pid = server_get_pid,
        .execute = server_execute,
        .copy = server_copy,
        .copy_table = server_copy_table,
        .table_way = "one query",
        .prepare = server_prepare,
        .copy_prepared = server_copy_prepared,
};
