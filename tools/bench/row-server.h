/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A rival's server on D-Bus, a child, reached through a bus or straight over the socket pair.
 *
 *      Prepare(s sql)
 *      Fetch(u n) -> (aas rows, b more)   at most n rows, fewer where the message would be too large
 *      PreparePages(s sql) -> (h pipe)    the same, for the study's pages (study-page.h)
 *      FetchPages()                       sends all of them down the pipe
 */
#ifndef BENCH_ROW_SERVER_H
#define BENCH_ROW_SERVER_H

#include <systemd/sd-bus.h>

#include "transport.h"

/* Bytes of an array: a bus passes messages of at most 32 MiB on unless its configuration says otherwise, and D-Bus allows
 * arrays of 64 MiB. */
#define ROW_SERVER_ARRAY_MAX_BUS ((size_t) 31 * 1024 * 1024)
#define ROW_SERVER_ARRAY_MAX_PEER ((size_t) 63 * 1024 * 1024)

/* The client's side of one. */
typedef struct RowServer {
        sd_bus *bus;
        char *name; /* NULL: the server is at the other end of our connection */
} RowServer;

/** Starts one for `transport`, which has its child from then on. `*ret` is to be freed by row_server_done(), also after a
 * failure, which is said on stderr. */
int row_server_start(Transport *transport, bool on_bus, RowServer *ret);
void row_server_done(RowServer *server);

/** Calls a method; `types` and what follows as of sd_bus_message_append(). Says on stderr what fails. */
int row_server_call(Transport *transport, RowServer *server, const char *member, sd_bus_message **ret_reply,
                    const char *types, ...);

/** Bytes that a string takes in an array, the padding in front of the next one too. */
static inline size_t row_server_string_size(size_t length) {
        return (sizeof(uint32_t) + length + 1 + 3) & ~(size_t) 3;
}

#endif
