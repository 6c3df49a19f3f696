/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bare round trips between two processes, see point.h: the least cost of any way to ask another process. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "tools/bench/core/child.h"
#include "tools/bench/core/passing.h"
#include "tools/bench/workloads/bus-peer.h"
#include "tools/bench/workloads/point.h"

/* ---- A socket pair ------------------------------------------------------------------------------------------------ */

typedef struct Sizes {
        size_t request, answer;
} Sizes;

static const Sizes channel_sizes = { .request = POINT_REQUEST_SIZE, .answer = POINT_ANSWER_SIZE },
                   byte_sizes = { .request = 1, .answer = 1 };

typedef struct Pair {
        Child child;
        const Sizes *sizes;
} Pair;

static int answer_requests(int fd, void *userdata) {
        const Sizes *sizes = userdata;
        uint8_t bytes[MAX(POINT_REQUEST_SIZE, POINT_ANSWER_SIZE)] = {};
        int r;

        while ((r = passing_read_all(fd, bytes, sizes->request)) >= 0)
                if ((r = passing_write_all(fd, bytes, sizes->answer)) < 0)
                        return r;
        return r == -ENODATA ? 0 : r;
}

static void pair_close(void *client) {
        Pair *pair = client;

        (void) child_stop(&pair->child);
        g_free(pair);
}

static int pair_open(const Sizes *sizes, void **ret_client) {
        Pair *pair = g_new(Pair, 1);
        int r;

        *pair = (Pair) { .child = CHILD_INIT, .sizes = sizes };
        r = child_start(SOCK_STREAM, answer_requests, (void *) sizes, &pair->child);
        if (r < 0)
                pair_close(pair);
        else
                *ret_client = pair;
        return r;
}

static int channel_sized_open(void *userdata, void **ret_client) {
        return pair_open(&channel_sizes, ret_client);
}

static int byte_sized_open(void *userdata, void **ret_client) {
        return pair_open(&byte_sizes, ret_client);
}

static int pair_ask_one(void *client, int64_t key, Copy *copy) {
        const Pair *pair = client;
        uint8_t bytes[MAX(POINT_REQUEST_SIZE, POINT_ANSWER_SIZE)] = {};
        int r;

        r = passing_write_all(pair->child.fd, bytes, pair->sizes->request);
        return r < 0 ? r : passing_read_all(pair->child.fd, bytes, pair->sizes->answer);
}

static int pair_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(pair_ask_one, client, keys, n, ret_usec, copy);
}

/* A round trip is two wake-ups. */
static int wake_up_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        int r = pair_ask(client, keys, n, ret_usec, copy);

        for (unsigned i = 0; r >= 0 && i < n; i++)
                ret_usec[i] /= 2;
        return r;
}

ClientKind yardstick_socket_pair(const Point *point) {
        return (ClientKind) {
                .name = "bare socket pair", .open = channel_sized_open, .ask = pair_ask, .close = pair_close,
        };
}

ClientKind yardstick_wake_up(const Point *point) {
        return (ClientKind) {
                .name = "wake-up", .open = byte_sized_open, .ask = wake_up_ask, .close = pair_close,
        };
}

/* ---- A call over the bus ------------------------------------------------------------------------------------------ */

static void fd_call_close(void *client) {
        (void) bus_peer_stop(client);
        g_free(client);
}

static int fd_call_open(void *userdata, void **ret_client) {
        const Point *point = userdata;
        BusPeer *peer = g_new0(BusPeer, 1);
        int r;

        r = bus_peer_start_on_bus(point->options, peer);
        if (r < 0)
                g_free(peer);
        else
                *ret_client = peer;
        return r;
}

static int fd_call_ask_one(void *client, int64_t key, Copy *copy) {
        int32_t nothing;

        return bus_peer_get_integers(client, 0, true, &nothing);
}

static int fd_call_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(fd_call_ask_one, client, keys, n, ret_usec, copy);
}

ClientKind yardstick_fd_call(const Point *point) {
        return (ClientKind) {
                .name = "empty bus call with a descriptor", .open = fd_call_open, .ask = fd_call_ask, .close = fd_call_close,
                .userdata = (void *) point,
        };
}
