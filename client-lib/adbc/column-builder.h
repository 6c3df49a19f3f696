/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Builds the array of one column from blocks of rows (sqlipc_cursor_next_block()). Pure. ADBC driver.
 *
 * Each value is copied once, from the page into the array's buffer, in a loop for each type. The buffers are handed over to
 * the consumer without a copy. A column without NULL has no bitmap.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_COLUMN_BUILDER_H
#define SQLIPC_CLIENT_LIB_ADBC_COLUMN_BUILDER_H

#include "client-lib/adbc/arrow-abi.h"
#include "client-lib/adbc/column-type.h"

typedef struct ColumnBuilder {
        ColumnType type;
        bool text_as_binary; /* COLUMN_TYPE_UTF8 takes any bytes */
        size_t length;
        size_t n_nulls;
        size_t capacity;   /* of values */
        uint8_t *validity; /* NULL as long as there is no NULL */
        void *values;      /* numbers; or the int32 offsets of `bytes`, one more than values */
        uint8_t *bytes;
        size_t n_bytes;
        size_t bytes_capacity;
        size_t capacity_hint; /* what the array before this one needed */
        size_t bytes_hint;
} ColumnBuilder;

void column_builder_done(ColumnBuilder *builder);

/*
 * Appends `n` values: the first is values[0], and each of the others is `stride` values after the one before.
 *
 * Returns 0; or after an error, which the caller must not ignore because the array then has part of the values: -EDOM, value
 * `*ret_bad` does not fit the type; -EILSEQ, it is not valid UTF-8; -EOVERFLOW, the column would have 2 GiB of bytes;
 * -ENOMEM.
 */
int column_builder_append(ColumnBuilder *builder, const sqlipc_value *values, size_t stride, size_t n, size_t *ret_bad);

/* Returns the size of the buffers in use, in bytes. */
size_t column_builder_size(const ColumnBuilder *builder);

/* Hands the array over; the builder is empty then. Returns 0 or -ENOMEM. */
int column_builder_finish(ColumnBuilder *builder, struct ArrowArray *ret_array);

#endif
