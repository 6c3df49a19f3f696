/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See row-spool.h.
 */
#include "daemon/worker/core/row-spool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/core/temp-space.h"

static int reserve(RowSpool *s, size_t size) {
        size_t needed = s->size + size, capacity = 2 * s->capacity > needed ? 2 * s->capacity : needed;
        uint8_t *bytes;

        if (needed <= s->capacity)
                return 0;
        bytes = realloc(s->bytes, capacity);
        if (!bytes)
                return -ENOMEM;
        s->bytes = bytes;
        s->capacity = capacity;
        return 0;
}

static int add_to_memory(RowSpool *s, const uint8_t *page, size_t size, const uint8_t *tail, size_t tail_size) {
        int r = reserve(s, sizeof size + size);

        if (r < 0)
                return r;
        memcpy(s->bytes + s->size, &size, sizeof size);
        s->size += sizeof size;
        memcpy(s->bytes + s->size, page, size - tail_size);
        if (tail_size > 0)
                memcpy(s->bytes + s->size + size - tail_size, tail, tail_size);
        s->size += size;
        return 0;
}

static int write_all(int fd, uint64_t *offset, const void *bytes, size_t size) {
        for (size_t done = 0; done < size;) {
                ssize_t n = pwrite(fd, (const uint8_t *) bytes + done, size - done, (off_t) *offset);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return -EIO;
                if (n > 0) {
                        done += (size_t) n;
                        *offset += (uint64_t) n;
                }
        }
        return 0;
}

static int add_to_file(RowSpool *s, const uint8_t *page, size_t size, const uint8_t *tail, size_t tail_size,
                       uint64_t temp_max) {
        uint64_t end = s->file_size;
        int r;

        if (!s->has_file) {
                r = temp_space_open();
                if (r < 0)
                        return r;
                s->fd = r;
                s->has_file = true;
        }
        if (!temp_space_take(sizeof size + size, temp_max))
                return -E2BIG;
        s->file_size += sizeof size + size;
        r = write_all(s->fd, &end, &size, sizeof size);
        if (r == 0)
                r = write_all(s->fd, &end, page, size - tail_size);
        if (r == 0)
                r = write_all(s->fd, &end, tail, tail_size);
        return r;
}

int row_spool_add(RowSpool *s, const uint8_t *page, size_t size, const uint8_t *tail, size_t tail_size, bool in_memory,
                  uint64_t temp_max) {
        int r = in_memory && !s->has_file ? add_to_memory(s, page, size, tail, tail_size)
                                          : add_to_file(s, page, size, tail, tail_size, temp_max);

        if (r == 0)
                s->left += size;
        return r;
}

static int read_all(int fd, uint64_t *offset, void *bytes, size_t size) {
        for (size_t done = 0; done < size;) {
                ssize_t n = pread(fd, (uint8_t *) bytes + done, size - done, (off_t) *offset);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0) /* it has no name, so it cannot have been truncated: the file system lost it */
                        return -EIO;
                if (n > 0) {
                        done += (size_t) n;
                        *offset += (uint64_t) n;
                }
        }
        return 0;
}

static int take_from_file(RowSpool *s, uint8_t *page, size_t page_size) {
        size_t size;
        int r = read_all(s->fd, &s->file_taken, &size, sizeof size);

        if (r == 0 && (size == 0 || size > page_size))
                r = -EIO;
        if (r == 0)
                r = read_all(s->fd, &s->file_taken, page, size);
        return r < 0 ? r : (int) size;
}

int row_spool_take(RowSpool *s, uint8_t *page, size_t page_size) {
        size_t size;

        assert(s->left > 0);
        if (s->taken == s->size) {
                int r = take_from_file(s, page, page_size);

                s->left -= r > 0 ? (uint64_t) r : 0;
                return r;
        }
        memcpy(&size, s->bytes + s->taken, sizeof size);
        memcpy(page, s->bytes + s->taken + sizeof size, size);
        s->taken += sizeof size + size;
        s->left -= size;
        return (int) size;
}

void row_spool_clear(RowSpool *s) {
        free(s->bytes);
        if (s->has_file) {
                (void) close(s->fd);
                temp_space_give(s->file_size);
        }
        *s = (RowSpool) {};
}
