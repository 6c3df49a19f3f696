/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds the array of one column (column-builder.h). Pure. ADBC driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/column-builder.h"
#include "client-lib/adbc/utf8-check.h"

#define CAPACITY_MIN ((size_t) 16)

static bool has_bytes(const ColumnBuilder *b) { return b->type == COLUMN_TYPE_UTF8 || b->type == COLUMN_TYPE_BINARY; }

static size_t value_size(const ColumnBuilder *b) { return has_bytes(b) ? sizeof(int32_t) : sizeof(int64_t); }

static size_t bitmap_size(size_t n) { return n / 8 + 1; }

void column_builder_done(ColumnBuilder *b) {
        free(b->validity);
        free(b->values);
        free(b->bytes);
        *b = (ColumnBuilder) { .type = b->type, .text_as_binary = b->text_as_binary };
}

/* ---- Memory -------------------------------------------------------------------------------------------------------- */

static size_t grown(size_t capacity, size_t needed, size_t hint) {
        size_t more = capacity > 0 ? 2 * capacity : hint;

        return more > needed ? more : needed;
}

static int resize_bitmap(ColumnBuilder *b, size_t capacity) {
        uint8_t *validity = realloc(b->validity, bitmap_size(capacity));

        if (!validity)
                return -ENOMEM;
        b->validity = validity;
        return 0;
}

static int reserve(ColumnBuilder *b, size_t n) {
        size_t needed = b->length + n, capacity;
        bool fresh = !b->values;
        void *values;

        if (!fresh && needed <= b->capacity)
                return 0;
        capacity = grown(b->capacity, needed, b->capacity_hint > CAPACITY_MIN ? b->capacity_hint : CAPACITY_MIN);
        values = realloc(b->values, (capacity + 1) * value_size(b));
        if (!values)
                return -ENOMEM;
        b->values = values;
        if (fresh && has_bytes(b))
                *(int32_t *) b->values = 0;
        if (b->validity && resize_bitmap(b, capacity) < 0)
                return -ENOMEM;
        b->capacity = capacity;
        return 0;
}

static int reserve_bytes(ColumnBuilder *b, size_t n) {
        size_t needed = b->n_bytes + n, capacity;
        uint8_t *bytes;

        if (needed > INT32_MAX)
                return -EOVERFLOW;
        if (b->bytes && needed <= b->bytes_capacity)
                return 0;
        capacity = grown(b->bytes_capacity, needed, b->bytes_hint > CAPACITY_MIN ? b->bytes_hint : CAPACITY_MIN);
        bytes = realloc(b->bytes, capacity);
        if (!bytes)
                return -ENOMEM;
        b->bytes = bytes;
        b->bytes_capacity = capacity;
        return 0;
}

/* ---- NULL ---------------------------------------------------------------------------------------------------------- */

/* Sets `n` bits from `from` on. */
static void set_bits(uint8_t *bits, size_t from, size_t n) {
        for (; n > 0 && from % 8 != 0; n--, from++)
                bits[from / 8] |= (uint8_t) (1 << from % 8);
        memset(bits + from / 8, 0xff, n / 8);
        from += n / 8 * 8;
        if (n % 8 > 0)
                bits[from / 8] = (uint8_t) ((1 << n % 8) - 1);
}

/* Marks the `n` values after `length` as not NULL. Bits after them may have any value. */
static void mark_valid(ColumnBuilder *b, size_t n) {
        if (b->validity)
                set_bits(b->validity, b->length, n);
}

static int mark_null(ColumnBuilder *b, size_t i) {
        size_t at = b->length + i;

        if (!b->validity) {
                if (resize_bitmap(b, b->capacity) < 0)
                        return -ENOMEM;
                memset(b->validity, 0xff, bitmap_size(b->capacity));
        }
        b->validity[at / 8] &= (uint8_t) ~(1 << at % 8);
        b->n_nulls++;
        return 0;
}

/* ---- Values -------------------------------------------------------------------------------------------------------- */

static int append_integers(ColumnBuilder *b, const sqlipc_value *values, size_t stride, size_t n, size_t *ret_bad) {
        int64_t *to = (int64_t *) b->values + b->length;

        for (size_t i = 0; i < n; i++, values += stride) {
                if (__builtin_expect(values->type != SQLIPC_INTEGER, 0)) {
                        if (values->type != SQLIPC_NULL) {
                                *ret_bad = i;
                                return -EDOM;
                        }
                        if (mark_null(b, i) < 0)
                                return -ENOMEM;
                }
                to[i] = values->as.integer; /* 0 for NULL */
        }
        return 0;
}

