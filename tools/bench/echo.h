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
        uint8_t *payload;    /* what is sent */
        uint8_t *back;       /* what came back; the other side, which has a copy of its own, receives into it, too */
        char *why;           /* why it is left out, or NULL */

        Child child;
        int in, out;         /* pipes */
        int server_in, server_out;
        BusPeer peer;
        Service service;
        sqlipc_statement *statement;
};

/* The bytes of all ways, of which one is in use at a time. Before each of the two lie ECHO_HEAD_SIZE bytes for a head of the
 * transport, so that message and head are one write. */
typedef struct EchoBytes {
        uint8_t *payload, *back;
} EchoBytes;

#define ECHO_HEAD_SIZE ((size_t) 8)

extern const EchoKind echo_pipe, echo_socket_pair, echo_memfd, echo_bus, echo_direct, echo_channel;

/** Makes random bytes as payload, the same each time. */
void echo_bytes_init(EchoBytes *ret);
void echo_bytes_done(EchoBytes *bytes);

/** Opens one of `kind`, which borrows `bytes`. -EOPNOTSUPP, with `echo->why` set: it is not to be had here. */
int echo_open(Echo *echo, const EchoKind *kind, const EchoBytes *bytes, const BenchOptions *options);
/** Ends it; what was opened last is ended first, since its process has copies of the others' descriptors. */
int echo_close(Echo *echo);

#endif
