/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The checksum of a table: the SHA-256 digests of its rows, added up as four numbers of 64 bits. Pure.
 *
 * The sum does not depend on the order of the rows, which differs between engines, and takes constant memory. Tables with
 * different rows, or with a row more or less often, have equal sums only by an accident of 2^-256, unless a user has chosen
 * the rows for that; it is no signature.
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_ROW_SUM_H
#define SQLIPC_TOOLS_CTL_MIGRATE_ROW_SUM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-lib/sqlipc.h"

typedef struct RowSum {
        uint64_t n_rows;
        uint64_t parts[4];
        GChecksum *digest; /* owned; of the row that is being added */
} RowSum;

void row_sum_init(RowSum *sum);
void row_sum_done(RowSum *sum);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RowSum, row_sum_done)

/** Adds a value to the row; and ends the row. */
void row_sum_add_value(RowSum *sum, const sqlipc_value *value);
void row_sum_end_row(RowSum *sum);

bool row_sum_equal(const RowSum *a, const RowSum *b);
/** In hexadecimal; the caller frees it. */
char *row_sum_to_string(const RowSum *sum);

#endif
