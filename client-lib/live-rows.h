/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows of a live query's result, which are matched by their keys with those of the result before. Library. Pure.
 *
 * A row that is equal in both results is in memory once. Rows with the same key are matched in their order: the first with
 * the first.
 */
#ifndef SQLIPC_CLIENT_LIB_LIVE_ROWS_H
#define SQLIPC_CLIENT_LIB_LIVE_ROWS_H

#include <stdint.h>

#include "client-lib/rows-difference.h"
#include "client-lib/sqlipc.h"

/* A row with its bytes, in one piece of memory. */
typedef struct LiveRow {
        unsigned n_ref; /* one for each result that has it */
        uint64_t hash;  /* of its key */
        sqlipc_value values[];
} LiveRow;

typedef struct LiveRows {
        unsigned n_columns;
        size_t n, capacity;
        LiveRow **rows;
        RowsMatch *matches; /* with the rows of the result before */
} LiveRows;

/* The columns of the key, and the rows of the result before by their keys. */
typedef struct LiveIndex {
        const unsigned *key_columns; /* borrowed */
        size_t n_key_columns;
        const LiveRows *before;      /* borrowed */
        size_t n_buckets;            /* a power of 2; 0: nothing can match */
        size_t *buckets, *next;      /* of rows + 1, 0: none; a row that was matched leaves its list */
} LiveIndex;

/* Prepares to match rows of `n_columns` with those of `before`. The key columns exist. -ENOMEM. */
int live_rows_index_init(LiveIndex *index, const LiveRows *before, unsigned n_columns, const unsigned *key_columns,
                    size_t n_key_columns);
void live_rows_index_done(LiveIndex *index);

/* Adds a row, matched with one of `index`. The values are copied, unless a row before has them all. -ENOMEM. */
int live_rows_add(LiveRows *rows, LiveIndex *index, const sqlipc_value *values);

/* Frees the rows. They are empty afterwards. */
void live_rows_done(LiveRows *rows);

#endif
