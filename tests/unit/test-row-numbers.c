/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * client-lib/extension/row-numbers: a row has the same number in each search, in whichever place it comes; equal rows have
 * different numbers, and so have different rows. Pure.
 */
#include <glib.h>

#include "client-lib/extension/row-numbers.h"
#include "client-lib/sqlipc.h"

#define N_ROWS 5000

static int64_t next(RowNumbers *numbers, const sqlipc_value *values, unsigned n) {
        int64_t number = 0;

        g_assert_cmpint(row_numbers_next(numbers, values, n, &number), ==, 0);
        return number;
}

static int64_t next_integer(RowNumbers *numbers, int64_t integer) {
        return next(numbers, &(sqlipc_value) { .type = SQLIPC_INTEGER, .as.integer = integer }, 1);
}

static void test_order(void) {
        static int64_t forwards[N_ROWS];
        RowNumbers numbers = {};

        for (int i = 0; i < N_ROWS; i++)
                forwards[i] = next_integer(&numbers, i / 2);
        row_numbers_done(&numbers);
        for (int i = N_ROWS - 2; i >= 0; i -= 2) {
                g_assert_cmpint(next_integer(&numbers, i / 2), ==, forwards[i]);
                g_assert_cmpint(next_integer(&numbers, i / 2), ==, forwards[i + 1]);
        }
        row_numbers_done(&numbers);
        g_assert_cmpuint(numbers.n_slots, ==, 0);
}

static void test_differences(void) {
        const sqlipc_value rows[][2] = {
                { { .type = SQLIPC_NULL }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_INTEGER }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_NULL }, { .type = SQLIPC_INTEGER } },
                { { .type = SQLIPC_REAL }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_TEXT, .as.text = "" }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_BLOB, .as.blob = "" }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_TEXT, .size = 1, .as.text = "a" }, { .type = SQLIPC_TEXT, .size = 1, .as.text = "b" } },
                { { .type = SQLIPC_TEXT, .size = 2, .as.text = "ab" }, { .type = SQLIPC_TEXT, .as.text = "" } },
                { { .type = SQLIPC_TEXT, .size = 9, .as.text = "123456789" }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_TEXT, .size = 9, .as.text = "123456780" }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_TEXT, .size = 8, .as.text = "12345678" }, { .type = SQLIPC_NULL } },
                { { .type = SQLIPC_BLOB, .size = 8, .as.blob = "12345678" }, { .type = SQLIPC_NULL } },
        };
        g_autoptr(GHashTable) seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        RowNumbers numbers = {};

        for (int round = 0; round < 3; round++)
                for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
                        int64_t number = next(&numbers, rows[i], 2);

                        g_assert_true(g_hash_table_add(seen, g_memdup2(&number, sizeof number)));
                }
        row_numbers_done(&numbers);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/extension/row-numbers/order", test_order);
        g_test_add_func("/extension/row-numbers/differences", test_differences);
        return g_test_run();
}