static int append_doubles(ColumnBuilder *b, const sqlipc_value *values, size_t stride, size_t n, size_t *ret_bad) {
        double *to = (double *) b->values + b->length;

        for (size_t i = 0; i < n; i++, values += stride) {
                if (__builtin_expect(values->type == SQLIPC_REAL, 1)) {
                        to[i] = values->as.real;
                } else if (values->type == SQLIPC_NULL) {
                        to[i] = 0;
                        if (mark_null(b, i) < 0)
                                return -ENOMEM;
                } else if (values->type == SQLIPC_INTEGER && column_type_is_exact(values->as.integer)) {
                        to[i] = (double) values->as.integer;
                } else {
                        *ret_bad = i;
                        return -EDOM;
                }
        }
        return 0;
}

/* Finds the value of these that is not valid UTF-8. */
static int check_each(const ColumnBuilder *b, size_t n, size_t *ret_bad) {
        const int32_t *offsets = (const int32_t *) b->values + b->length;

        for (size_t i = 0; i < n; i++)
                if (!utf8_check(b->bytes + offsets[i], (size_t) (offsets[i + 1] - offsets[i]))) {
                        *ret_bad = i;
                        return -EILSEQ;
                }
        return 0;
}

/* Checks `n` values at once: all their bytes are valid, and no character spans two values. */
static int check_text(const ColumnBuilder *b, size_t from, size_t n, size_t *ret_bad) {
        const int32_t *offsets = (const int32_t *) b->values + b->length;
        bool valid = utf8_check(b->bytes + from, b->n_bytes - from);

        for (size_t i = 0; valid && i < n; i++)
                valid = offsets[i] == offsets[i + 1] || (b->bytes[offsets[i]] & 0xc0) != 0x80;
        return valid ? 0 : check_each(b, n, ret_bad);
}

static bool takes(const ColumnBuilder *b, sqlipc_type type) {
        return type == SQLIPC_TEXT || (type == SQLIPC_BLOB && b->type == COLUMN_TYPE_BINARY);
}

/* Returns the sum of the sizes; a NULL or a number has the size 0. */
static size_t sum_of_sizes(const sqlipc_value *values, size_t stride, size_t n) {
        size_t sum = 0;

        for (size_t i = 0; i < n; i++, values += stride)
                sum += values->size;
        return sum;
}

static int append_bytes(ColumnBuilder *b, const sqlipc_value *values, size_t stride, size_t n, size_t *ret_bad) {
        int32_t *offsets = (int32_t *) b->values + b->length;
        size_t from = b->n_bytes;
        int r;

        r = reserve_bytes(b, sum_of_sizes(values, stride, n));
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++, values += stride) {
                if (__builtin_expect(takes(b, values->type), 1)) {
                        memcpy(b->bytes + b->n_bytes, values->as.blob, values->size);
                        b->n_bytes += values->size;
                } else if (values->type == SQLIPC_NULL) {
                        if (mark_null(b, i) < 0)
                                return -ENOMEM;
                } else {
                        *ret_bad = i;
                        return -EDOM;
                }
                offsets[i + 1] = (int32_t) b->n_bytes;
        }
        return b->type == COLUMN_TYPE_UTF8 && !b->text_as_binary ? check_text(b, from, n, ret_bad) : 0;
}

int column_builder_append(ColumnBuilder *b, const sqlipc_value *values, size_t stride, size_t n, size_t *ret_bad) {
        int r = reserve(b, n);

        if (r < 0)
                return r;
        mark_valid(b, n);
        if (b->type == COLUMN_TYPE_INT64)
                r = append_integers(b, values, stride, n, ret_bad);
        else if (b->type == COLUMN_TYPE_DOUBLE)
                r = append_doubles(b, values, stride, n, ret_bad);
        else
                r = append_bytes(b, values, stride, n, ret_bad);
        if (r >= 0)
                b->length += n;
        return r;
}

/* ---- The array ----------------------------------------------------------------------------------------------------- */

size_t column_builder_size(const ColumnBuilder *b) { return b->length * value_size(b) + b->n_bytes; }

int column_builder_finish(ColumnBuilder *b, struct ArrowArray *ret_array) {
        void *buffers[ARROW_STRUCT_BUFFERS_MAX] = { NULL };
        int r;

        /* An array of no values has its offset 0, and buffers that are not NULL. */
        r = reserve(b, 0);
        if (r >= 0 && has_bytes(b))
                r = reserve_bytes(b, 0);
        if (r < 0)
                return r;
        buffers[0] = b->validity;
        buffers[1] = b->values;
        buffers[2] = b->bytes;
        r = arrow_struct_array(ret_array, (int64_t) b->length, (int64_t) b->n_nulls, buffers, has_bytes(b) ? 3 : 2, 0);
        if (r < 0)
                return r;
        *b = (ColumnBuilder) {
                .type = b->type,
                .text_as_binary = b->text_as_binary,
                .capacity_hint = b->length,
                .bytes_hint = b->n_bytes + b->n_bytes / 16,
        };
        return 0;
}
