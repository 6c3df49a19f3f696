/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See row-layout.h.
 *
 * Addresses are compared as integers, because the values may be in different objects. If SQLite has no row, or no such
 * column, it returns the same constant for each column: then the distance is 0.
 */
#include "daemon/worker/sqlite/row-layout.h"

#include <sqlite3.h>

/* The first and the last value are asked for anyway. */
#define N_COLUMNS_MIN 3

static uintptr_t address(sqlite3_stmt *stmt, unsigned i) {
        return (uintptr_t) sqlite3_column_value(stmt, (int) i);
}

/* Asks for all values. */
static size_t measure(sqlite3_stmt *stmt, unsigned n_columns) {
        uintptr_t first, distance;

        if (n_columns < N_COLUMNS_MIN)
                return 0;
        first = address(stmt, 0);
        distance = address(stmt, 1) - first;
        for (unsigned i = 2; i < n_columns; i++)
                if (address(stmt, i) != first + i * distance)
                        return 0;
        return distance;
}

sqlite3_value *row_layout_first(RowLayout *layout, sqlite3_stmt *stmt, unsigned n_columns) {
        uintptr_t first;

        if (layout->n_columns != n_columns)
                *layout = (RowLayout) { .n_columns = n_columns, .distance = measure(stmt, n_columns) };
        if (layout->distance == 0)
                return NULL;
        first = address(stmt, 0);
        if (address(stmt, n_columns - 1) == first + (n_columns - 1) * layout->distance)
                return (sqlite3_value *) first;
        layout->distance = 0;
        return NULL;
}
