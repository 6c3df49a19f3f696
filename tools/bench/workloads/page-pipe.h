/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The data plane alone: a child steps SQLite, encodes pages and writes them to a pipe; this process decodes and copies the
 * values. There is no bus, no policy and no switching between runs, and reads and writes block. The caller chooses the
 * sizes, to see the effect of each of them and how close the service is to the possible speed.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_PAGE_PIPE_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_PAGE_PIPE_H

#include <stddef.h>

#include "tools/bench/core/copy.h"

typedef struct PagePipe {
        const char *file, *sql;
        size_t page_size;  /* a power of two, SQLIPC_PAGE_SIZE_MIN to _MAX */
        size_t pipe_size;
        size_t write_size; /* at most, of one write; 0: a page */
} PagePipe;

/** Copies the whole result. Reports errors on stderr. -EPERM: this user may not have a pipe of that size. */
int page_pipe_copy(const PagePipe *pages, Copy *copy);

#endif
