/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies values of SQLite in process with copy.h, in the two ways that are compared. The functions are inlined, as those of
 * copy.h are, because the work of a side on each value is what is measured.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_COPY_SQLITE_H
#define SQLIPC_TOOLS_BENCH_CORE_COPY_SQLITE_H

#include <sqlite3.h>

#include "tools/bench/core/copy.h"

/** The fastest way: reads type and contents from one sqlite3_value. */
static inline void copy_sqlite_value(Copy *copy, sqlite3_value *value) {
        switch (sqlite3_value_type(value)) {
        case SQLITE_INTEGER:
                copy_integer(copy, sqlite3_value_int64(value));
                break;
        case SQLITE_FLOAT:
                copy_real(copy, sqlite3_value_double(value));
                break;
        case SQLITE_TEXT: {
                const void *text = sqlite3_value_text(value);

                copy_bytes(copy, SQLIPC_TEXT, text, (size_t) sqlite3_value_bytes(value));
                break;
        }
        case SQLITE_BLOB: {
                const void *blob = sqlite3_value_blob(value);

                copy_bytes(copy, SQLIPC_BLOB, blob, (size_t) sqlite3_value_bytes(value));
                break;
        }
        default:
                copy_null(copy);
        }
}

/** The usual way of programs: sqlite3_column_type(), then the accessor for that type. */
static inline void copy_sqlite_column(Copy *copy, sqlite3_stmt *statement, int i) {
        switch (sqlite3_column_type(statement, i)) {
        case SQLITE_INTEGER:
                copy_integer(copy, sqlite3_column_int64(statement, i));
                break;
        case SQLITE_FLOAT:
                copy_real(copy, sqlite3_column_double(statement, i));
                break;
        case SQLITE_TEXT: {
                const void *text = sqlite3_column_text(statement, i);

                copy_bytes(copy, SQLIPC_TEXT, text, (size_t) sqlite3_column_bytes(statement, i));
                break;
        }
        case SQLITE_BLOB: {
                const void *blob = sqlite3_column_blob(statement, i);

                copy_bytes(copy, SQLIPC_BLOB, blob, (size_t) sqlite3_column_bytes(statement, i));
                break;
        }
        default:
                copy_null(copy);
        }
}

#endif
