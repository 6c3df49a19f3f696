/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See heap.h.
 */
#include "daemon/worker/sqlite/heap.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

/* Overhead of each block: SQLite's allocator keeps the size in 8 bytes, glibc in 8 more, and rounds the sum up to 16. */
#define BLOCK_OVERHEAD 24

/* One for the whole process, like SQLite's own allocator. It needs no lock because of SQLITE_CONFIG_SINGLETHREAD. */
static struct {
        sqlite3_mem_methods below;
        uint64_t size, size_max;
} heap;

static uint64_t cost_of(void *block) {
        return block ? (uint64_t) heap.below.xSize(block) + BLOCK_OVERHEAD : 0;
}

/* True if a block of `size` bytes fits beside all others. SQLite rounds sizes up, so a few bytes past the limit may be
 * used. */
static bool has_room(int size, uint64_t others_size) {
        return others_size + (uint64_t) size + BLOCK_OVERHEAD <= heap.size_max;
}

static void *allocate(int size) {
        void *block = has_room(size, heap.size) ? heap.below.xMalloc(size) : NULL;

        heap.size += cost_of(block);
        return block;
}

static void release(void *block) {
        heap.size -= cost_of(block);
        heap.below.xFree(block);
}

static void *reallocate(void *block, int size) {
        uint64_t before = cost_of(block);
        void *moved = has_room(size, heap.size - before) ? heap.below.xRealloc(block, size) : NULL;

        if (moved)
                heap.size += cost_of(moved) - before;
        return moved;
}

int heap_limit(uint64_t size_max) {
        sqlite3_mem_methods limited;
        int rc = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &heap.below);

        if (rc != SQLITE_OK)
                return rc;
        heap.size = 0;
        heap.size_max = size_max;
        limited = heap.below;
        limited.xMalloc = allocate;
        limited.xFree = release;
        limited.xRealloc = reallocate;
        return sqlite3_config(SQLITE_CONFIG_MALLOC, &limited);
}
