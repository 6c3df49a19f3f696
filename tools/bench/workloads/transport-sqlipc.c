/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Our transports: libsqlipc as a program uses it; and pages without the library, because it has no choice of page size:
 * Query with `page-size`, a pipe, the contract's decoder.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench/core/library.h"
#include "tools/bench/core/page-read.h"
#include "tools/bench/workloads/transport.h"

/* ---- The library -------------------------------------------------------------------------------------------------- */

static int open_library(Transport *transport, sqlipc_transport way) {
        return library_open(transport->setup->options, way, (sqlipc_connection **) &transport->own);
}

static int open_pipe(Transport *transport) {
        return open_library(transport, SQLIPC_TRANSPORT_PIPE);
}

static int open_channel(Transport *transport) {
        return open_library(transport, SQLIPC_TRANSPORT_CHANNEL);
}

static int fetch_library(Transport *transport, const char *sql, Copy *copy, sqlipc_transport way,
                         int (*take_rows)(sqlipc_cursor *, Copy *)) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = transport->own;
        int r;

        r = sqlipc_query(connection, transport->setup->options->database, sql, &cursor, NULL);
        if (r >= 0)
                r = take_rows(cursor, copy);
        if (r < 0)
                return library_failed(connection, r, sql);
        if (sqlipc_cursor_get_transport(cursor) != way)
                return transport_failed(transport, -EPROTO, "the library went another way");
        sqlipc_cursor_get_totals(cursor, NULL, &transport->bytes_moved, NULL);
        return 0;
}

static int fetch_by_pipe(Transport *transport, const char *sql, Copy *copy) {
        return fetch_library(transport, sql, copy, SQLIPC_TRANSPORT_PIPE, library_copy_rows);
}

static int fetch_by_channel(Transport *transport, const char *sql, Copy *copy) {
        return fetch_library(transport, sql, copy, SQLIPC_TRANSPORT_CHANNEL, library_copy_rows);
}

/* Copies the values of a block, row by row, as bench_service_copy_row() does. */
static void copy_block(const sqlipc_value *values, size_t n_values, Copy *copy) {
        for (size_t i = 0; i < n_values; i++) {
                const sqlipc_value *v = &values[i];

                switch (v->type) {
                case SQLIPC_INTEGER:
                        copy_integer(copy, v->as.integer);
                        break;
                case SQLIPC_REAL:
                        copy_real(copy, v->as.real);
                        break;
                case SQLIPC_TEXT:
                case SQLIPC_BLOB:
                        copy_bytes(copy, v->type, v->as.blob, v->size);
                        break;
                case SQLIPC_NULL:
                        copy_null(copy);
                        break;
                }
        }
}

static int copy_blocks(sqlipc_cursor *cursor, Copy *copy) {
        const sqlipc_value *values;
        size_t n_rows;
        int r;

        while ((r = sqlipc_cursor_next_block(cursor, 0, &values, &n_rows)) > 0) {
                copy_block(values, n_rows * sqlipc_column_count(cursor), copy);
                copy->n_rows += n_rows;
        }
        return r;
}

static int fetch_blocks(Transport *transport, const char *sql, Copy *copy) {
        return fetch_library(transport, sql, copy, SQLIPC_TRANSPORT_PIPE, copy_blocks);
}

static void close_library(Transport *transport) {
        transport->own = sqlipc_close(transport->own);
}

const TransportKind transport_sqlipc = {
        .name = "sqlipc, pipe",
        .how = "libsqlipc, over the bus and down a pipe, its choice for large results; typed",
        .ours = true,
        .open = open_pipe,
        .fetch = fetch_by_pipe,
        .close = close_library,
};

const TransportKind transport_sqlipc_blocks = {
        .name = "sqlipc, pipe, blocks",
        .how = "the same with many rows for each call of the library; typed",
        .ours = true,
        .open = open_pipe,
        .fetch = fetch_blocks,
        .close = close_library,
};

const TransportKind transport_channel = {
        .name = "sqlipc, channel",
        .how = "libsqlipc over a channel, which is made for small ones; typed",
        .ours = true,
        .open = open_channel,
        .fetch = fetch_by_channel,
        .close = close_library,
};

/* ---- Pages of any size -------------------------------------------------------------------------------------------- */

static int open_nothing(Transport *transport) {
        return 0;
}

/* Returns the read end, in blocking mode. The caller closes it. */
static int query_pages(Transport *transport, const char *sql, sd_bus_message **ret_reply, int *ret_fd) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *call = NULL;
        const TransportSetup *setup = transport->setup;
        g_autofree char *path = NULL;
        int r;

        r = sd_bus_path_encode("/org/sqlipc1/database", setup->options->database, &path);
        if (r >= 0)
                r = sd_bus_message_new_method_call(setup->service->bus, &call, "org.sqlipc1", path, "org.sqlipc1.Database",
                                                   "Query");
        if (r >= 0)
                r = sd_bus_message_append(call, "sava{sv}a{sv}", sql, 0, 0, 1, "page-size", "u",
                                          (uint32_t) transport->buffer_size);
        if (r >= 0)
                r = sd_bus_call(setup->service->bus, call, 0, NULL, ret_reply);
        if (r >= 0)
                r = sd_bus_message_read(*ret_reply, "th", NULL, ret_fd);
        if (r >= 0 && fcntl(*ret_fd, F_SETFL, O_RDONLY) < 0)
                r = -errno;
        return r;
}

static int decode(Transport *transport, PageDecoder *decoder, int fd, Copy *copy) {
        int r = page_read_run(decoder, fd, copy);

        if (r == -EIO && decoder->error_message)
                fprintf(stderr, "sqlipc-bench: %s: %s\n", transport->kind->name, decoder->error_message);
        else if (r < 0)
                return transport_failed(transport, r, "its pages");
        transport->bytes_moved = decoder->end_counters.n_bytes;
        return r;
}

static int fetch_pages(Transport *transport, const char *sql, Copy *copy) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        PageDecoder decoder;
        int r, fd;

        r = query_pages(transport, sql, &reply, &fd);
        if (r < 0)
                return transport_failed(transport, r, "Query");
        page_decoder_init(&decoder, transport->buffer_size, SQLIPC_ROW_SIZE_MAX);
        r = decode(transport, &decoder, fd, copy);
        page_decoder_done(&decoder);
        return r;
}

const TransportKind transport_sqlipc_pages = {
        .name = "sqlipc, by page size",
        .how = "over the bus and down a pipe to a client without the library, which chooses the size of pages; typed",
        .ours = true,
        .buffer_size = SQLIPC_PAGE_SIZE_DEFAULT,
        .buffer_size_min = SQLIPC_PAGE_SIZE_MIN,
        .open = open_nothing,
        .fetch = fetch_pages,
};
