/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The statements of a live model with windows: pieces of a query, in the order of some columns, from a given row on. GLib
 * library. Pure.
 *
 * The order is total: its last terms are the key. SQLite sorts NULL before all other values, so with DESC after them.
 */
#ifndef SQLIPC_CLIENT_LIB_GLIB_LIVE_SQL_H
#define SQLIPC_CLIENT_LIB_GLIB_LIVE_SQL_H

#include <glib.h>
#include <stdbool.h>

#include "client-lib/sqlipc.h"

typedef struct LiveTerm {
        char *column;
        bool descending;
} LiveTerm;

/* The terms of `order` ("name" or "name DESC") and then those of `key` that are not in it. The caller frees the array. */
GArray *live_sql_terms(const char *const *key, const char *const *order);

/* All values of the terms, in order. The caller frees the text. */
char *live_sql_scan(const char *sql, const GArray *terms);

/* The rows from `start` on (values of the terms; NULL: from the first row on), at most `limit`. With `end` (NULL: none)
 * there is one more column, the last one: 1 for rows that are not before `end`. Values are appended to `parameters`, of
 * sqlipc_parameter, under names that begin with ":sqlipc"; their bytes are borrowed. */
char *live_sql_window(const char *sql, const GArray *terms, const sqlipc_value *start, const sqlipc_value *end, guint limit,
                      GArray *parameters);

/* The name as an identifier in SQL. The caller frees it. */
char *live_sql_quote(const char *name);

#endif
