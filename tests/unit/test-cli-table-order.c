/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order of tables: parents first, circles anyhow. */
#include <glib.h>

#include "tools/cli/dump/table-order.h"

static void check(TableOrder *order, const char *expected) {
        g_autoptr(GPtrArray) sorted = table_order_sort(order);
        g_autofree char *joined = NULL;

        g_ptr_array_add(sorted, NULL);
        joined = g_strjoinv(" ", (char **) sorted->pdata);
        g_assert_cmpstr(joined, ==, expected);
        table_order_free(order);
}

static void test_parents(void) {
        TableOrder *order = table_order_new();

        table_order_add(order, "line", "Invoice");
        table_order_add(order, "line", "track");
        table_order_add(order, "invoice", "customer");
        table_order_add(order, "customer", NULL);
        table_order_add(order, "Track", "nothing");
        check(order, "customer invoice Track line");
        check(table_order_new(), "");
}

static void test_circles(void) {
        TableOrder *order = table_order_new();

        table_order_add(order, "self", "self");
        table_order_add(order, "one", "two");
        table_order_add(order, "two", "one");
        table_order_add(order, "three", "two");
        check(order, "self two one three");
}

/* A chain of parents that is too long to follow still has each table once. */
static void test_chain(void) {
        TableOrder *order = table_order_new();
        g_autoptr(GPtrArray) sorted = NULL;

        for (int i = 0; i < 100000; i++) {
                g_autofree char *name = g_strdup_printf("t%d", i), *parent = g_strdup_printf("t%d", i + 1);

                table_order_add(order, name, parent);
        }
        sorted = table_order_sort(order);
        g_assert_cmpuint(sorted->len, ==, 100000);
        table_order_free(order);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/cli/table-order/parents", test_parents);
        g_test_add_func("/cli/table-order/circles", test_circles);
        g_test_add_func("/cli/table-order/chain", test_chain);
        return g_test_run();
}
