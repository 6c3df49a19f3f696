/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See typed-rows.h.
 */
#include "daemon/worker/rqlite/typed-rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_HEAD_SIZE 5 /* type and size */

/* ---- adding ---- */

static bool add(TypedRows *rows, ValueType type, const void *bytes, size_t size) {
        TextBuffer *t = &rows->bytes;
        uint8_t head[VALUE_HEAD_SIZE] = { (uint8_t) type };

        if (size > UINT32_MAX)
                return false;
        store_le32(head + 1, (uint32_t) size);
        text_buffer_add(t, head, sizeof head);
        text_buffer_add(t, bytes, size);
        if (type == VALUE_TEXT)
                text_buffer_add(t, "", 1);
        return t->state == TEXT_GOOD;
}

static bool add_integer(TypedRows *rows, int64_t value) {
        uint8_t bytes[8];

        store_le64(bytes, (uint64_t) value);
        return add(rows, VALUE_INTEGER, bytes, sizeof bytes);
}

static bool add_real(TypedRows *rows, double value) {
        uint8_t bytes[8];

        store_le_double(bytes, value);
        return add(rows, VALUE_REAL, bytes, sizeof bytes);
}

static bool add_real_text(TypedRows *rows, const char *text) {
        char *end;
        double value = strtod(text, &end);

        return end != text && *end == 0 && add_real(rows, value);
}

static int digit_of(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A BLOB of hexadecimal digits. */
static bool add_hex(TypedRows *rows, const char *digits, size_t size) {
        TextBuffer *t = &rows->bytes;
        size_t start;

        if (size % 2 != 0 || !add(rows, VALUE_BLOB, digits, size / 2)) /* room, for bytes that follow */
                return false;
        start = t->size - size / 2;
        for (size_t i = 0; i < size / 2; i++) {
                int high = digit_of(digits[2 * i]), low = digit_of(digits[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                t->bytes[start + i] = (char) (16 * high + low);
        }
        return true;
}

static bool add_infinity(TypedRows *rows, const char *sign, size_t size) {
        return size == 1 && (*sign == '+' || *sign == '-') && add_real(rows, *sign == '+' ? INFINITY : -INFINITY);
}

/* Some versions of the server send strings as bytes. */
static bool add_tagged(TypedRows *rows, const char *text, size_t size) {
        int64_t number;

        if (size == 0)
                return false;
        switch (*text) {
        case 'i':
                return json_number_int64(text + 1, &number) && add_integer(rows, number);
        case 't':
                return add(rows, VALUE_TEXT, text + 1, size - 1);
        case 'b':
                return add_hex(rows, text + 1, size - 1);
        case 'f':
                return add_infinity(rows, text + 1, size - 1);
        default:
                return false;
        }
}

bool typed_rows_add_typed(TypedRows *rows, const JsonValue *value) {
        switch (value->kind) {
        case JSON_NULL:
                return add(rows, VALUE_NULL, NULL, 0);
        case JSON_NUMBER:
                return add_real_text(rows, value->bytes);
        case JSON_STRING:
        case JSON_BYTES:
                return add_tagged(rows, value->bytes, value->size);
        case JSON_TRUE:
        case JSON_FALSE:
                break;
        }
        return false;
}

bool typed_rows_add_plain(TypedRows *rows, const JsonValue *value, bool is_real) {
        int64_t number;

        switch (value->kind) {
        case JSON_NULL:
                return add(rows, VALUE_NULL, NULL, 0);
        case JSON_TRUE:
        case JSON_FALSE:
                return add_integer(rows, value->kind == JSON_TRUE);
        case JSON_NUMBER:
                return !is_real && json_number_int64(value->bytes, &number) ? add_integer(rows, number)
                                                                           : add_real_text(rows, value->bytes);
        case JSON_STRING:
                return add(rows, VALUE_TEXT, value->bytes, value->size);
        case JSON_BYTES:
                return add(rows, VALUE_BLOB, value->bytes, value->size);
        }
        return false;
}

/* ---- taking ---- */

/* The end of the value at `at`. */
static size_t value_end(const TypedRows *rows, size_t at) {
        const uint8_t *head = (const uint8_t *) rows->bytes.bytes + at;

        return at + VALUE_HEAD_SIZE + load_le32(head + 1) + (head[0] == VALUE_TEXT);
}

bool typed_rows_take(TypedRows *rows, unsigned n) {
        rows->start = rows->end;
        if (typed_rows_size(rows) == 0) {
                typed_rows_clear(rows);
                return false;
        }
        for (unsigned i = 0; i < n; i++)
                rows->end = value_end(rows, rows->end);
        return true;
}

void typed_rows_values(const TypedRows *rows, unsigned n, PageValue *ret_values) {
        size_t at = rows->start;

        for (unsigned i = 0; i < n; i++) {
                const uint8_t *head = (const uint8_t *) rows->bytes.bytes + at;

                ret_values[i] = (PageValue) {
                        .type = (ValueType) head[0],
                        .bytes = head + VALUE_HEAD_SIZE,
                        .size = load_le32(head + 1),
                };
                at = value_end(rows, at);
        }
}

void typed_rows_clear(TypedRows *rows) {
        text_buffer_cut(&rows->bytes, 0);
        rows->start = rows->end = 0;
}

void typed_rows_done(TypedRows *rows) {
        text_buffer_done(&rows->bytes);
        rows->start = rows->end = 0;
}
