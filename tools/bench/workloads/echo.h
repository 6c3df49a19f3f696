/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways of sending bytes to another process and back. Both processes copy the bytes that they receive to their own memory.
 * echo-kernel.c contains the ways that only the kernel is part of, echo-bus.c those over D-Bus, echo-channel.c ours.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_ECHO_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_ECHO_H

#include <glib.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/workloads/bus-peer.h"

#define ECHO_SIZE_MAX ((size_t) 4 * 1024 * 1024)

typedef struct Echo Echo;

typedef struct EchoKind {
        const char *name;
        /** Starts the other side. -EOPNOTSUPP, with `echo->why` set: this machine does not support it. */
        int (*open)(Echo *echo, const BenchOptions *options);
        /** Sends `echo->payload` and receives the echo into `echo->back`. */
        int (*trip)(Echo *echo, size_t size);
        /** Must also be called if open() failed. */
        int (*close)(Echo *echo);
} EchoKind;

struct Echo {
        const EchoKind *kind;
        pid_t server;        /* counted with its children */
        uint8_t *payload;    /* the bytes to send */
        uint8_t *back;       /* the bytes received; the other side receives into its own copy of this memory */
        char *why;           /* why the way is not measured, or NULL */

        Child child;
        int in, out;         /* pipes */
        int server_in, server_out;
        BusPeer peer;
        Service service;
        sqlipc_statement *statement;
};

/* Buffers that all ways share, because only one of them runs at a time. ECHO_HEAD_SIZE bytes before each buffer are reserved
 * for a header of the transport, so that header and message need only one write. */
typedef struct EchoBytes {
        uint8_t *payload, *back;
} EchoBytes;

#define ECHO_HEAD_SIZE ((size_t) 8)

extern const EchoKind echo_pipe, echo_socket_pair, echo_memfd, echo_bus, echo_direct, echo_channel;

/** Fills the payload with random bytes, which are the same each time. */
void echo_bytes_init(EchoBytes *ret);
void echo_bytes_done(EchoBytes *bytes);

/** Opens a way of `kind`, which borrows `bytes`. -EOPNOTSUPP, with `echo->why` set: this machine does not support it. */
int echo_open(Echo *echo, const EchoKind *kind, const EchoBytes *bytes, const BenchOptions *options);
/** Closes a way. Close in reverse order of opening, because a later child has copies of the earlier ones' descriptors. */
int echo_close(Echo *echo);

#endif
