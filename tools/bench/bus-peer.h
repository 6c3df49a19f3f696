/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A service on D-Bus of the benchmark's own: a child process that answers, through a bus or straight on a socket pair.
 *
 *      Echo(ay bytes) -> (ay bytes)
 *      GetInteger(i n) -> (ai integers)     the first n of bus_peer_integer()
 *      GetText(i n) -> (s text)             as many bytes, of BUS_PEER_LETTER: what a bus has to check each byte of
 *      PassInteger(i n) -> (h pipe)         the integers, down a pipe, in the machine's byte order
 */
#ifndef BENCH_BUS_PEER_H
#define BENCH_BUS_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "child.h"
#include "options.h"

enum { BUS_PEER_INTEGERS_MAX = 1000000, BUS_PEER_LETTER = 'x' };

typedef struct BusPeer {
        Child child;
        sd_bus *bus;      /* our connection */
        char *name;       /* what it is called on the bus; NULL: it is the other end */
        pid_t bus_daemon; /* 0: none, or nobody tells */
} BusPeer;

/** The integer at `i`, anywhere in its range. */
static inline int32_t bus_peer_integer(uint32_t i) {
        return (int32_t) (i * UINT32_C(2654435761));
}

/** Starts one on the bus that `options` name, with a connection of its own. Negative errno. */
int bus_peer_start_on_bus(const BenchOptions *options, BusPeer *ret);
/** Starts one at the other end of a socket pair. */
int bus_peer_start_direct(BusPeer *ret);
/** Has it end. For what was never started, too, if it is zeroed. -EIO: it did not end well. */
int bus_peer_stop(BusPeer *peer);

/** Makes a call that is yet to be filled. */
int bus_peer_new_call(BusPeer *peer, const char *member, sd_bus_message **ret);
/** Sends `size` bytes and copies what comes back to `ret_bytes`. -EPROTO: it is of another size. */
int bus_peer_echo(BusPeer *peer, const void *bytes, size_t size, void *ret_bytes);
/** Gets `n` integers, in the reply or (`piped`) down a pipe, and copies them. */
int bus_peer_get_integers(BusPeer *peer, int32_t n, bool piped, int32_t *ret_integers);

/** Gets text of the size of `n` integers, and copies it there, without its NUL. */
int bus_peer_get_text(BusPeer *peer, int32_t n, int32_t *ret_text);

#endif
