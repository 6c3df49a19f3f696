/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point queries with rows as values in D-Bus messages (QueryRows), see point.h. */
#include <errno.h>
#include <stdio.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/workloads/point.h"

typedef struct MessagesClient {
        sd_bus *bus;
        char *path; /* of the database's object */
} MessagesClient;

static void messages_close(void *client) {
        MessagesClient *messages = client;

        sd_bus_flush_close_unref(messages->bus);
        g_free(messages->path);
        g_free(messages);
}

static int failed(int r, const sd_bus_error *error) {
        fprintf(stderr, "sqlipc-bench: QueryRows: %s\n", error && error->message ? error->message : g_strerror(-r));
        return r;
}

static int messages_open(void *userdata, void **ret_client) {
        const Point *point = userdata;
        MessagesClient *client = g_new0(MessagesClient, 1);
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        __attribute__((cleanup(sd_bus_error_free))) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path;
        int r;

        r = bench_service_open_bus(point->options, &client->bus);
        if (r >= 0)
                r = sd_bus_call_method(client->bus, "org.sqlipc1", "/org/sqlipc1", "org.sqlipc1.Manager", "GetDatabase",
                                       &error, &reply, "sa{sv}", point->options->database, 0);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r < 0) {
                messages_close(client);
                return failed(r, &error);
        }
        client->path = g_strdup(path);
        *ret_client = client;
        return 0;
}

/* Copies one variant. Every TEXT of the dataset is a valid D-Bus string. */
static int copy_value(sd_bus_message *reply, Copy *copy) {
        const char *contents, *text;
        int64_t integer;
        double real;
        char type;
        int r;

        r = sd_bus_message_peek_type(reply, &type, &contents);
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(reply, 'v', contents);
        if (r < 0)
                return r;
        switch (*contents) {
        case 'x':
                r = sd_bus_message_read_basic(reply, 'x', &integer);
                if (r >= 0)
                        copy_integer(copy, integer);
                break;
        case 'd':
                r = sd_bus_message_read_basic(reply, 'd', &real);
                if (r >= 0)
                        copy_real(copy, real);
                break;
        case 's':
                r = sd_bus_message_read_basic(reply, 's', &text);
                if (r >= 0)
                        copy_bytes(copy, SQLIPC_TEXT, text, strlen(text));
                break;
        default:
                r = -EBADMSG;
        }
        return r < 0 ? r : sd_bus_message_exit_container(reply);
}

static int copy_rows(sd_bus_message *reply, Copy *copy) {
        int r;

        r = sd_bus_message_skip(reply, "a(ssa{sv})");
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "av");
        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'a', "v")) > 0) {
                while (r >= 0 && (r = sd_bus_message_at_end(reply, 0)) == 0)
                        r = copy_value(reply, copy);
                if (r >= 0)
                        r = sd_bus_message_exit_container(reply);
                copy->n_rows++;
        }
        return r;
}

static int ask_one(void *userdata, int64_t key, Copy *copy) {
        MessagesClient *client = userdata;
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        __attribute__((cleanup(sd_bus_error_free))) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_call_method(client->bus, "org.sqlipc1", client->path, "org.sqlipc1.Database", "QueryRows", &error, &reply,
                               "sava{sv}a{sv}", POINT_SQL, 1, "x", key, 0, 0);
        if (r >= 0)
                r = copy_rows(reply, copy);
        return r < 0 ? failed(r, &error) : 0;
}

static int messages_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(ask_one, client, keys, n, ret_usec, copy);
}

ClientKind point_messages(const Point *point) {
        return (ClientKind) {
                .name = "D-Bus messages", .open = messages_open, .ask = messages_ask, .close = messages_close,
                .userdata = (void *) point, .answers_rows = true,
        };
}
