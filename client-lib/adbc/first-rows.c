/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies of the first rows of a result (first-rows.h). Pure. ADBC driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/first-rows.h"

void first_rows_done(FirstRows *rows) {
        for (size_t i = 0; i < rows->n_blocks; i++)
                free(rows->blocks[i]);
        free(rows->blocks);
        free(rows->values);
        *rows = (FirstRows) { .n_rows = 0 };
}

static int reserve(FirstRows *rows, size_t n_values) {
        size_t needed = rows->n_rows * rows->n_columns + n_values, capacity = 2 * rows->capacity;
        sqlipc_value *values;
        void **blocks;

        blocks = reallocarray(rows->blocks, rows->n_blocks + 1, sizeof *blocks);
        if (!blocks)
                return -ENOMEM;
        rows->blocks = blocks;
        if (needed <= rows->capacity)
                return 0;
        capacity = capacity > needed ? capacity : needed;
        values = reallocarray(rows->values, capacity, sizeof *values);
        if (!values)
                return -ENOMEM;
        rows->values = values;
        rows->capacity = capacity;
        return 0;
}

int first_rows_add(FirstRows *rows, const sqlipc_value *values, size_t n, size_t n_columns) {
        size_t n_values = n * n_columns, size = 1;
        sqlipc_value *to;
        uint8_t *bytes;

        rows->n_columns = n_columns;
        if (reserve(rows, n_values) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n_values; i++)
                size += values[i].size;
        bytes = malloc(size);
        if (!bytes)
                return -ENOMEM;
        rows->blocks[rows->n_blocks++] = bytes;
        to = rows->values + rows->n_rows * n_columns;
        for (size_t i = 0; i < n_values; i++) {
                to[i] = values[i];
                if (values[i].type == SQLIPC_TEXT || values[i].type == SQLIPC_BLOB) {
                        memcpy(bytes, values[i].as.blob, values[i].size);
                        to[i].as.blob = bytes;
                        bytes += values[i].size;
                }
        }
        rows->n_rows += n;
        rows->size += size + n_values * sizeof *values;
        return 0;
}

SeenValues first_rows_see(const FirstRows *rows, size_t column) {
        SeenValues seen = { .first = 0 };

        for (size_t i = 0; i < rows->n_rows; i++)
                column_type_see(&seen, &rows->values[i * rows->n_columns + column]);
        return seen;
}

size_t first_rows_take(FirstRows *rows, size_t n_max, const sqlipc_value **ret_values) {
        size_t n = rows->n_rows - rows->at;

        n = n < n_max ? n : n_max;
        *ret_values = rows->values + rows->at * rows->n_columns;
        rows->at += n;
        return n;
}
