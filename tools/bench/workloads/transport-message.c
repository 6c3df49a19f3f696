/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows in D-Bus messages, as arrays of arrays of strings, through a bus and from peer to peer; and the study's pages through
 * a pipe that is passed in a message.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/bench/workloads/row-server.h"
#include "tools/bench/workloads/study-session.h"

enum { ROWS_MAX = 75000 }; /* of a message, as in the study */

static int open_server(Transport *transport, bool on_bus) {
        transport->own = g_new0(RowServer, 1);
        return row_server_start(transport, on_bus, transport->own);
}

static int open_message(Transport *transport) {
        return open_server(transport, true);
}

static int open_peer(Transport *transport) {
        return open_server(transport, false);
}

static void close_server(Transport *transport) {
        row_server_done(transport->own);
        g_clear_pointer(&transport->own, g_free);
}

/* ---- Messages ----------------------------------------------------------------------------------------------------- */

/* Returns 0 if no row is left in the message. */
static int copy_row(Transport *transport, sd_bus_message *reply, Copy *copy) {
        int r;

        r = sd_bus_message_enter_container(reply, 'a', "s");
        if (r <= 0)
                return r;
        transport->bytes_moved += sizeof(uint32_t);
        for (unsigned i = 0; i < transport->setup->n_columns; i++) {
                StudyText *value = transport->values + i;

                r = sd_bus_message_read_basic(reply, 's', &value->text);
                if (r <= 0)
                        return r < 0 ? r : -EBADMSG;
                value->size = (uint32_t) strlen(value->text);
                transport->bytes_moved += row_server_string_size(value->size);
        }
        r = sd_bus_message_exit_container(reply);
        if (r >= 0)
                r = transport_copy_text(transport, copy);
        return r < 0 ? r : 1;
}

/* Returns 1 if there are more rows after this message. */
static int copy_rows(Transport *transport, sd_bus_message *reply, Copy *copy) {
        int r, more;

        r = sd_bus_message_enter_container(reply, 'a', "as");
        if (r < 0)
                return r;
        while ((r = copy_row(transport, reply, copy)) > 0)
                ;
        if (r >= 0)
                r = sd_bus_message_exit_container(reply);
        if (r >= 0)
                r = sd_bus_message_read_basic(reply, 'b', &more);
        return r < 0 ? r : more;
}

static int fetch_messages(Transport *transport, const char *sql, Copy *copy) {
        int r;

        r = row_server_call(transport, transport->own, "Prepare", NULL, "s", sql);
        if (r < 0)
                return r;
        do {
                __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;

                r = row_server_call(transport, transport->own, "Fetch", &reply, "u", (uint32_t) ROWS_MAX);
                if (r < 0)
                        return r;
                r = copy_rows(transport, reply, copy);
        } while (r > 0);
        return r < 0 ? transport_failed(transport, r, "a message") : 0;
}

const TransportKind transport_message = {
        .name = "D-Bus messages",
        .how = "Fetch(75000) -> aas through the bus, fewer rows where the message would pass 31 MiB (a bus takes 32); bytes "
               "are counted once, though they go in and out of the bus",
        .open = open_message,
        .fetch = fetch_messages,
        .close = close_server,
};

const TransportKind transport_peer = {
        .name = "D-Bus peer to peer",
        .how = "the same without a bus, straight over a socket pair",
        .open = open_peer,
        .fetch = fetch_messages,
        .close = close_server,
};

/* ---- Pages -------------------------------------------------------------------------------------------------------- */

static int fetch_pages(Transport *transport, const char *sql, Copy *copy) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        g_autofree uint8_t *buffer = NULL;
        int fd, r;

        r = row_server_call(transport, transport->own, "PreparePages", &reply, "s", sql);
        if (r < 0)
                return r;
        r = sd_bus_message_read_basic(reply, 'h', &fd);
        if (r < 0)
                return transport_failed(transport, r, "its pipe");
        r = row_server_call(transport, transport->own, "FetchPages", NULL, "");
        if (r < 0)
                return r;
        buffer = g_malloc(transport->buffer_size);
        return study_copy_pages(transport, fd, buffer, copy);
}

const TransportKind transport_pipe = {
        .name = "D-Bus and a pipe",
        .how = "Prepare and Fetch through the bus, the study's pages down a pipe of 1 MiB that came with the reply",
        .buffer_size = 65536,
        .buffer_size_min = 1024,
        .open = open_message,
        .fetch = fetch_pages,
        .close = close_server,
};
