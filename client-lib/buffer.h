/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A byte queue in one contiguous piece of memory, for bytes that were received but not read, or written but not sent.
 * Library.
 */
#ifndef SQLIPC_CLIENT_LIB_BUFFER_H
#define SQLIPC_CLIENT_LIB_BUFFER_H

#include <string.h>

#include "client-lib/util.h"

/* An empty buffer keeps at most this much memory. */
#define BUFFER_SIZE_KEPT ((size_t) 64 * 1024)

typedef struct Buffer {
        uint8_t *bytes;
        size_t start, fill, capacity; /* the content is bytes[start..fill) */
} Buffer;

static inline size_t buffer_size(const Buffer *b) {
        return b->fill - b->start;
}

static inline void buffer_done(Buffer *b) {
        free(b->bytes);
        *b = (Buffer) { .capacity = 0 };
}

/* Removes `size` bytes from the front. Frees the memory of a large buffer that becomes empty. */
static inline void buffer_drop(Buffer *b, size_t size) {
        b->start += size;
        if (b->start < b->fill)
                return;
        b->start = b->fill = 0;
        if (b->capacity > BUFFER_SIZE_KEPT)
                buffer_done(b);
}

/* Moves at most `size` bytes from the front to `room`. Returns their number. */
static inline size_t buffer_take(Buffer *b, uint8_t *room, size_t size) {
        size_t n = buffer_size(b) < size ? buffer_size(b) : size;

        memcpy(room, b->bytes + b->start, n);
        buffer_drop(b, n);
        return n;
}

/* Appends `size` uninitialized bytes, which belong to the content at once, and returns their address. NULL: no memory. */
static inline uint8_t *buffer_extend(Buffer *b, size_t size) {
        size_t used = buffer_size(b), wanted = b->capacity > 0 ? 2 * b->capacity : 1024;
        uint8_t *bytes;

        if (size > b->capacity - b->fill && b->start > 0) {
                memmove(b->bytes, b->bytes + b->start, used);
                b->start = 0;
                b->fill = used;
        }
        if (size > b->capacity - b->fill) {
                if (size > SIZE_MAX / 2 - used)
                        return NULL;
                wanted = wanted > used + size ? wanted : used + size;
                bytes = realloc(b->bytes, wanted);
                if (!bytes)
                        return NULL;
                b->bytes = bytes;
                b->capacity = wanted;
        }
        b->fill += size;
        return b->bytes + b->fill - size;
}

#endif
