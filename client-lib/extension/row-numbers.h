/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: pure. Numbers for rows without a rowid, by their content. SQLite asks for rowids in plans that may meet a row twice:
 * terms joined by OR, and RIGHT or FULL JOIN. Then the row must have the same number each time, although the order of rows
 * may differ. Rows with the same content are numbered by their occurrence: all of them match a search, or none does.
 *
 * The number is a hash: two different rows of a million have the same one with a probability of 1 in 10^7.
 */
#ifndef SQLIPC_CLIENT_LIB_EXTENSION_ROW_NUMBERS_H
#define SQLIPC_CLIENT_LIB_EXTENSION_ROW_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sqlipc_value sqlipc_value;

/* The contents that one search has numbered. */
typedef struct RowNumbers {
        struct {
                uint64_t hash, n; /* n: occurrences; 0: the slot is free */
        } * slots;                /* owned */
        size_t n_slots, n_used;   /* n_slots: 0 or a power of two */
} RowNumbers;

/* Numbers the next row of the search. Returns 0 or -ENOMEM. */
int row_numbers_next(RowNumbers *numbers, const sqlipc_value *values, unsigned n_values, int64_t *ret);

/* Frees everything, for the next search. */
void row_numbers_done(RowNumbers *numbers);

#endif
