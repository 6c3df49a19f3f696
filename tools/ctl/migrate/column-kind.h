/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The types of the target's columns, and the form that a value has in each of them. Pure.
 *
 *      source ──value_sent()──> Load        source ──value_compared()──> checksum
 *                                           target ──value_compared()──> checksum
 *
 * The same function makes the compared form on both sides, so the checksums are equal exactly if these forms are. Values of
 * the same form are listed here; no other difference is lost:
 *
 *      KIND_ANY        nothing: type and bytes of each value
 *      KIND_DOUBLE     5 and 5.0
 *      KIND_NUMERIC    5 and 5.0 and '5.00'
 *      KIND_TEXT       5 and '5'; X'61' and 'a'
 *      KIND_BYTEA      the same
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_COLUMN_KIND_H
#define SQLIPC_TOOLS_CTL_MIGRATE_COLUMN_KIND_H

#include "client-lib/sqlipc.h"

typedef enum ColumnKind {
        KIND_ANY,            /* of a target in SQLite's dialect: any value */
        KIND_BIGINT,
        KIND_DOUBLE,
        KIND_NUMERIC,
        KIND_TEXT,
        KIND_BYTEA,
        KIND_DATE,           /* these two are texts for the service */
        KIND_TIMESTAMP,
        _KIND_MAX,
        _KIND_INVALID = -1,
} ColumnKind;

/** The name of the type in PostgreSQL; NULL for KIND_ANY. */
const char *column_kind_to_string(ColumnKind kind);
/** The kind of this name, in any case of letters; or _KIND_INVALID. */
ColumnKind column_kind_from_string(const char *name);

/* A value in another form, with room for the text of a number. */
typedef struct Converted {
        sqlipc_value value;
        char text[32];
} Converted;

/** The form in which a value is sent to the target. `ret` borrows the bytes of `value`. */
void value_sent(ColumnKind kind, const sqlipc_value *value, Converted *ret);
/** The form in which it is compared. value_compared() of a sent value is value_compared() of the value itself. */
void value_compared(ColumnKind kind, const sqlipc_value *value, Converted *ret);

#endif
