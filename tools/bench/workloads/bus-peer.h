/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The benchmark's own D-Bus service: a child process that answers calls through a bus or directly on a socket pair.
 *
 *      Echo(ay bytes) -> (ay bytes)
 *      GetInteger(i n) -> (ai integers)     the first n of bus_peer_integer()
 *      GetText(i n) -> (s text)             as many bytes as n integers, all BUS_PEER_LETTER; a bus checks each byte
 *      PassInteger(i n) -> (h pipe)         the same integers through a pipe, in the machine's byte order
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_BUS_PEER_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_BUS_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/child.h"

enum { BUS_PEER_INTEGERS_MAX = 1000000, BUS_PEER_LETTER = 'x' };

typedef struct BusPeer {
        Child child;
        sd_bus *bus;      /* our connection */
        char *name;       /* the child's bus name; NULL if the child is the other end of the connection */
        pid_t bus_daemon; /* 0 if there is none or its pid is unknown */
} BusPeer;

/** Returns the integer at index `i`. The integers are spread over the whole range of int32_t. */
static inline int32_t bus_peer_integer(uint32_t i) {
        return (int32_t) (i * UINT32_C(2654435761));
}

/** Starts a child on the bus that `options` name; the child has its own connection. Returns a negative errno on error. */
int bus_peer_start_on_bus(const BenchOptions *options, BusPeer *ret);
/** Starts a child at the other end of a socket pair. */
int bus_peer_start_direct(BusPeer *ret);
/** Ends the child. `peer` may also be zeroed memory that was never started. Returns -EIO if the child failed. */
int bus_peer_stop(BusPeer *peer);

/** Creates a method call without arguments; the caller appends them. */
int bus_peer_new_call(BusPeer *peer, const char *member, sd_bus_message **ret);
/** Sends `size` bytes and copies the reply to `ret_bytes`. Returns -EPROTO if the reply has another size. */
int bus_peer_echo(BusPeer *peer, const void *bytes, size_t size, void *ret_bytes);
/** Gets `n` integers in the reply, or through a pipe if `piped`, and copies them. */
int bus_peer_get_integers(BusPeer *peer, int32_t n, bool piped, int32_t *ret_integers);

/** Gets a text of the same size as `n` integers, and copies it without its NUL to `ret_text`. */
int bus_peer_get_text(BusPeer *peer, int32_t n, int32_t *ret_text);

#endif
