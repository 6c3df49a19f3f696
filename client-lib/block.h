/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Converts the rows that the decoder has at hand into one array, for sqlipc_cursor_next_block(). Library.
 *
 * A block holds rows of one frame only. They stay in place while the decoder goes through that frame, so text and blobs are
 * lent in place, as those of a single row are.
 */
#ifndef SQLIPC_CLIENT_LIB_BLOCK_H
#define SQLIPC_CLIENT_LIB_BLOCK_H

#include "client-lib/sqlipc.h"
#include "dbus-interfaces/wire/page-decoder.h"

/* Limit of values in a block, unless a single row has more. They take 64 KiB, which fits into a CPU cache beside the
 * rows. */
#define BLOCK_VALUES_MAX ((size_t) 4096)

typedef struct Block {
        sqlipc_value *values;
        size_t capacity;
} Block;

void block_done(Block *b);

/* Converts the decoder's current row and the rows after it that have arrived, at most `n_rows_max` (0: no limit) and at
 * most BLOCK_VALUES_MAX values. Returns 0 and sets `*ret_n_rows`, or returns -ENOMEM. Bytes that the decoder rejects end
 * the block; the next call of the decoder reports them. */
int block_take(Block *b, PageDecoder *d, size_t n_rows_max, size_t *ret_n_rows);

#endif
