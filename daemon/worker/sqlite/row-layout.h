/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Finds the values of a row in SQLite's memory without a call for each of them.
 *
 * SQLite keeps the values of a row in an array, but its interface does not say so. So all values of a statement's first row
 * are asked for, and must be at equal distances. After that, only the first and the last value of each row are asked for,
 * and must be as far apart as those of the first row; the distance gives the addresses of the values between them. If a
 * check fails, each value of the statement is asked for from then on.
 *
 * tests/reliability/differential/sqlipc-worker-values is the worker with this check replaced by one that always fails.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_ROW_LAYOUT_H
#define SQLIPC_DAEMON_WORKER_SQLITE_ROW_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sqlite3_stmt sqlite3_stmt;
typedef struct sqlite3_value sqlite3_value;

/* Belongs to a compiled statement. All zeros: no row was seen. */
typedef struct RowLayout {
        unsigned n_columns; /* of the rows that were seen. SQLite may compile a statement again, with other columns */
        size_t distance;    /* in bytes, from each value to the next; 0: the values are not in an array */
} RowLayout;

/* Returns the first value of the row that `stmt` is at if all its values are found by `layout`, otherwise NULL. Borrowed
 * until the next step. */
sqlite3_value *row_layout_first(RowLayout *layout, sqlite3_stmt *stmt, unsigned n_columns);

/* Value `i` of the row whose first value row_layout_first() returned. */
static inline sqlite3_value *row_layout_value(const RowLayout *layout, sqlite3_value *first, unsigned i) {
        return (sqlite3_value *) ((uintptr_t) first + i * layout->distance);
}

#endif
