/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order of tables, see table-order.h. */
#include "tools/cli/dump/table-order.h"

/* A longer chain of parents is not followed. The order is then not the best one. */
enum { DEPTH_MAX = 1000 };

typedef struct Table {
        char *name;         /* owned, as the parents */
        GPtrArray *parents;
} Table;

struct TableOrder {
        GPtrArray *tables;   /* of Table */
        GHashTable *by_name; /* in small letters -> Table */
};

static void free_table(void *data) {
        Table *table = data;

        g_free(table->name);
        g_ptr_array_unref(table->parents);
        g_free(table);
}

TableOrder *table_order_new(void) {
        TableOrder *order = g_new0(TableOrder, 1);

        order->tables = g_ptr_array_new_with_free_func(free_table);
        order->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        return order;
}

void table_order_free(TableOrder *order) {
        g_hash_table_unref(order->by_name);
        g_ptr_array_unref(order->tables);
        g_free(order);
}

static Table *find(const TableOrder *order, const char *name) {
        g_autofree char *small = g_ascii_strdown(name, -1);

        return g_hash_table_lookup(order->by_name, small);
}

void table_order_add(TableOrder *order, const char *name, const char *parent) {
        Table *table = find(order, name);

        if (!table) {
                table = g_new0(Table, 1);
                table->name = g_strdup(name);
                table->parents = g_ptr_array_new_with_free_func(g_free);
                g_ptr_array_add(order->tables, table);
                (void) g_hash_table_insert(order->by_name, g_ascii_strdown(name, -1), table);
        }
        if (parent)
                g_ptr_array_add(table->parents, g_strdup(parent));
}

static void visit(const TableOrder *order, Table *table, unsigned depth, GHashTable *seen, GPtrArray *sorted) {
        if (!g_hash_table_add(seen, table))
                return;
        for (guint i = 0; i < table->parents->len && depth < DEPTH_MAX; i++) {
                Table *parent = find(order, table->parents->pdata[i]);

                if (parent)
                        visit(order, parent, depth + 1, seen, sorted);
        }
        g_ptr_array_add(sorted, table->name);
}

GPtrArray *table_order_sort(const TableOrder *order) {
        g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
        GPtrArray *sorted = g_ptr_array_new();

        for (guint i = 0; i < order->tables->len; i++)
                visit(order, order->tables->pdata[i], 0, seen, sorted);
        return sorted;
}
