/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue in a file without a name (spool.h). */
#include "tools/cli/output/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/cli/output/files.h"

/* Disk space is released in pieces of this size. */
#define FREED_AT_ONCE ((uint64_t) 4 * 1024 * 1024)

int spool_open(Spool *ret, uint64_t max) {
        int fd = open_scratch();

        if (fd < 0)
                return fd;
        *ret = (Spool) { .fd = fd, .max = max, .freed = SPOOL_KEPT };
        return 0;
}

void spool_close(Spool *spool) {
        if (spool->fd >= 0)
                (void) close(spool->fd);
        *spool = SPOOL_NONE;
}

int spool_write(Spool *spool, const char *bytes, size_t size) {
        size_t done = 0;

        if (spool->written - spool->read + size > spool->max)
                return -EFBIG;
        while (done < size) {
                ssize_t n = pwrite(spool->fd, bytes + done, size - done, (off_t) (spool->written + done));

                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t) n : 0;
        }
        spool->written += size;
        return 0;
}

ssize_t spool_peek(const Spool *spool, uint64_t offset, char *buffer, size_t size) {
        uint64_t left = spool->written - offset;
        ssize_t n;

        do
                n = pread(spool->fd, buffer, left < size ? left : size, (off_t) offset);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

void spool_advance(Spool *spool, size_t n) {
        spool->read += n;
        if (spool->read < spool->freed + FREED_AT_ONCE)
                return;
        /* A file system without this call just keeps the blocks. */
        (void) fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) spool->freed,
                         (off_t) (spool->read - spool->freed));
        spool->freed = spool->read;
}
