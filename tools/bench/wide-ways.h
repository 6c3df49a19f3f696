/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways of moving long values from one process to another, for `wide`: each forks a child that serves one result and ends.
 * The reader has each value as a whole, looks at every word of it, and forgets it.
 */
#ifndef BENCH_WIDE_WAYS_H
#define BENCH_WIDE_WAYS_H

#include <stddef.h>
#include <stdint.h>

#define WIDE_PIPE_SIZE ((size_t) 1048576) /* what the service's pipes grow to */
#define WIDE_CHUNK_SIZE ((size_t) 262144) /* what it writes at once: a page */

/* Values as they come. */
typedef struct WideValues {
        uint64_t n, n_bytes;
        uint64_t sum; /* of their words */
} WideValues;

/** Looks at a value, or at a part of one that ends at a multiple of 8 bytes or at its end. */
void wide_look(WideValues *values, const void *bytes, size_t size);

/* What is moved: the first column of `sql`, BLOBs, of a file of SQLite. */
typedef struct WideSource {
        const char *file, *sql;
        uint64_t n, n_bytes; /* of all values; only the bare pipe asks */
} WideSource;

/** Say on stderr what fails. A pipe of WIDE_PIPE_SIZE, written in chunks, out of memory that is always the same: nothing
 * moves bytes by a pipe with less work. */
int wide_by_bare_pipe(const WideSource *source, WideValues *ret);
/** The same pipe, each value from SQLite's memory with its size in front. */
int wide_by_pipe(const WideSource *source, WideValues *ret);
/** A ring of chunks in shared memory, as large as the pipe (shared-ring.h), each value copied out of it. */
int wide_by_ring(const WideSource *source, WideValues *ret);
/** A sealed memfd for each value, passed over a socket and mapped. */
int wide_by_memfd(const WideSource *source, WideValues *ret);

#endif
