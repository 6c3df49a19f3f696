/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point queries of a database server: prepared once, a round trip each, see point.h. */
#include "point.h"
#include "sampler.h"

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
        r = server->connect(point->server.where, &client->connection);
        if (r >= 0)
                r = server->prepare(client->connection, sql);
        if (r < 0)
                server_close(client);
        else
                *ret_client = client;
        return r;
}

static int server_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        const ServerClient *server_client = client;
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < n; i++) {
                double start = sampler_now_usec();

                r = server_client->server->copy_prepared(server_client->connection, keys[i], copy);
                ret_usec[i] = sampler_now_usec() - start;
        }
        return r;
}

ClientKind point_server(const Point *point) {
        return (ClientKind) {
                .name = point->server.server->name, .open = server_open, .ask = server_ask, .close = server_close,
                .userdata = (void *) point, .answers_rows = true,
        };
}
