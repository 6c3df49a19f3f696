/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the benchmark's figures rest on: the same random data everywhere, comparisons that see every difference, medians. */
#include <glib.h>
#include <sqlite3.h>
#include <string.h>

#include "baseline.h"
#include "copy.h"
#include "random.h"
#include "report.h"

/* Numbers from another implementation (in Python) of the published algorithms. */
static void test_random(void) {
        char letters[41] = "";
        Random random;

        random_init(&random, 1);
        g_assert_cmphex(random_next(&random), ==, UINT64_C(0xb3f2af6d0fc710c5));
        g_assert_cmphex(random_next(&random), ==, UINT64_C(0x853b559647364cea));
        g_assert_cmphex(random_next(&random), ==, UINT64_C(0x92f89756082a4514));
        random_init(&random, 1);
        random_letters(&random, letters, 40);
        g_assert_cmpstr(letters, ==, "jguwerkbqzuwfivaolzjcybrpwcpzlzswqrekzgh");
}

static void copy_some(Copy *copy, int64_t integer, double real, const char *text, sqlipc_type type) {
        copy_integer(copy, integer);
        copy_real(copy, real);
        copy_bytes(copy, type, text, strlen(text));
        copy_null(copy);
        copy->n_rows++;
}

static uint64_t hash_of(int64_t integer, double real, const char *text, sqlipc_type type) {
        Copy copy = {};
        uint64_t hash;

        copy_some(&copy, integer, real, text, type);
        g_assert_cmpuint(copy.n_bytes, ==, 16 + strlen(text));
        hash = copy_hash(&copy);
        copy_done(&copy);
        g_assert_null(copy.last);
        return hash;
}

static void test_hash(void) {
        uint64_t hash = hash_of(1, 1.0, "text", SQLIPC_TEXT);

        g_assert_cmpuint(hash_of(1, 1.0, "text", SQLIPC_TEXT), ==, hash);
        g_assert_cmpuint(hash_of(2, 1.0, "text", SQLIPC_TEXT), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.5, "text", SQLIPC_TEXT), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.0, "texu", SQLIPC_TEXT), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.0, "text", SQLIPC_BLOB), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.0, "", SQLIPC_TEXT), !=, hash);
}

/* A value larger than a chunk gets one of its own. */
static void test_large_copy(void) {
        g_autofree char *text = g_strnfill(40 * 1024 * 1024, 'x');
        Copy copy = {};

        copy_some(&copy, 1, 1.0, "small", SQLIPC_TEXT);
        copy_some(&copy, 1, 1.0, text, SQLIPC_TEXT);
        copy_some(&copy, 1, 1.0, "small", SQLIPC_TEXT);
        g_assert_cmpuint(copy_memory(&copy), >=, 40 * 1024 * 1024);
        g_assert_cmpuint(copy.n_rows, ==, 3);
        copy_done(&copy);
}

/* Both loops take the same values out of every type. */
static void test_baseline(void) {
        static const char sql[] = "VALUES (1, 2.5, 'text', x'00ff', NULL),"
                                  " (-9223372036854775807 - 1, -0.0, '', x'', 'a' || char(0) || 'b')";
        __attribute__((cleanup(baseline_closep))) Baseline *baseline = NULL;
        Copy usual = {}, fastest = {};

        g_assert_cmpint(baseline_open(":memory:", &baseline), ==, 0);
        g_assert_cmpint(baseline_copy(baseline, sql, BASELINE_USUAL, &usual), ==, 0);
        g_assert_cmpint(baseline_copy(baseline, sql, BASELINE_FASTEST, &fastest), ==, 0);
        g_assert_cmpint(baseline_first_row(baseline, sql), ==, 0);
        g_assert_cmpuint(usual.n_rows, ==, 2);
        g_assert_cmpuint(usual.n_bytes, ==, 8 + 8 + 4 + 2 + 8 + 8 + 3);
        g_assert_cmpuint(fastest.n_rows, ==, 2);
        g_assert_cmpuint(copy_hash(&usual), ==, copy_hash(&fastest));
        copy_done(&usual);
        copy_done(&fastest);
}

static void check_median(double expected, const double *values, guint n) {
        g_autoptr(GArray) array = g_array_new(FALSE, FALSE, sizeof(double));

        g_array_append_vals(array, values, n);
        g_assert_cmpfloat(report_median(array), ==, expected);
}

static void test_median(void) {
        check_median(3, (double[]) { 3 }, 1);
        check_median(2.5, (double[]) { 3, 2 }, 2);
        check_median(2, (double[]) { 100, 1, 2 }, 3);
        check_median(3, (double[]) { 4, 100, 2, 1 }, 4);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/bench/random", test_random);
        g_test_add_func("/bench/hash", test_hash);
        g_test_add_func("/bench/large-copy", test_large_copy);
        g_test_add_func("/bench/baseline", test_baseline);
        g_test_add_func("/bench/median", test_median);
        return g_test_run();
}
