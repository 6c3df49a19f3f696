/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a decoder joins a row that came in pieces: in memory; or, past a size that the program chose, in a mapping of a file
 * without a name, whose pages the kernel writes out and drops where it needs the memory. Library.
 */
#ifndef SQLIPC_ROW_MEMORY_H
#define SQLIPC_ROW_MEMORY_H

#include <stddef.h>
#include <stdint.h>

typedef struct RowMemory {
        size_t max; /* what is larger goes to a file */
        int fd;     /* -1: memory of malloc() */
} RowMemory;

#define ROW_MEMORY_UNBOUNDED ((RowMemory) { .max = SIZE_MAX, .fd = -1 })

/* A PageResize (page-decoder.h); `userdata` is a RowMemory. Where no file can be had, or the disk is full, it is memory
 * after all: the row is wanted. */
uint8_t *row_memory_resize(void *userdata, uint8_t *bytes, size_t size, size_t new_size);

#endif
