/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Rows that wait: the pages of a statement that writes, from its step until its transaction is committed and
 * they can be sent. The first of them are in memory. When the caller says that there are enough there, all further ones go
 * to a temporary file.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_ROW_SPOOL_H
#define SQLIPC_DAEMON_WORKER_CORE_ROW_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RowSpool {
        uint8_t *bytes;         /* owned: pages, each after its size */
        size_t size, capacity;
        size_t taken;           /* of `size` */
        bool has_file;          /* the next page goes there; `fd` is valid */
        int fd;                 /* owned: further pages in the same form */
        uint64_t file_size, file_taken;
        uint64_t left;          /* bytes of the pages that were not taken yet */
} RowSpool;

/* Adds a page; its last `tail_size` bytes are at `tail`. It stays in memory if it may, and all pages before it are there.
 * -ENOMEM; -E2BIG: temporary files would have more than `temp_max` (temp-space.h); other -errno of a file. */
int row_spool_add(RowSpool *s, const uint8_t *page, size_t size, const uint8_t *tail, size_t tail_size, bool in_memory,
                  uint64_t temp_max);

/* Copies the next page to `page`, which has room for `page_size` bytes, and returns its size. One must be left. -errno of
 * the file. */
int row_spool_take(RowSpool *s, uint8_t *page, size_t page_size);

/* Drops all pages. */
void row_spool_clear(RowSpool *s);

#endif
