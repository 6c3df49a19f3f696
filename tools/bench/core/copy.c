/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arena into which results are copied, see copy.h. */
#include "tools/bench/core/copy.h"

#include <glib.h>
#include <sys/mman.h>

#define CHUNK_SIZE ((size_t) 16 * 1024 * 1024)

void copy_grow(Copy *copy, size_t size) {
        size_t needed = MAX(CHUNK_SIZE, size + sizeof(CopyChunk));
        CopyChunk *chunk = mmap(NULL, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (chunk == MAP_FAILED)
                g_error("out of memory for %zu bytes", needed);
        *chunk = (CopyChunk) { .previous = copy->last, .size = needed, .used = sizeof(CopyChunk) };
        copy->last = chunk;
}

void copy_done(Copy *copy) {
        while (copy->last) {
                CopyChunk *chunk = copy->last;

                copy->last = chunk->previous;
                (void) munmap(chunk, chunk->size);
        }
        *copy = (Copy) {};
}

uint64_t copy_memory(const Copy *copy) {
        uint64_t sum = 0;

        for (const CopyChunk *chunk = copy->last; chunk; chunk = chunk->previous)
                sum += chunk->used;
        return sum;
}

/* The ends of chunks depend only on the values, so hashing chunk by chunk gives equal hashes for equal rows. */
uint64_t copy_hash(const Copy *copy) {
        uint64_t hash = copy->n_rows;

        for (const CopyChunk *chunk = copy->last; chunk; chunk = chunk->previous) {
                const uint8_t *p = (const uint8_t *) (chunk + 1), *end = (const uint8_t *) chunk + chunk->used;

                for (uint64_t word; p < end; p += MIN((size_t) (end - p), sizeof word)) {
                        word = 0;
                        memcpy(&word, p, MIN((size_t) (end - p), sizeof word));
                        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
                        hash ^= hash >> 29;
                }
        }
        return hash;
}
