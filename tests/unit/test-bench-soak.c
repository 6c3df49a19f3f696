/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The basis of the soak's figures: counts and quantiles in a bounded size, and the slope of a line with its error. */
#include <glib.h>
#include <math.h>

#include "tools/bench/core/line-fit.h"
#include "tools/bench/soak/soak-tally.h"

static void test_tally_empty(void) {
        static const SoakTally tally;

        g_assert_true(isnan(soak_tally_quantile(&tally, 0.5)));
        g_assert_cmpuint(soak_tally_open(&tally), ==, 0);
}

/* 1 ... 1000 ms: a quantile is at least what it says, and at most 10 % more. */
static void test_tally_quantiles(void) {
        static const double fractions[] = { 0.001, 0.5, 0.9, 0.99 };
        SoakTally tally = {};

        for (unsigned i = 1; i <= 1000; i++)
                soak_tally_answer(&tally, i * 1000.0, (Spent) { .rows = 2, .bytes = 3 });
        for (size_t i = 0; i < G_N_ELEMENTS(fractions); i++) {
                double true_one = fractions[i] * 1e6, quantile = soak_tally_quantile(&tally, fractions[i]);

                g_assert_cmpfloat(quantile, >=, true_one * 0.9999);
                g_assert_cmpfloat(quantile, <=, true_one * 1.1);
        }
        g_assert_cmpfloat(soak_tally_quantile(&tally, 1), ==, 1e6);
        g_assert_cmpfloat(tally.max_usec, ==, 1e6);
        g_assert_cmpuint(tally.answered, ==, 1000);
        g_assert_cmpuint(tally.spent.rows, ==, 2000);
        g_assert_cmpuint(tally.spent.bytes, ==, 3000);
}

/* 7 of 100 are 7 %, though the product of the two, as computers have it, is a little more. On 32 bits many more are. */
static void test_tally_whole(void) {
        SoakTally tally = {};

        for (unsigned i = 1; i <= 100; i++)
                soak_tally_answer(&tally, i <= 7 ? 1000.0 : 9000.0, (Spent) {});
        g_assert_cmpfloat(soak_tally_quantile(&tally, 0.07), <, 1100);
        g_assert_cmpfloat(soak_tally_quantile(&tally, 0.08), >=, 9000);
}

/* Times that no class has are in the first or the last one, and nowhere else in memory. */
static void test_tally_extremes(void) {
        static const double extremes[] = { 0, 0.001, 1, 1e12, 1e30, INFINITY };
        SoakTally tally = {};

        for (size_t i = 0; i < G_N_ELEMENTS(extremes); i++)
                soak_tally_answer(&tally, extremes[i], (Spent) {});
        g_assert_cmpuint(tally.classes[0], ==, 3);
        g_assert_cmpuint(tally.classes[TALLY_CLASSES - 1], ==, 2);
}

static void test_tally_sum(void) {
        SoakTally sum = { .begun = 5, .answered = 1, .failed = 1, .given_up = 1, .max_usec = 7 }, other = { .begun = 2 };

        soak_tally_answer(&other, 9, (Spent) { .rows = 1 });
        g_assert_cmpuint(soak_tally_open(&sum), ==, 2);
        soak_tally_add(&sum, &other);
        g_assert_cmpuint(soak_tally_open(&sum), ==, 3);
        g_assert_cmpuint(sum.answered, ==, 2);
        g_assert_cmpuint(sum.spent.rows, ==, 1);
        g_assert_cmpfloat(sum.max_usec, ==, 9);
}

/* Against numbers worked out by hand: residuals -0.1, 0.2, -0.1 over x of -1, 0, 1. */
static void test_slope_error(void) {
        static const double x[] = { 1, 2, 3 }, y[] = { 1.9, 4.2, 5.9 }, exact[] = { 2, 4, 6 };

        g_assert_cmpfloat_with_epsilon(line_fit(x, y, 3).slope, 2, 1e-12);
        g_assert_cmpfloat_with_epsilon(line_fit(x, y, 3).slope_error, sqrt(0.06 / 2), 1e-12);
        g_assert_cmpfloat_with_epsilon(line_fit(x, exact, 3).slope_error, 0, 1e-7);
        g_assert_true(isnan(line_fit(x, exact, 2).slope_error));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/bench-soak/tally-empty", test_tally_empty);
        g_test_add_func("/bench-soak/tally-quantiles", test_tally_quantiles);
        g_test_add_func("/bench-soak/tally-whole", test_tally_whole);
        g_test_add_func("/bench-soak/tally-extremes", test_tally_extremes);
        g_test_add_func("/bench-soak/tally-sum", test_tally_sum);
        g_test_add_func("/bench-soak/slope-error", test_slope_error);
        return g_test_run();
}
