/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sorts tables so that each comes after those that its foreign keys name, as far as there are no circles. Pure. */
#ifndef SQLIPC_TOOLS_CLI_DUMP_TABLE_ORDER_H
#define SQLIPC_TOOLS_CLI_DUMP_TABLE_ORDER_H

#include <glib.h>

typedef struct TableOrder TableOrder;

TableOrder *table_order_new(void);
void table_order_free(TableOrder *order);

/** Adds a table; or to one that was added a parent, which may be NULL, unknown, or the table itself. */
void table_order_add(TableOrder *order, const char *table, const char *parent);

/** Returns the names of the tables, parents first; borrowed. The caller frees the array. */
GPtrArray *table_order_sort(const TableOrder *order);

#endif
