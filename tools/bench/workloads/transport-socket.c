/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The study's own transport, as it was published: requests and pages over one UNIX stream socket. */

#include <sys/socket.h>

#include "tools/bench/workloads/study-session.h"

static int serve(int fd, void *userdata) {
        const Transport *transport = userdata;
        g_autofree uint8_t *buffer = g_malloc(transport->buffer_size);
        StudyOutput output = { .buffer = buffer, .fd = fd };
        StudySink sink = {
                .begin = study_sink_begin_buffer,
                .send = study_sink_send,
                .page_size = transport->buffer_size,
                .userdata = &output,
        };

        return study_serve(fd, transport->setup->options->file, &sink);
}

static int open_socket(Transport *transport) {
        int r;

        transport->own = g_malloc(transport->buffer_size);
        r = child_start(SOCK_STREAM, serve, transport, &transport->child);
        return r < 0 ? transport_failed(transport, r, "cannot start its server") : 0;
}

static int fetch(Transport *transport, const char *sql, Copy *copy) {
        int r;

        r = study_request(transport, sql);
        return r < 0 ? r : study_copy_pages(transport, transport->child.fd, transport->own, copy);
}

static void close_socket(Transport *transport) {
        g_free(transport->own);
}

const TransportKind transport_socket = {
        .name = "UNIX socket",
        .how = "the study's protocol as published: Prepare, Fetch, fixed-size pages of text over a stream socket",
        .buffer_size = 65536,
        .buffer_size_min = 1024,
        .open = open_socket,
        .fetch = fetch,
        .close = close_socket,
};
