/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where every value of a result is copied to: an arena of fresh memory that grows, as a program's own that keeps all rows.
 *
 * All sides of a comparison copy through this one code, inlined alike; what they do before it is what is measured.
 * Memory comes from mmap and goes back after each run, so that each pays the same page faults. A value is a type byte,
 * then 8 bytes of number, or 4 of size, the bytes and a NUL: two arenas of the same rows are equal, byte for byte.
 */
#ifndef BENCH_COPY_H
#define BENCH_COPY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sqlipc.h"

typedef struct CopyChunk {
        struct CopyChunk *previous;
        size_t size; /* mapped, this header too */
        size_t used; /* the same */
} CopyChunk;

typedef struct Copy {
        CopyChunk *last;
        uint64_t n_rows;
        uint64_t n_bytes; /* of values: 8 for a number, their own for text and blobs */
} Copy;

/** Maps a chunk with room for `size` bytes; ends the program where there is no memory. */
void copy_grow(Copy *copy, size_t size);
/** Gives all memory back. */
void copy_done(Copy *copy);
/** Bytes of memory that it holds. */
uint64_t copy_memory(const Copy *copy);
/** A number that differs where any value does. */
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
