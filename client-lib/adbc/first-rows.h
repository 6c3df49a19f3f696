/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies of the first rows of a result: the types of the columns are chosen by them before the first batch is built. Pure.
 * ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_FIRST_ROWS_H
#define SQLIPC_CLIENT_LIB_ADBC_FIRST_ROWS_H

#include "client-lib/adbc/column-type.h"

typedef struct FirstRows {
        sqlipc_value *values; /* row by row */
        size_t n_columns;
        size_t n_rows;
        size_t capacity; /* of values */
        size_t at;       /* the next row to take */
        size_t size;     /* of all copies, in bytes */
        void **blocks;   /* the bytes that values point to: one piece of memory for each call of first_rows_add() */
        size_t n_blocks;
} FirstRows;

void first_rows_done(FirstRows *rows);

/* Copies `n` rows. Returns 0 or -ENOMEM. */
int first_rows_add(FirstRows *rows, const sqlipc_value *values, size_t n, size_t n_columns);

/* Returns what the rows have in a column. */
SeenValues first_rows_see(const FirstRows *rows, size_t column);

/* Takes at most `n_max` rows, which stay valid until first_rows_done(). Returns their number; 0 at the end. */
size_t first_rows_take(FirstRows *rows, size_t n_max, const sqlipc_value **ret_values);

#endif
