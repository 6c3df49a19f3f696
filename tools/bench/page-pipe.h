/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The data plane without the rest: a child steps SQLite, encodes pages and writes them to a pipe, this process decodes and
 * copies. No bus, no policy, no turns between runs, blocking reads and writes; sizes as one likes, so that it shows what
 * each of them is worth, and how far the service is from what they allow.
 */
#ifndef BENCH_PAGE_PIPE_H
#define BENCH_PAGE_PIPE_H

#include <stddef.h>

#include "copy.h"

typedef struct PagePipe {
        const char *file, *sql;
        size_t page_size;  /* a power of two, SQLIPC_PAGE_SIZE_MIN to _MAX */
        size_t pipe_size;
        size_t write_size; /* of a write, at most; 0: a page */
} PagePipe;

/** Copies the whole result. Says on stderr what fails; -EPERM: this user may have no pipe of that size. */
int page_pipe_copy(const PagePipe *pages, Copy *copy);

#endif
