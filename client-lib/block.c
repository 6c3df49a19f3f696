/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks of rows (block.h). Library. */
#include <errno.h>
#include <stdlib.h>

#include "client-lib/block.h"

void block_done(Block *b) {
        free(b->values);
        *b = (Block) { .capacity = 0 };
}

static int reserve(Block *b, size_t n) {
        sqlipc_value *values;

        if (n <= b->capacity)
                return 0;
        values = reallocarray(b->values, n, sizeof *values);
        if (!values)
                return -ENOMEM;
        b->values = values;
        b->capacity = n;
        return 0;
}

static void take_row(const PageDecoder *d, sqlipc_value *values) {
        for (unsigned i = 0; i < d->n_columns; i++) {
                PageValue from = page_decoder_value(d, i);
                sqlipc_value *to = &values[i];

                to->type = (sqlipc_type) from.type;
                to->size = 0;
                switch (from.type) {
                case VALUE_INTEGER:
                        to->as.integer = (int64_t) load_le64(from.bytes);
                        break;
                case VALUE_REAL:
                        to->as.real = load_le_double(from.bytes);
                        break;
                case VALUE_TEXT:
                case VALUE_BLOB:
                        to->size = (uint32_t) from.size;
                        to->as.blob = from.bytes;
                        break;
                case VALUE_NULL:
                        to->as.integer = 0;
                        break;
                }
        }
}

int block_take(Block *b, PageDecoder *d, size_t n_rows_max, size_t *ret_n_rows) {
        size_t n_columns = d->n_columns, n = 0, fit = n_columns > 0 ? BLOCK_VALUES_MAX / n_columns : BLOCK_VALUES_MAX;
        size_t max = (size_t) d->rows_left + 1;

        fit = fit > 0 ? fit : 1;
        max = max < fit ? max : fit;
        max = n_rows_max > 0 && n_rows_max < max ? n_rows_max : max;
        if (reserve(b, max * n_columns + 1) < 0)
                return -ENOMEM;
        do
                take_row(d, b->values + n++ * n_columns);
        while (n < max && page_decoder_next(d) == PAGE_ROW);
        *ret_n_rows = n;
        return 0;
}
