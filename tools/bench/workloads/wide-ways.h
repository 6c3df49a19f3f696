/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways of moving long values from one process to another, for `wide`. Each way forks a child that serves one result and
 * ends. The reader gets each value as a whole, reads every word of it, and discards it.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_WIDE_WAYS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_WIDE_WAYS_H

#include <stddef.h>
#include <stdint.h>

#define WIDE_PIPE_SIZE ((size_t) 1048576) /* the size to which the service's pipes grow */
#define WIDE_CHUNK_SIZE ((size_t) 262144) /* what the service writes at once: a page */

/* Sums over the values that were received. */
typedef struct WideValues {
        uint64_t n, n_bytes;
        uint64_t sum; /* of their words */
} WideValues;

/** Reads a value, or a part of one. Parts end at a multiple of 8 bytes or at the end of the value. */
void wide_look(WideValues *values, const void *bytes, size_t size);

/* The values to move: BLOBs in the first column of the query `sql` on an SQLite file. */
typedef struct WideSource {
        const char *file, *sql;
        uint64_t n, n_bytes; /* of all values; used only by the bare pipe */
} WideSource;

/* The following functions report errors on stderr. */

/** A pipe of WIDE_PIPE_SIZE. The child writes chunks that always come from the same memory, which is the least possible work
 * for a pipe. */
int wide_by_bare_pipe(const WideSource *source, WideValues *ret);
/** The same pipe. Each value is written from SQLite's memory, after its size. */
int wide_by_pipe(const WideSource *source, WideValues *ret);
/** A ring of chunks in shared memory (shared-ring.h), as large as the pipe. Each value is copied out of it. */
int wide_by_ring(const WideSource *source, WideValues *ret);
/** A sealed memfd for each value, which is passed over a socket and mapped. */
int wide_by_memfd(const WideSource *source, WideValues *ret);

#endif
