/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A queue of bytes in a temporary file that has no name: what a pager has not read yet. Its disk space is given back as it
 * is read, but for the first SPOOL_KEPT bytes, which can be read again.
 */
#ifndef CLI_SPOOL_H
#define CLI_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a pipe holds: so much may be gone into one that nobody reads. */
#define SPOOL_KEPT ((uint64_t) 1024 * 1024)

typedef struct Spool {
        int fd;
        uint64_t max;     /* bytes that wait */
        uint64_t written; /* in all */
        uint64_t read;
        uint64_t freed;   /* up to here the file has no blocks, but for those kept */
} Spool;

#define SPOOL_NONE ((Spool) { .fd = -1 })

/** In $TMPDIR, else /tmp. -errno of making the file. */
int spool_open(Spool *ret, uint64_t max);
void spool_close(Spool *spool);

/** Adds bytes behind all others, all of them or none. -EFBIG where more than `max` would wait; what writing gave, -ENOSPC.
 * */
int spool_write(Spool *spool, const char *bytes, size_t size);
/** Bytes from `offset` (spool->read: the next ones) on, as many as are there; 0: none. */
ssize_t spool_peek(const Spool *spool, uint64_t offset, char *buffer, size_t size);
/** The next `n` bytes were read. */
void spool_advance(Spool *spool, size_t n);

#endif
