/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Arrow type of a column: from its declared type, and from the values of the first rows. Pure. ADBC driver.
 *
 * SQLite's columns have no type that binds: any value may be in any column. An Arrow column has one type for all batches. So
 * the type is decided once, and a later value that does not fit is an error (column-builder.h).
 *
 *      int64     INTEGER
 *      double    REAL, and INTEGER that a double holds exactly
 *      utf8      TEXT that is valid UTF-8
 *      binary    BLOB, and the bytes of any TEXT
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_COLUMN_TYPE_H
#define SQLIPC_CLIENT_LIB_ADBC_COLUMN_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "client-lib/sqlipc.h"

typedef enum ColumnType {
        COLUMN_TYPE_UNKNOWN, /* the declared type does not tell */
        COLUMN_TYPE_INT64,
        COLUMN_TYPE_DOUBLE,
        COLUMN_TYPE_UTF8,
        COLUMN_TYPE_BINARY,
} ColumnType;

/* The option adbc.sqlipc.types. */
typedef enum TypeSource {
        TYPE_SOURCE_AUTO,     /* the declared type, if the first values fit it; else the first values */
        TYPE_SOURCE_DECLARED, /* the declared type; the first values only if it does not tell */
        TYPE_SOURCE_VALUES,   /* the first values; the declared type only if they are all NULL */
} TypeSource;

/* The kinds of values that the first rows have in one column. */
typedef struct SeenValues {
        bool integer;
        bool real;
        bool text;
        bool blob;
        bool wide;         /* an integer that no double holds exactly */
        sqlipc_type first; /* of the first value that is not NULL; 0: none */
} SeenValues;

/* Returns the type that a declared type (NULL: none) means by SQLite's rules of affinity. NUMERIC affinity tells a type only
 * for "DECIMAL" and "NUMERIC": a DATE or BOOLEAN may be text or a number. */
ColumnType column_type_of_declaration(const char *declared);

void column_type_see(SeenValues *seen, const sqlipc_value *value);

/* Decides. The result is never unknown. */
ColumnType column_type_choose(TypeSource source, ColumnType declared, const SeenValues *seen);

/* Returns Arrow's format string. With `text_as_binary`, utf8 is binary, too. An unknown type is Arrow's null type. */
const char *column_type_format(ColumnType type, bool text_as_binary);

/* True if a double holds the integer exactly. */
static inline bool column_type_is_exact(int64_t value) {
        double d = (double) value;

        return d < 9223372036854775808.0 && (int64_t) d == value;
}

#endif
