/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An arena of fresh memory into which every value of a result is copied. It grows like that of a program that keeps all
 * rows.
 *
 * All sides of a comparison copy with this code, which is inlined in all of them; only the work before it differs. Memory
 * comes from mmap and is returned after each run, so that each run pays for the same page faults. A value is stored as a
 * type byte, followed by a number of 8 bytes, or by a size of 4 bytes, the contents and a NUL. Therefore two arenas with the
 * same rows are equal, byte for byte.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_COPY_H
#define SQLIPC_TOOLS_BENCH_CORE_COPY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/sqlipc.h"

typedef struct CopyChunk {
        struct CopyChunk *previous;
        size_t size; /* mapped bytes, including this header */
        size_t used; /* including this header */
} CopyChunk;

typedef struct Copy {
        CopyChunk *last;
        uint64_t n_rows;
        uint64_t n_bytes; /* of values: 8 for a number, the length for text and blobs */
} Copy;

/** Maps a chunk with room for `size` bytes. Ends the program if there is no memory. */
void copy_grow(Copy *copy, size_t size);
/** Unmaps all memory. */
void copy_done(Copy *copy);
/** Returns the bytes of memory that the arena holds. */
uint64_t copy_memory(const Copy *copy);
/** Returns a hash of all values. */
uint64_t copy_hash(const Copy *copy);

static inline uint8_t *copy_reserve(Copy *copy, size_t size) {
        uint8_t *place;

        if (!copy->last || size > copy->last->size - copy->last->used)
                copy_grow(copy, size);
        place = (uint8_t *) copy->last + copy->last->used;
        copy->last->used += size;
        return place;
}

static inline void copy_null(Copy *copy) {
        *copy_reserve(copy, 1) = SQLIPC_NULL;
}

static inline void copy_integer(Copy *copy, int64_t value) {
        uint8_t *place = copy_reserve(copy, 1 + sizeof value);

        *place = SQLIPC_INTEGER;
        memcpy(place + 1, &value, sizeof value);
        copy->n_bytes += sizeof value;
}

static inline void copy_real(Copy *copy, double value) {
        uint8_t *place = copy_reserve(copy, 1 + sizeof value);

        *place = SQLIPC_REAL;
        memcpy(place + 1, &value, sizeof value);
        copy->n_bytes += sizeof value;
}

static inline void copy_bytes(Copy *copy, sqlipc_type type, const void *bytes, size_t size) {
        uint32_t stored = (uint32_t) size;
        uint8_t *place = copy_reserve(copy, 1 + sizeof stored + size + 1);

        *place = (uint8_t) type;
        memcpy(place + 1, &stored, sizeof stored);
        if (size > 0)
                memcpy(place + 1 + sizeof stored, bytes, size);
        place[1 + sizeof stored + size] = '\0';
        copy->n_bytes += size;
}

#endif
