/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/chart-text: labels and classes of charts. */
#include <float.h>
#include <glib.h>
#include <locale.h>
#include <string.h>

#include "chart-text.h"

static void check_label(const char *text, size_t width, const char *expected) {
        const Value value = { .type = SQLIPC_TEXT, .bytes = text, .size = strlen(text) };
        g_autofree char *label = chart_label(&value, width);

        g_assert_cmpstr(label, ==, expected);
}

static void test_labels(void) {
        g_autofree char *null = chart_label(&(const Value) { .type = SQLIPC_NULL }, 10);
        g_autofree char *quoted = chart_quoted("a\"b\\033`c`"), *place = chart_placeholder("\xe6\x97\xa5 a");

        check_label("Rock", 10, "Rock");
        check_label("Rock and Roll", 10, "Rock and \xe2\x80\xa6");
        check_label("\033[31m", 20, "\\x1b[31m");
        check_label("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 6, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
        check_label("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 5, "\xe6\x97\xa5\xe6\x9c\xac\xe2\x80\xa6");
        g_assert_cmpstr(null, ==, "NULL");
        g_assert_cmpstr(quoted, ==, "\"a''b\\\\033`c`\"");
        g_assert_cmpstr(place, ==, "@@@@");
}

static void test_put_labels(void) {
        static const char *const labels[] = { "n@me", "", "\xc3\xa9", "cut off", NULL };
        g_autofree char *text =
                chart_put_labels("\f         \n   @@@@ ***   \n  @ |**  |\n @@@ |*   |\n @ rest\n     \n\n", labels);

        g_assert_cmpstr(text, ==, "   n@me ***\n  \xc3\xa9 |**  |\n cut |*   |\n   rest\n");
}

/* Every value is in the class whose limits it is between, and the first and last classes are not empty. */
static void check_classes(double minimum, double maximum, bool whole, double width) {
        const ChartClasses classes = chart_classes(minimum, maximum, whole);

        g_assert_cmpfloat_with_epsilon(classes.width / width, 1, 1e-9);
        g_assert_cmpuint(classes.n, >=, 1);
        g_assert_cmpuint(classes.n, <=, CHART_CLASSES + 2);
        g_assert_cmpuint(chart_class_of(&classes, minimum), ==, 0);
        g_assert_cmpuint(chart_class_of(&classes, maximum), ==, classes.n - 1);
        g_assert_cmpfloat(classes.start, <=, minimum);
}

static void test_classes(void) {
        ChartClasses classes = chart_classes(0, 100, true);

        g_assert_cmpfloat(classes.width, ==, 5);
        g_assert_cmpuint(classes.n, ==, 21);
        g_assert_cmpuint(chart_class_of(&classes, 4), ==, 0);
        g_assert_cmpuint(chart_class_of(&classes, 5), ==, 1);
        check_classes(1, 1, true, 1);
        check_classes(0, 0, false, 1);
        check_classes(1, 3, true, 1);
        check_classes(1, 3, false, 0.1);
        check_classes(-50, 49, true, 5);
        check_classes(2.5, 2.5, false, 0.5);
        check_classes(1e-300, 2e-300, false, 5e-302);
        check_classes(-1e300, 1e300, false, 1e299);
        classes = chart_classes(-DBL_MAX, DBL_MAX, false);
        g_assert_cmpuint(chart_class_of(&classes, DBL_MAX), ==, classes.n - 1);
        g_assert_cmpuint(chart_class_of(&classes, -DBL_MAX), ==, 0);
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/chart/labels", test_labels);
        g_test_add_func("/chart/put-labels", test_put_labels);
        g_test_add_func("/chart/classes", test_classes);
        return g_test_run();
}
