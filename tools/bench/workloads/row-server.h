/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A rival's server on D-Bus: a child that is reached through a bus or directly over the socket pair.
 *
 *      Prepare(s sql)
 *      Fetch(u n) -> (aas rows, b more)   at most n rows, fewer if the message would be too large
 *      PreparePages(s sql) -> (h pipe)    as Prepare, for the study's pages (study-page.h)
 *      FetchPages()                       sends all pages through the pipe
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_ROW_SERVER_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_ROW_SERVER_H

#include <systemd/sd-bus.h>

#include "tools/bench/workloads/transport.h"

/* The most bytes of an array. By default a bus forwards messages of at most 32 MiB; D-Bus limits arrays to 64 MiB. */
#define ROW_SERVER_ARRAY_MAX_BUS ((size_t) 31 * 1024 * 1024)
#define ROW_SERVER_ARRAY_MAX_PEER ((size_t) 63 * 1024 * 1024)

/* The client's side. */
typedef struct RowServer {
        sd_bus *bus;
        char *name; /* NULL: the server is at the other end of our connection */
} RowServer;

/** Starts a server for `transport`, which owns the child from then on. The caller frees `*ret` with row_server_done(), also
 * after a failure. Reports errors on stderr. */
int row_server_start(Transport *transport, bool on_bus, RowServer *ret);
void row_server_done(RowServer *server);

/** Calls a method. `types` and the arguments are as for sd_bus_message_append(). Reports errors on stderr. */
int row_server_call(Transport *transport, RowServer *server, const char *member, sd_bus_message **ret_reply,
                    const char *types, ...);

/** Returns the bytes that a string takes in an array, including the padding before the next string. */
static inline size_t row_server_string_size(size_t length) {
        return (sizeof(uint32_t) + length + 1 + 3) & ~(size_t) 3;
}

#endif
