/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows that the decoder has at hand, converted into one array, for sqlipc_cursor_next_block(). Library.
 *
 * A block holds rows of one frame only, which stay where they are while the decoder goes through that frame; so text and
 * blobs are lent in place, as those of a single row are.
 */
#ifndef SQLIPC_BLOCK_H
#define SQLIPC_BLOCK_H

#include "page-decoder.h"
#include "sqlipc.h"

/* Values in a block at most, unless one row has more: 64 KiB, which a processor's cache holds beside the rows themselves. */
#define BLOCK_VALUES_MAX ((size_t) 4096)

typedef struct Block {
        sqlipc_value *values;
        size_t capacity;
} Block;

void block_done(Block *b);

/* Converts the row under `d` and as many behind it as are there, `n_rows_max` (0: any number) and BLOCK_VALUES_MAX at most.
 * Returns 0 with their number, or -ENOMEM. Bytes that the decoder refuses end the block; its next call says so. */
int block_take(Block *b, PageDecoder *d, size_t n_rows_max, size_t *ret_n_rows);

#endif
