/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The study's requests over a socket, its pages through a pipe with vmsplice(): the pipe refers to the server's memory
 * instead of copying it. A reader that has spliced a page elsewhere may still use it after it has left the pipe. Therefore
 * the memory is a ring of two halves, each as large as the pipe, and the server writes a half again only after the reader
 * has acknowledged it with a byte over the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/bench/core/passing.h"
#include "tools/bench/workloads/study-session.h"

enum { PIPE_SIZE = 1024 * 1024 };

typedef struct Splice {
        int fds[2];         /* the pipe */
        size_t half;        /* of the ring, in pages */
        uint64_t n_pages;   /* of the current result, sent or read */
        uint8_t *buffer;    /* of the reader */
        /* of the server */
        uint8_t *ring;
        uint64_t n_halves_free; /* halves that the reader has acknowledged */
        int socket;
} Splice;

/* ---- Server ------------------------------------------------------------------------------------------------------- */

static int await_acknowledgements(Splice *splice, uint64_t n) {
        for (uint8_t byte; splice->n_halves_free < n; splice->n_halves_free++) {
                int r;

                r = passing_read_all(splice->socket, &byte, sizeof byte);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int begin_page(StudySink *sink, uint8_t **ret_bytes) {
        Splice *splice = sink->userdata;
        uint64_t n_halves = splice->n_pages / splice->half;

        *ret_bytes = splice->ring + splice->n_pages % (2 * splice->half) * sink->page_size;
        return n_halves < 2 ? 0 : await_acknowledgements(splice, n_halves - 1);
}

static int send_page(StudySink *sink, const uint8_t *bytes) {
        Splice *splice = sink->userdata;
        struct iovec rest = { .iov_base = (void *) bytes, .iov_len = sink->page_size };

        while (rest.iov_len > 0) {
                ssize_t n = TEMP_FAILURE_RETRY(vmsplice(splice->fds[1], &rest, 1, 0));

                if (n < 0)
                        return -errno;
                rest.iov_base = (uint8_t *) rest.iov_base + n;
                rest.iov_len -= (size_t) n;
        }
        splice->n_pages++;
        return 0;
}

/* Waits until all pages are acknowledged, because the next result starts at the first page again. */
static int finish(StudySink *sink) {
        Splice *splice = sink->userdata;
        int r;

        r = await_acknowledgements(splice, splice->n_pages / splice->half + 1);
        splice->n_pages = splice->n_halves_free = 0;
        return r;
}

static int serve(int fd, void *userdata) {
        Transport *transport = userdata;
        Splice *splice = transport->own;
        StudySink sink = {
                .begin = begin_page,
                .send = send_page,
                .finish = finish,
                .page_size = transport->buffer_size,
                .userdata = splice,
        };

        close(splice->fds[0]);
        splice->socket = fd;
        splice->ring = mmap(NULL, 2 * splice->half * transport->buffer_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (splice->ring == MAP_FAILED)
                return -errno;
        return study_serve(fd, transport->setup->options->file, &sink);
}

/* ---- Client ------------------------------------------------------------------------------------------------------- */

static int open_splice(Transport *transport) {
        Splice *splice;
        int size, r;

        splice = transport->own = g_new0(Splice, 1);
        if (pipe2(splice->fds, O_CLOEXEC) < 0) {
                r = -errno;
                g_clear_pointer(&transport->own, g_free);
                return transport_failed(transport, r, "cannot make a pipe");
        }
        (void) fcntl(splice->fds[1], F_SETPIPE_SZ, PIPE_SIZE); /* may exceed the user's limit; the next line checks that */
        size = fcntl(splice->fds[1], F_GETPIPE_SZ);
        splice->half = MAX(((size_t) size + transport->buffer_size - 1) / transport->buffer_size, 1);
        splice->buffer = g_malloc(transport->buffer_size);
        r = child_start(SOCK_STREAM, serve, transport, &transport->child);
        close(splice->fds[1]);
        splice->fds[1] = -1;
        return r < 0 ? transport_failed(transport, r, "cannot start its server") : 0;
}

static int acknowledge(Transport *transport) {
        int r;

        r = passing_write_all(transport->child.fd, "", 1);
        return r < 0 ? transport_failed(transport, r, "acknowledgement") : 0;
}

static int fetch(Transport *transport, const char *sql, Copy *copy) {
        Splice *splice = transport->own;
        int r;

        r = study_request(transport, sql);
        for (splice->n_pages = 1; r >= 0; splice->n_pages++) {
                r = passing_read_all(splice->fds[0], splice->buffer, transport->buffer_size);
                if (r < 0)
                        return transport_failed(transport, r, "its pages");
                r = study_copy_page(transport, splice->buffer, copy);
                if (r >= 0 && splice->n_pages % splice->half == 0 && acknowledge(transport) < 0)
                        return -EPIPE;
                if (r <= 0)
                        break;
        }
        return r < 0 ? r : acknowledge(transport);
}

static void close_splice(Transport *transport) {
        Splice *splice = transport->own;

        if (!splice)
                return;
        close(splice->fds[0]);
        g_free(splice->buffer);
        g_clear_pointer(&transport->own, g_free);
}

const TransportKind transport_vmsplice = {
        .name = "vmsplice",
        .how = "the study's pages down a pipe of 1 MiB by vmsplice(), out of a ring of twice its size, of which a half is "
               "written again once the reader has acknowledged it",
        .buffer_size = 65536,
        .buffer_size_min = 4096,
        .open = open_splice,
        .fetch = fetch,
        .close = close_splice,
};
