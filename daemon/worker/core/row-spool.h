/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Rows in memory: the pages of a statement that writes, from its step until its transaction is committed and
 * they can be sent. Pure except for malloc().
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
        size_t left;            /* bytes of the pages that were not taken yet */
} RowSpool;

/* Adds a page; its last `tail_size` bytes are at `tail`. -ENOMEM. */
int row_spool_add(RowSpool *s, const uint8_t *page, size_t size, const uint8_t *tail, size_t tail_size);

/* Copies the next page to `page`, which has room for the largest, and returns its size. One must be left. */
size_t row_spool_take(RowSpool *s, uint8_t *page);

/* Drops all pages. */
void row_spool_clear(RowSpool *s);

#endif
