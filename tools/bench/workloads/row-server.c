/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A rival's server on D-Bus, see row-server.h. */
#include "tools/bench/workloads/row-server.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/core/bus-link.h"
#include "tools/bench/workloads/study-session.h"

#define ROW_SERVER_INTERFACE "org.sqlipc1.BenchmarkRows"

enum { PIPE_SIZE = 1024 * 1024 };

typedef struct Server {
        const Transport *transport;
        Source source;
        int code;              /* SQLite's result for the next row: SQLITE_ROW, or the end */
        size_t array_size_max;
        int pipe;              /* the write end; -1: none */
        uint8_t *buffer;       /* for a page */
} Server;

/* ---- Server ------------------------------------------------------------------------------------------------------- */

static int refuse(sd_bus_message *call, int code) {
        return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_FAILED, "%s", sqlite3_errstr(code));
}

static int append_row(sd_bus_message *reply, const Source *source) {
        int r;

        r = sd_bus_message_open_container(reply, 'a', "s");
        for (uint32_t i = 0; r >= 0 && i < source->n_values; i++)
                r = sd_bus_message_append_basic(reply, 's', source->values[i].text);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static size_t row_size(const Source *source) {
        size_t size = sizeof(uint32_t);

        for (uint32_t i = 0; i < source->n_values; i++)
                size += row_server_string_size(source->values[i].size);
        return size;
}

static int append_rows(Server *server, sd_bus_message *reply, uint32_t n) {
        size_t size = 0;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "as");
        for (; r >= 0 && n > 0 && server->code == SQLITE_ROW; n--) {
                size += row_size(&server->source);
                if (size > server->array_size_max)
                        break;
                r = append_row(reply, &server->source);
                server->code = source_next(&server->source);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int answer_fetch(Server *server, sd_bus_message *call) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        uint32_t n;
        int r;

        r = sd_bus_message_read(call, "u", &n);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_rows(server, reply, n);
        if (r < 0)
                return r;
        if (server->code != SQLITE_ROW && server->code != SQLITE_DONE)
                return refuse(call, server->code);
        r = sd_bus_message_append(reply, "b", server->code == SQLITE_ROW);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int prepare(Server *server, sd_bus_message *call) {
        const char *sql;
        int r;

        r = sd_bus_message_read(call, "s", &sql);
        return r < 0 ? r : source_prepare(&server->source, sql);
}

static int answer_prepare(Server *server, sd_bus_message *call) {
        int r;

        r = prepare(server, call);
        if (r != SQLITE_OK)
                return r < 0 ? r : refuse(call, r);
        server->code = source_next(&server->source);
        return sd_bus_reply_method_return(call, NULL);
}

static int answer_prepare_pages(Server *server, sd_bus_message *call) {
        int fds[2], r;

        r = prepare(server, call);
        if (r != SQLITE_OK)
                return r < 0 ? r : refuse(call, r);
        if (server->pipe >= 0)
                close(server->pipe);
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        server->pipe = fds[1];
        (void) fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE); /* may fail if it exceeds the user's limit; then it is slower */
        r = sd_bus_reply_method_return(call, "h", fds[0]);
        close(fds[0]);
        return r;
}

/* Send the reply first, because the pipe does not hold all pages. */
static int answer_fetch_pages(Server *server, sd_bus_message *call) {
        StudyOutput output = { .buffer = server->buffer, .fd = server->pipe };
        StudySink sink = {
                .begin = study_sink_begin_buffer,
                .send = study_sink_send,
                .page_size = server->transport->buffer_size,
                .userdata = &output,
        };
        int r;

        r = sd_bus_reply_method_return(call, NULL);
        if (r >= 0)
                r = sd_bus_flush(sd_bus_message_get_bus(call));
        return r < 0 ? r : study_send_result(&server->source, &sink);
}

static int answer(sd_bus_message *message, void *userdata) {
        static const struct {
                const char *member;
                int (*answer)(Server *server, sd_bus_message *call);
        } methods[] = {
                { "Prepare", answer_prepare },
                { "Fetch", answer_fetch },
                { "PreparePages", answer_prepare_pages },
                { "FetchPages", answer_fetch_pages },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
                if (sd_bus_message_is_method_call(message, ROW_SERVER_INTERFACE, methods[i].member) > 0)
                        return methods[i].answer(userdata, message);
        return 0;
}

/* `fd`: see bus-link.h. */
static int serve(Server *server, bool on_bus, int fd) {
        const BenchOptions *options = server->transport->setup->options;
        int r;

        r = source_open(options->file, &server->source);
        if (r >= 0)
                r = on_bus ? bus_link_serve_on_bus(options, fd, answer, server) : bus_link_serve_direct(fd, answer, server);
        source_close(&server->source);
        return r;
}

static int serve_on_bus(int fd, void *userdata) {
        Transport *transport = userdata;
        g_autofree uint8_t *buffer = g_malloc(transport->buffer_size);
        Server server = {
                .transport = transport,
                .array_size_max = ROW_SERVER_ARRAY_MAX_BUS,
                .pipe = -1,
                .buffer = buffer,
        };

        return serve(&server, true, fd);
}

static int serve_peer(int fd, void *userdata) {
        Server server = { .transport = userdata, .array_size_max = ROW_SERVER_ARRAY_MAX_PEER, .pipe = -1 };

        return serve(&server, false, fd);
}

/* ---- Client ------------------------------------------------------------------------------------------------------- */

int row_server_start(Transport *transport, bool on_bus, RowServer *ret) {
        int r;

        *ret = (RowServer) {};
        r = child_start(SOCK_STREAM, on_bus ? serve_on_bus : serve_peer, transport, &transport->child);
        if (r < 0)
                return transport_failed(transport, r, "cannot start its server");
        r = on_bus ? bus_link_connect_on_bus(transport->setup->options, &transport->child, &ret->bus, &ret->name)
                   : bus_link_connect_direct(&transport->child, &ret->bus);
        return r < 0 ? transport_failed(transport, r, "cannot connect to its server") : 0;
}

void row_server_done(RowServer *server) {
        server->bus = sd_bus_flush_close_unref(server->bus);
        g_clear_pointer(&server->name, g_free);
}

int row_server_call(Transport *transport, RowServer *server, const char *member, sd_bus_message **ret_reply,
                    const char *types, ...) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *call = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        va_list ap;
        int r;

        r = sd_bus_message_new_method_call(server->bus, &call, server->name, "/", ROW_SERVER_INTERFACE, member);
        va_start(ap, types);
        if (r >= 0)
                r = sd_bus_message_appendv(call, types, ap);
        va_end(ap);
        if (r >= 0)
                r = sd_bus_call(server->bus, call, 0, &error, ret_reply);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %s: %s: %s\n", transport->kind->name, member,
                        error.message ?: g_strerror(-r));
        sd_bus_error_free(&error);
        return r;
}
