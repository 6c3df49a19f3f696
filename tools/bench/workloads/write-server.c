/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writers that use a database server: prepared once, a round trip and a transaction for each row, see write.h. */
#include <errno.h>
#include <stdio.h>

#include "tools/bench/workloads/write.h"

typedef struct ServerWriter {
        const DatabaseServer *server;
        ServerConnection *connection;
} ServerWriter;

/* Connects, and runs statements; the rows of the last one are added to `copy`, unless that is NULL. */
static int run_all(const WriteTarget *target, const char *const *statements, Copy *copy) {
        const DatabaseServer *server = target->server.server;
        ServerConnection *connection = NULL;
        int r = server->connect(&target->server, &connection);

        for (; r >= 0 && *statements; statements++)
                r = copy && !statements[1] ? server->copy(connection, *statements, copy)
                                           : server->execute(connection, *statements);
        server->close(connection);
        return r;
}

static int server_clear(const WriteTarget *target) {
        const DatabaseServer *server = target->server.server;
        g_autofree char *table = database_server_table(WRITE_SERVER_TABLE);
        g_autofree char *drop = g_strdup_printf("DROP TABLE IF EXISTS %s", table);
        g_autofree char *create = g_strdup_printf("CREATE TABLE %s (id %s, n BIGINT, r DOUBLE PRECISION, t TEXT)%s", table,
                                                  server->numbered, server->table_options);
        g_autofree char *index = g_strdup_printf("CREATE INDEX %s_n ON %s (n)", table, table);

        return run_all(target, (const char *const[]) { drop, create, index, NULL }, NULL);
}

static int server_count(const WriteTarget *target, WriteCount *ret) {
        g_autofree char *table = database_server_table(WRITE_SERVER_TABLE);
        g_autofree char *sql = g_strdup_printf("SELECT count(*), count(DISTINCT n) FROM %s", table);
        const uint8_t *values;
        Copy copy = {};
        int r = run_all(target, (const char *const[]) { sql, NULL }, &copy);

        if (r >= 0) { /* two integers, each after its type (copy.h) */
                values = (const uint8_t *) (copy.last + 1);
                memcpy(&ret->n_rows, values + 1, sizeof ret->n_rows);
                memcpy(&ret->n_different, values + 2 + sizeof ret->n_rows, sizeof ret->n_different);
        }
        copy_done(&copy);
        return r;
}

static void server_close(void *userdata) {
        ServerWriter *writer = userdata;

        writer->server->close(writer->connection);
        g_free(writer);
}

static int server_open(const WriteTarget *target, void **ret_writer) {
        const DatabaseServer *server = target->server.server;
        g_autofree char *table = database_server_table(WRITE_SERVER_TABLE);
        g_autofree char *sql = g_strdup_printf("INSERT INTO %s (n, r, t) VALUES (%s, " WRITE_VALUES ")", table,
                                               server->placeholder);
        ServerWriter *writer = g_new0(ServerWriter, 1);
        int r;

        writer->server = server;
        r = server->connect(&target->server, &writer->connection);
        if (r >= 0)
                r = server->prepare(writer->connection, sql);
        if (r < 0)
                server_close(writer);
        else
                *ret_writer = writer;
        return r;
}

static int server_write(void *userdata, int64_t number, const char **ret_message) {
        const ServerWriter *writer = userdata;
        Copy nothing = {};
        int r = writer->server->copy_prepared(writer->connection, number, &nothing);

        *ret_message = "the server's message is above"; /* the driver reports it */
        copy_done(&nothing);
        return r;
}

WriterKind write_server(const WriteTarget *target) {
        return (WriterKind) {
                .name = target->server.server->name, .clear = server_clear, .count = server_count, .open = server_open,
                .write = server_write, .close = server_close, .target = target,
        };
}

char *write_server_durability(const WriteTarget *target) {
        const char *sql = target->server.server->durability;
        char *text = NULL;
        Copy copy = {};
        uint32_t size;

        if (run_all(target, (const char *const[]) { sql, NULL }, &copy) >= 0) { /* a type, a size, the text (copy.h) */
                const uint8_t *value = (const uint8_t *) (copy.last + 1);

                memcpy(&size, value + 1, sizeof size);
                text = g_strndup((const char *) value + 1 + sizeof size, size);
        }
        copy_done(&copy);
        return text;
}

void write_server_drop(const WriteTarget *target) {
        database_server_drop(&target->server, WRITE_SERVER_TABLE);
}
