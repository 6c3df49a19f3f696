/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sends bytes to another process and back as a D-Bus message, through the bus and directly. */
#include <errno.h>

#include "tools/bench/workloads/echo.h"

static int trip_peer(Echo *echo, size_t size) {
        return bus_peer_echo(&echo->peer, echo->payload, size, echo->back);
}

static int close_peer(Echo *echo) {
        return bus_peer_stop(&echo->peer);
}

/* Makes one trip, because a system bus usually forbids calls between programs that its policy does not name. */
static int open_bus(Echo *echo, const BenchOptions *options) {
        int r;

        r = bus_peer_start_on_bus(options, &echo->peer);
        echo->server = echo->peer.child.pid;
        if (r >= 0)
                r = trip_peer(echo, 1);
        if (r != -EACCES && r != -EPERM)
                return r;
        echo->why = g_strdup("this bus's policy forbids calls between two programs that it does not know");
        return -EOPNOTSUPP;
}

const EchoKind echo_bus = { .name = "D-Bus, through the bus", .open = open_bus, .trip = trip_peer, .close = close_peer };

static int open_direct(Echo *echo, const BenchOptions *options) {
        int r;

        (void) options;
        r = bus_peer_start_direct(&echo->peer);
        echo->server = echo->peer.child.pid;
        return r;
}

const EchoKind echo_direct = { .name = "D-Bus, peer to peer", .open = open_direct, .trip = trip_peer, .close = close_peer };
