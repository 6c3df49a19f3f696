/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A way of getting a whole result out of a database into this process' memory, one file each (transport-*.c). All do the
 * whole job: prepare, step, carry, decode by type, copy through copy.h, so that the copies are equal, byte for byte.
 *
 * A rival is a child that opens the file by itself and takes values out of SQLite in the fastest way (transport-source.h),
 * so that what carries them is all that differs. Those that carry text only convert by the type that the columns of the
 * query were declared with, as a program that knows its own query does.
 */
#ifndef BENCH_TRANSPORT_H
#define BENCH_TRANSPORT_H

#include "baseline.h"
#include "child.h"
#include "copy.h"
#include "options.h"
#include "service.h"
#include "study-page.h"

/* What all of them share; outlives them. */
typedef struct TransportSetup {
        const BenchOptions *options;
        Service *service;
        Baseline *baseline;
        unsigned n_columns;
        sqlipc_type *types; /* of the query's columns, as declared */
} TransportSetup;

typedef struct Transport Transport;

typedef struct TransportKind {
        const char *name;
        const char *how;                     /* a sentence for the report */
        size_t buffer_size;                  /* the one that it likes; 0: it has none to choose */
        size_t buffer_size_min;
        bool ours;                           /* the server is the service */
        /** Starts the server. Each of these says on stderr what fails. */
        int (*open)(Transport *transport);
        /** The whole result of `sql`. */
        int (*fetch)(Transport *transport, const char *sql, Copy *copy);
        void (*close)(Transport *transport);
} TransportKind;

struct Transport {
        const TransportKind *kind;
        const TransportSetup *setup;
        size_t buffer_size;
        Child child;          /* the server; CHILD_INIT where there is none of ours */
        StudyText *values;    /* room for a row that came as text */
        uint64_t bytes_moved; /* by the last fetch, between processes */
        void *own;            /* the kind's */
};

/** Opens one; `buffer_size` 0: the one that it likes. To be closed by transport_close(). */
int transport_open(const TransportKind *kind, const TransportSetup *setup, size_t buffer_size, Transport *ret);
void transport_close(Transport *transport);

/** Whose processor time and memory are the server's; 0: there is none. */
pid_t transport_server(const Transport *transport);

/** Says on stderr that it failed, and returns `r`. */
int transport_failed(const Transport *transport, int r, const char *what);

/** Copies transport->values, converted to the types of the setup. -EBADMSG: a number is none. */
int transport_copy_text(const Transport *transport, Copy *copy);

extern const TransportKind transport_usual, transport_fastest, transport_function, transport_sqlipc, transport_sqlipc_blocks,
        transport_channel, transport_sqlipc_pages, transport_socket, transport_pipe, transport_vmsplice, transport_ring,
        transport_message, transport_peer;

#endif
