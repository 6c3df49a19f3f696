/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows and blocks of rows: copies of values, which stay valid after the cursor has moved on. GLib library.
 *
 * A copy is one allocation: the values, and after them the bytes that they point to.
 */
#ifndef SQLIPC_CLIENT_LIB_GLIB_GLIB_ROW_H
#define SQLIPC_CLIENT_LIB_GLIB_GLIB_ROW_H

#include <stdbool.h>

#include "client-lib/glib/sqlipc-glib.h"
#include "client-lib/sqlipc.h"

/* The columns of a result, which its rows share. */
typedef struct Columns {
        gatomicrefcount n_ref;
        guint n;
        char **names;     /* NULL-terminated */
        char **decltypes; /* `n`; NULL: an expression */
} Columns;

Columns *columns_new(sqlipc_cursor *cursor);
Columns *columns_new_named(const char *const *names, guint n);
Columns *columns_ref(Columns *columns);
void columns_unref(Columns *columns);

/* Copies values and their bytes. */
sqlipc_value *values_copy(const sqlipc_value *values, gsize n);
bool values_equal(const sqlipc_value *a, const sqlipc_value *b, gsize n);

/* Notes of a live model about its rows. */
typedef struct RowIdentity {
        struct KeyBytes *key; /* owned by the row; NULL: it has none yet */
        guint run;            /* the last run of the model that had the row */
        guint stamp;          /* of the list that the row was in last, with its position there */
        guint position;
} RowIdentity;

RowIdentity *row_identity(SqlipcRow *row);

/* The columns without the last ones. */
Columns *columns_new_prefix(const Columns *columns, guint n);

/* A row with a copy of these values; NULL: not loaded yet. */
SqlipcRow *row_new(Columns *columns, const sqlipc_value *values);

/* Gives it values. True: they differ from those before; the row then tells it. */
bool row_set(SqlipcRow *row, Columns *columns, const sqlipc_value *values);

/* Its values; NULL: not loaded yet. Borrowed. */
const sqlipc_value *row_values(SqlipcRow *row);

/* A block with a copy of the values of `n_rows` rows. */
SqlipcRows *rows_new(Columns *columns, const sqlipc_value *values, gsize n_rows);

/* The values of one of its rows, borrowed. */
const sqlipc_value *rows_values(SqlipcRows *rows, gsize row);

#endif
