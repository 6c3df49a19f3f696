/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A queue of bytes in a temporary file without a name: the data that a pager has not read yet. Disk space is released as the
 * data is read, except for the first SPOOL_KEPT bytes, which can be read again.
 */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_SPOOL_H
#define SQLIPC_TOOLS_CLI_OUTPUT_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The largest size of a pipe: so much may be lost in the pipe to a program that never reads. */
#define SPOOL_KEPT ((uint64_t) 1024 * 1024)

typedef struct Spool {
        int fd;
        uint64_t max;     /* limit of the bytes that wait */
        uint64_t written; /* bytes in total */
        uint64_t read;
        uint64_t freed;   /* up to here the file's blocks are released, except those kept */
} Spool;

#define SPOOL_NONE ((Spool) { .fd = -1 })

/** Creates the file in $TMPDIR, else /tmp. Returns -errno if that fails. */
int spool_open(Spool *ret, uint64_t max);
void spool_close(Spool *spool);

/** Appends bytes, all of them or none. Returns -EFBIG if more than `max` bytes would wait; else the write error, such as
 * -ENOSPC. */
int spool_write(Spool *spool, const char *bytes, size_t size);
/** Reads bytes from `offset` on (spool->read: the next ones), as many as are available; 0: none. */
ssize_t spool_peek(const Spool *spool, uint64_t offset, char *buffer, size_t size);
/** Marks the next `n` bytes as read. */
void spool_advance(Spool *spool, size_t n);

#endif
