/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Types of the target, and values in them, see column-kind.h. Pure. */
#include "tools/ctl/migrate/column-kind.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[_KIND_MAX] = {
        [KIND_BIGINT] = "bigint",   [KIND_DOUBLE] = "double precision", [KIND_NUMERIC] = "numeric",
        [KIND_TEXT] = "text",       [KIND_BYTEA] = "bytea",             [KIND_DATE] = "date",
        [KIND_TIMESTAMP] = "timestamp",
};

const char *column_kind_to_string(ColumnKind kind) {
        return names[kind];
}

ColumnKind column_kind_from_string(const char *name) {
        for (int kind = 0; kind < _KIND_MAX; kind++)
                if (names[kind] && g_ascii_strcasecmp(names[kind], name) == 0)
                        return (ColumnKind) kind;
        return _KIND_INVALID;
}

/* The shortest text that is read as the same number. */
static void write_real(double real, char *text, size_t size) {
        char format[] = "%.15g";

        for (int digits = 15; digits <= 17; digits++) {
                format[3] = (char) ('0' + digits % 10);
                (void) g_ascii_formatd(text, (int) size, format, real);
                if (g_ascii_strtod(text, NULL) == real)
                        return;
        }
}

/* A number becomes its text; a text or blob keeps its bytes. */
static void to_text(const sqlipc_value *value, Converted *ret) {
        if (value->type == SQLIPC_INTEGER)
                (void) snprintf(ret->text, sizeof ret->text, "%" PRId64, value->as.integer);
        else if (value->type == SQLIPC_REAL)
                write_real(value->as.real, ret->text, sizeof ret->text);
        else {
                ret->value = *value;
                ret->value.type = SQLIPC_TEXT;
                return;
        }
        ret->value = (sqlipc_value) { .type = SQLIPC_TEXT, .size = (uint32_t) strlen(ret->text), .as.text = ret->text };
}

void value_sent(ColumnKind kind, const sqlipc_value *value, Converted *ret) {
        ret->value = *value;
        if (value->type == SQLIPC_NULL)
                return;
        switch (kind) {
        case KIND_DOUBLE:
                if (value->type == SQLIPC_INTEGER)
                        ret->value = (sqlipc_value) { .type = SQLIPC_REAL, .as.real = (double) value->as.integer };
                break;
        case KIND_NUMERIC: /* a server would round a binary real to 15 digits */
        case KIND_TEXT:
        case KIND_DATE:
        case KIND_TIMESTAMP:
                to_text(value, ret);
                break;
        case KIND_BYTEA:
                to_text(value, ret);
                ret->value.type = SQLIPC_BLOB;
                break;
        case KIND_ANY:
        case KIND_BIGINT:
        case _KIND_MAX:
        case _KIND_INVALID:
                break;
        }
}

/* An integral real that an int64_t holds becomes an integer. */
static void normalize_real(sqlipc_value *value) {
        double real = value->as.real;

        if (real >= -0x1p63 && real < 0x1p63 && trunc(real) == real)
                *value = (sqlipc_value) { .type = SQLIPC_INTEGER, .as.integer = (int64_t) real };
}

static bool read_number(const char *text, size_t size, sqlipc_value *ret) {
        g_autofree char *copy = g_strndup(text, size);
        char *end;
        int64_t integer;

        if (*copy == 0)
                return false;
        errno = 0;
        integer = g_ascii_strtoll(copy, &end, 10);
        if (errno == 0 && *end == 0) {
                *ret = (sqlipc_value) { .type = SQLIPC_INTEGER, .as.integer = integer };
                return true;
        }
        *ret = (sqlipc_value) { .type = SQLIPC_REAL, .as.real = g_ascii_strtod(copy, &end) };
        return *end == 0;
}

void value_compared(ColumnKind kind, const sqlipc_value *value, Converted *ret) {
        sqlipc_value number;

        value_sent(kind, value, ret);
        if (kind != KIND_NUMERIC || ret->value.type != SQLIPC_TEXT)
                return;
        if (read_number(ret->value.as.text, ret->value.size, &number)) {
                ret->value = number;
                if (number.type == SQLIPC_REAL)
                        normalize_real(&ret->value);
        }
}
