/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point queries to a database server: prepared once, one round trip per query, see point.h. */
#include "tools/bench/workloads/point.h"

typedef struct ServerClient {
        const DatabaseServer *server;
        ServerConnection *connection;
} ServerClient;

static void server_close(void *client) {
        ServerClient *server_client = client;

        server_client->server->close(server_client->connection);
        g_free(server_client);
}

static int server_open(void *userdata, void **ret_client) {
        const Point *point = userdata;
        const DatabaseServer *server = point->server.server;
        g_autofree char *table = database_server_table(POINT_TABLE);
        g_autofree char *sql = g_strdup_printf("SELECT * FROM %s WHERE id = %s", table, server->placeholder);
        ServerClient *client = g_new0(ServerClient, 1);
        int r;

        client->server = server;
        r = server->connect(&point->server, &client->connection);
        if (r >= 0)
                r = server->prepare(client->connection, sql);
        if (r < 0)
                server_close(client);
        else
                *ret_client = client;
        return r;
}

static int ask_one(void *userdata, int64_t key, Copy *copy) {
        const ServerClient *client = userdata;

        return client->server->copy_prepared(client->connection, key, copy);
}

static int server_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(ask_one, client, keys, n, ret_usec, copy);
}

ClientKind point_server(const Point *point) {
        return (ClientKind) {
                .name = point->server.server->name, .open = server_open, .ask = server_ask, .close = server_close,
                .userdata = (void *) point, .answers_rows = true,
        };
}
