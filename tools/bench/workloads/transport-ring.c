/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The study's requests over a socket; its pages are built in, and copied from, a ring in shared memory. */
#include <errno.h>
#include <sys/socket.h>

#include "tools/bench/core/shared-ring.h"
#include "tools/bench/workloads/study-session.h"

enum { RING_SIZE = 1024 * 1024, RING_SLOTS_MIN = 4 };

static int begin_page(StudySink *sink, uint8_t **ret_bytes) {
        return shared_ring_begin_write(sink->userdata, ret_bytes);
}

static int send_page(StudySink *sink, const uint8_t *bytes) {
        shared_ring_written(sink->userdata);
        return 0;
}

static int serve(int fd, void *userdata) {
        const Transport *transport = userdata;
        SharedRing *ring = transport->own;
        StudySink sink = {
                .begin = begin_page,
                .send = send_page,
                .page_size = transport->buffer_size,
                .userdata = ring,
        };

        ring->peer = fd;
        return study_serve(fd, transport->setup->options->file, &sink);
}

static int open_ring(Transport *transport) {
        uint32_t n_slots = MAX(RING_SIZE / (uint32_t) transport->buffer_size, RING_SLOTS_MIN);
        SharedRing *ring;
        int r;

        ring = transport->own = g_new(SharedRing, 1);
        r = shared_ring_new(transport->buffer_size, n_slots, ring);
        if (r < 0) {
                g_clear_pointer(&transport->own, g_free);
                return transport_failed(transport, r, "cannot make the ring");
        }
        r = child_start(SOCK_STREAM, serve, transport, &transport->child);
        if (r < 0)
                return transport_failed(transport, r, "cannot start its server");
        ring->peer = transport->child.fd;
        return 0;
}

static int fetch(Transport *transport, const char *sql, Copy *copy) {
        int r;

        r = study_request(transport, sql);
        if (r < 0)
                return r;
        do {
                const uint8_t *page;

                r = shared_ring_begin_read(transport->own, &page);
                if (r < 0)
                        return transport_failed(transport, r, "its pages");
                r = study_copy_page(transport, page, copy);
                shared_ring_read(transport->own);
        } while (r > 0);
        return r;
}

static void close_ring(Transport *transport) {
        if (transport->own)
                shared_ring_done(transport->own);
        g_clear_pointer(&transport->own, g_free);
}

const TransportKind transport_ring = {
        .name = "shared ring",
        .how = "the study's pages in a ring of 1 MiB (4 pages at least) in a sealed memfd, built and read in place",
        .buffer_size = 65536,
        .buffer_size_min = 4096,
        .open = open_ring,
        .fetch = fetch,
        .close = close_ring,
};
