/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/ctl/rates: what clients did between two readings of the counters. */
#include "tests/unit/test.h"
#include "tools/ctl/rates.h"
#include "tools/ctl/variant.h"

#define SECOND UINT64_C(1000000)

/* "NAME ROWS BYTES PARKED", one each. */
static GVariant *clients(const char *const *lines) {
        g_auto(GVariantBuilder) builder = {};

        g_variant_builder_init(&builder, G_VARIANT_TYPE("a(sa{sv})"));
        for (size_t i = 0; lines[i]; i++) {
                g_auto(GStrv) words = g_strsplit(lines[i], " ", 4);

                g_variant_builder_open(&builder, G_VARIANT_TYPE("(sa{sv})"));
                g_variant_builder_add(&builder, "s", words[0]);
                g_variant_builder_open(&builder, G_VARIANT_TYPE_VARDICT);
                entry(&builder, "rows", g_variant_new_uint64(g_ascii_strtoull(words[1], NULL, 10)));
                entry(&builder, "bytes", g_variant_new_uint64(g_ascii_strtoull(words[2], NULL, 10)));
                entry(&builder, "parked", g_variant_new_uint32((guint32) g_ascii_strtoull(words[3], NULL, 10)));
                g_variant_builder_close(&builder);
                g_variant_builder_close(&builder);
        }
        return g_variant_ref_sink(g_variant_builder_end(&builder));
}

#define CLIENTS(...) clients((const char *const[]) { __VA_ARGS__, NULL })

static void check_row(GVariant *rows, gsize i, const char *client, guint64 rows_per_second, guint64 bytes_per_second) {
        g_autoptr(GVariant) row = g_variant_get_child_value(rows, i);

        CHECK_STRING(lookup_text(row, "client", NULL), client);
        CHECK_INT(lookup_number(row, "rows-per-second"), rows_per_second);
        CHECK_INT(lookup_number(row, "bytes-per-second"), bytes_per_second);
}

static void test_differences(void) {
        g_autoptr(GVariant) before = CLIENTS(":1 100 1000 0", ":2 0 0 0");
        g_autoptr(GVariant) now = CLIENTS(":1 300 5000 0", ":2 1 10 0");
        g_autoptr(GVariant) rows = rates_of(before, now, 2 * SECOND, "bytes-per-second");

        CHECK_INT(g_variant_n_children(rows), 2);
        check_row(rows, 0, ":1", 100, 2000);
        check_row(rows, 1, ":2", 0, 5); /* half a row a second */
        CHECK_INT(rates_sum(rows, "bytes-per-second"), 2005);
        CHECK_INT(rates_sum(rows, "rows"), 301);
}

static void test_first_look(void) {
        g_autoptr(GVariant) now = CLIENTS(":1 300 5000 0");
        g_autoptr(GVariant) rows = rates_of(NULL, now, 0, "bytes-per-second");
        g_autoptr(GVariant) row = g_variant_get_child_value(rows, 0);
        g_autoptr(GVariant) rate = g_variant_lookup_value(row, "rows-per-second", NULL);

        CHECK(!rate);
        CHECK_INT(lookup_number(row, "rows"), 300);
}

static void test_comers_and_goers(void) {
        g_autoptr(GVariant) before = CLIENTS(":1 100 100 0", ":2 100 100 0");
        g_autoptr(GVariant) now = CLIENTS(":2 150 100 0", ":3 10 100 0");
        g_autoptr(GVariant) rows = rates_of(before, now, SECOND, "rows-per-second");

        CHECK_INT(g_variant_n_children(rows), 2);
        check_row(rows, 0, ":2", 50, 0);
        check_row(rows, 1, ":3", 10, 100);
}

/* The service was started anew, and so was the bus: a name counts from the beginning. */
static void test_counters_that_shrink(void) {
        g_autoptr(GVariant) before = CLIENTS(":1 100 100 0");
        g_autoptr(GVariant) now = CLIENTS(":1 10 10 0");
        g_autoptr(GVariant) rows = rates_of(before, now, SECOND, "rows-per-second");

        check_row(rows, 0, ":1", 0, 0);
}

static void test_large_counters(void) {
        g_autoptr(GVariant) before = CLIENTS(":1 0 0 0");
        g_autoptr(GVariant) now = CLIENTS(":1 9000000000000000000 1 0");
        g_autoptr(GVariant) rows = rates_of(before, now, 1000 * SECOND, "rows-per-second");

        check_row(rows, 0, ":1", 9000000000000000, 0);
}

static void test_no_time_at_all(void) {
        g_autoptr(GVariant) before = CLIENTS(":1 0 0 0");
        g_autoptr(GVariant) now = CLIENTS(":1 5 5 0");
        g_autoptr(GVariant) rows = rates_of(before, now, 0, "rows-per-second");

        check_row(rows, 0, ":1", 0, 0);
}

/* By any key, the highest first; equal ones by name. */
static void test_order(void) {
        g_autoptr(GVariant) now = CLIENTS(":9 1 1 7", ":1 1 1 0", ":3 2 1 7", ":5 0 9 8");
        g_autoptr(GVariant) rows = rates_of(NULL, now, 0, "parked");
        static const char *const expected[] = { ":5", ":3", ":9", ":1" };

        for (size_t i = 0; i < N_ELEMENTS(expected); i++)
                check_row(rows, i, expected[i], 0, 0);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_differences), TEST(test_first_look), TEST(test_comers_and_goers), TEST(test_counters_that_shrink),
                TEST(test_large_counters), TEST(test_no_time_at_all), TEST(test_order),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
