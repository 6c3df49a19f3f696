/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways of getting a whole result out of a database into the memory of this process, with one file for each way
 * (transport-*.c). Every way does the whole job: prepare, step, transport, decode by type, and copy with copy.h, so that the
 * copies are equal, byte for byte.
 *
 * A rival is a child that opens the file itself and reads values from SQLite in the fastest way (transport-source.h), so
 * that rivals differ only in how they transport values. For a rival that transports only text, the client converts each
 * value to the declared type of its column, as a program does that knows its own query.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_TRANSPORT_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_TRANSPORT_H

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/child.h"
#include "tools/bench/core/copy.h"
#include "tools/bench/core/study-page.h"

/* What all ways share. It must outlive them. */
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
        size_t buffer_size;                  /* the default; 0: the size cannot be chosen */
        size_t buffer_size_min;
        bool ours;                           /* the server is the service */
        /** Starts the server. All three functions report errors on stderr. */
        int (*open)(Transport *transport);
        /** Fetches the whole result of `sql`. */
        int (*fetch)(Transport *transport, const char *sql, Copy *copy);
        void (*close)(Transport *transport);
} TransportKind;

struct Transport {
        const TransportKind *kind;
        const TransportSetup *setup;
        size_t buffer_size;
        Child child;          /* the server; CHILD_INIT if the way has no child */
        StudyText *values;    /* room for a row of texts */
        uint64_t bytes_moved; /* by the last fetch, between processes */
        void *own;            /* private data of the kind */
};

/** Opens a way. `buffer_size` 0: the default of the kind. Close it with transport_close(). */
int transport_open(const TransportKind *kind, const TransportSetup *setup, size_t buffer_size, Transport *ret);
void transport_close(Transport *transport);

/** Returns the process whose processor time and memory count as the server's; 0: none. */
pid_t transport_server(const Transport *transport);

/** Reports a failure on stderr and returns `r`. */
int transport_failed(const Transport *transport, int r, const char *what);

/** Copies transport->values, converted to the types of the setup. -EBADMSG: the text of a number is not a number. */
int transport_copy_text(const Transport *transport, Copy *copy);

extern const TransportKind transport_usual, transport_fastest, transport_function, transport_sqlipc, transport_sqlipc_blocks,
        transport_channel, transport_sqlipc_pages, transport_socket, transport_pipe, transport_vmsplice, transport_ring,
        transport_message, transport_peer;

#endif
