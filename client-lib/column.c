/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Columns of a run and values of its current row, read in place from the decoder. Library.
 *
 * The decoder has checked the whole row before it returned it, so only the index is checked here.
 */
#include "client-lib/cursor.h"

static bool has_columns(const sqlipc_cursor *c, unsigned column) {
        return c && c->fetch && column < c->fetch->decoder.n_columns;
}

_public_ unsigned sqlipc_column_count(sqlipc_cursor *c) {
        return c && c->fetch ? c->fetch->decoder.n_columns : 0;
}

_public_ const char *sqlipc_column_name(sqlipc_cursor *c, unsigned column) {
        const char *name = NULL, *declared_type;

        if (has_columns(c, column))
                page_decoder_column(&c->fetch->decoder, column, &name, &declared_type);
        return name;
}

_public_ const char *sqlipc_column_decltype(sqlipc_cursor *c, unsigned column) {
        const char *name, *declared_type = NULL;

        if (has_columns(c, column))
                page_decoder_column(&c->fetch->decoder, column, &name, &declared_type);
        return declared_type;
}

static inline PageValue value_at(const sqlipc_cursor *c, unsigned column) {
        if (!c || column >= c->n_values)
                return (PageValue) { .type = VALUE_NULL };
        return page_decoder_value(&c->fetch->decoder, column);
}

_public_ sqlipc_type sqlipc_column_type(sqlipc_cursor *c, unsigned column) {
        return (sqlipc_type) value_at(c, column).type;
}

_public_ int sqlipc_column_is_null(sqlipc_cursor *c, unsigned column) {
        return value_at(c, column).type == VALUE_NULL;
}

/* Converts as C does if C defines the result, otherwise to SQLite's bounds. */
static int64_t real_to_integer(double value) {
        if (value >= 9223372036854775808.0)
                return INT64_MAX;
        if (value <= -9223372036854775808.0)
                return INT64_MIN;
        return value == value ? (int64_t) value : 0;
}

_public_ int64_t sqlipc_column_int64(sqlipc_cursor *c, unsigned column) {
        PageValue v = value_at(c, column);

        if (v.type == VALUE_INTEGER)
                return (int64_t) load_le64(v.bytes);
        return v.type == VALUE_REAL ? real_to_integer(load_le_double(v.bytes)) : 0;
}

_public_ double sqlipc_column_double(sqlipc_cursor *c, unsigned column) {
        PageValue v = value_at(c, column);

        if (v.type == VALUE_REAL)
                return load_le_double(v.bytes);
        return v.type == VALUE_INTEGER ? (double) (int64_t) load_le64(v.bytes) : 0.0;
}

_public_ const void *sqlipc_column_blob(sqlipc_cursor *c, unsigned column, size_t *ret_size) {
        PageValue v = value_at(c, column);
        bool bytes = v.type == VALUE_TEXT || v.type == VALUE_BLOB;

        if (ret_size)
                *ret_size = bytes ? v.size : 0;
        return bytes ? v.bytes : NULL;
}

_public_ const char *sqlipc_column_text(sqlipc_cursor *c, unsigned column, size_t *ret_size) {
        return sqlipc_column_blob(c, column, ret_size);
}

_public_ int64_t sqlipc_cursor_changes(sqlipc_cursor *c) {
        return c ? c->totals.n_changes : 0;
}

_public_ uint64_t sqlipc_cursor_sequence(sqlipc_cursor *c) {
        return c ? c->totals.sequence : 0;
}

_public_ int64_t sqlipc_cursor_last_rowid(sqlipc_cursor *c) {
        return c ? c->totals.last_rowid : 0;
}

_public_ void sqlipc_cursor_get_totals(sqlipc_cursor *c, uint64_t *ret_rows, uint64_t *ret_bytes, uint64_t *ret_usec) {
        if (ret_rows)
                *ret_rows = c ? c->totals.n_rows : 0;
        if (ret_bytes)
                *ret_bytes = c ? c->totals.n_bytes : 0;
        if (ret_usec)
                *ret_usec = c ? c->totals.usec : 0;
}
