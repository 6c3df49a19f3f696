/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory in which a decoder joins a row that came in pieces. Rows above a size that the program chose are joined in a
 * mapped file without a name, whose pages the kernel writes out and drops when it needs the memory. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_ROW_MEMORY_H
#define SQLIPC_CLIENT_LIB_ROW_MEMORY_H

#include <stddef.h>
#include <stdint.h>

typedef struct RowMemory {
        size_t max; /* larger rows go to a file */
        int fd;     /* -1: memory from malloc() */
} RowMemory;

#define ROW_MEMORY_UNBOUNDED ((RowMemory) { .max = SIZE_MAX, .fd = -1 })

/* A PageResize (page-decoder.h); `userdata` is a RowMemory. If no file can be created, or the disk is full, uses memory,
 * because the program wants the row in any case. */
uint8_t *row_memory_resize(void *userdata, uint8_t *bytes, size_t size, size_t new_size);

#endif
