/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways of getting bytes to another process and back: who sends them there copies what it gets to memory of its own, and so
 * does who sends them back. echo-kernel.c has those that the kernel alone carries, echo-bus.c D-Bus, echo-channel.c ours.
 */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include <glib.h>

#include "bus-peer.h"
#include "service.h"

#define ECHO_SIZE_MAX ((size_t) 4 * 1024 * 1024)

typedef struct Echo Echo;

typedef struct EchoKind {
        const char *name;
        /** Starts the other side. -EOPNOTSUPP, with `echo->why` set: it is not to be had here. */
        int (*open)(Echo *echo, const BenchOptions *options);
        /** Sends `echo->payload` there, and what comes back to `echo->back`. */
        int (*trip)(Echo *echo, size_t size);
        /** Also for one whose open() failed. */
        int (*close)(Echo *echo);
} EchoKind;

struct Echo {
        const EchoKind *kind;
        pid_t server;        /* with its children */
        uint8_t *message;    /* ECHO_HEAD_SIZE bytes for the transport, then the payload */
        uint8_t *payload;    /* within it */
        uint8_t *back_message, *back; /* the same of what came back */
        char *why;           /* why it is left out, or NULL */

        Child child;
        int in, out;         /* pipes */
        int server_in, server_out;
        BusPeer peer;
        Service service;
        sqlipc_statement *statement;
};

/* Before the payload of a stream: its size, as a 32-bit number in the machine's byte order. */
#define ECHO_HEAD_SIZE ((size_t) 8) /* of which the last 4 are used, so that the payload is aligned */

extern const EchoKind echo_pipe, echo_socket_pair, echo_memfd, echo_bus, echo_direct, echo_channel;

/** Opens one of `kind`, with random bytes as payload, the same for each. */
int echo_open(Echo *echo, const EchoKind *kind, const BenchOptions *options);
/** Ends it; what was opened last is ended first, since its process has copies of the others' descriptors. */
int echo_close(Echo *echo);

#endif
