/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/render/chart-text, chart-axis, chart-draw: the texts of a chart, the labels, charts made of text. */
#include <float.h>
#include <glib.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "tools/cli/render/chart-draw.h"
#include "tools/cli/render/chart-text.h"
#include "tools/terminal/format.h"

static void check_label(const char *text, size_t width, const char *expected) {
        const Value value = { .type = SQLIPC_TEXT, .bytes = text, .size = strlen(text) };
        g_autofree char *label = chart_label(&value, width);

        g_assert_cmpstr(label, ==, expected);
}

static void test_labels(void) {
        g_autofree char *null = chart_label(&(const Value) { .type = SQLIPC_NULL }, 10);
        g_autofree char *quoted = chart_quoted("a\"b\\033`c`");

        check_label("Rock", 10, "Rock");
        check_label("Rock and Roll", 10, "Rock and \xe2\x80\xa6");
        check_label("\033[31m", 20, "\\x1b[31m");
        check_label("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 6, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
        check_label("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 5, "\xe6\x97\xa5\xe6\x9c\xac\xe2\x80\xa6");
        g_assert_cmpstr(null, ==, "NULL");
        g_assert_cmpstr(quoted, ==, "\"a''b\\\\033`c`\"");
}

/* ---- Axes --------------------------------------------------------------------------------------------------------- */

static void test_times(void) {
        static const struct {
                const char *text;
                double time; /* NaN: it is none */
        } cases[] = {
                { "1970-01-02", 86400 }, { "1970-02", 31 * 86400 }, { "1970-01-01 01:02", 3720 },
                { "1970-01-01T00:00:01", 1 }, { "1970-01-01 00:00:01.25", 1.25 }, { "1970-01-01 00:00Z", 0 },
                { "1969-12-31 23:59:59", -1 }, { "9999-12-31", 253402214400 },
                { "1970", NAN }, { "1970-13", NAN }, { "1970-02-30", NAN }, { "1970-1-1", NAN }, { "1970-01-01 25:00", NAN },
                { "1970-01-01 x", NAN }, { "1970-01-01 00:00 and more", NAN }, { "", NAN }, { "Rock", NAN },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                double time = NAN;

                g_assert_cmpint(chart_parse_time(cases[i].text, &time), ==, !isnan(cases[i].time));
                if (!isnan(cases[i].time))
                        g_assert_cmpfloat(time, ==, cases[i].time);
        }
}

static void check_time_ticks(const char *from, const char *to, size_t width, const char *first, size_t n) {
        ChartTick ticks[CHART_TICKS_MAX];
        double start, end;
        size_t found;

        g_assert_true(chart_parse_time(from, &start));
        g_assert_true(chart_parse_time(to, &end));
        found = chart_time_ticks(start, end, width, ticks);
        g_assert_cmpuint(found, ==, n);
        g_assert_cmpstr(ticks[0].label, ==, first);
        for (size_t i = 0; i < found; i++) {
                g_assert_cmpfloat(ticks[i].at, >=, start);
                g_assert_cmpfloat(ticks[i].at, <=, end);
                g_assert_cmpuint(found * (strlen(ticks[i].label) + 2), <=, width);
        }
}

static void test_time_ticks(void) {
        check_time_ticks("2021-01-01", "2021-12-01", 80, "2021-01", 6);
        check_time_ticks("2021-01-01", "2021-12-01", 120, "2021-01", 12);
        check_time_ticks("2021-01-15", "2025-06-01", 40, "2022", 4);
        check_time_ticks("2021-01-01", "2021-01-05", 80, "2021-01-01", 5);
        check_time_ticks("2021-01-01 10:07", "2021-01-01 12:00", 60, "01-01 10:30", 4);
        check_time_ticks("2021-01-01 10:00:00", "2021-01-01 10:00:10", 60, "10:00:00", 6);
        check_time_ticks("0001-01-01", "9999-12-31", 60, "1000", 9);
        check_time_ticks("1969-12-31 23:59:57", "1970-01-01 00:00:01", 80, "23:59:57", 5);
}

static void test_number_ticks(void) {
        ChartTick ticks[CHART_TICKS_MAX];

        g_assert_cmpuint(chart_number_ticks(-3, 10, 4, ticks), ==, 3);
        g_assert_cmpstr(ticks[0].label, ==, "0");
        g_assert_cmpstr(ticks[2].label, ==, "10");
        g_assert_cmpuint(chart_number_ticks(7, 7, 4, ticks), ==, 1);
        g_assert_cmpstr(ticks[0].label, ==, "7");
        g_assert_cmpuint(chart_number_ticks(0, 0, 4, ticks), ==, 1);
        g_assert_cmpuint(chart_number_ticks(-DBL_MAX, DBL_MAX, 4, ticks), <=, CHART_TICKS_MAX);
}

/* ---- Text --------------------------------------------------------------------------------------------------------- */

static void draw(GString *text, const char *const *labels, size_t n_rows, size_t n_series, const double *values,
                 size_t width) {
        const ChartBars bars = {
                .labels = labels, .n_rows = n_rows, .n_series = n_series, .values = values, .width = width,
        };

        chart_draw_bars(text, &bars);
}

static void test_bars(void) {
        static const char *const labels[] = { "one", "日本", "none", "minus" };
        const double values[] = { 1, 8.5, NAN, -4 };
        g_autoptr(GString) text = g_string_new(NULL);

        draw(text, labels, 3, 1, values, 27);
        g_assert_cmpstr(text->str, ==, "one  │██ 1\n日本 │█████████████████ 8.5\nnone │\n");
        g_string_truncate(text, 0);
        draw(text, labels, 4, 1, values, 36);
        g_assert_cmpstr(text->str, ==,
                        "one           │██ 1\n日本          │█████████████████ 8.5\nnone          │\nminus ████████│ -4\n");
}

/* Each series has its own block, in the bars and in the legend. */
static void test_series(void) {
        static const char *const labels[] = { "a", "b" }, *const names[] = { "first", "second" };
        const double values[] = { 10, 5, 0, 10 };
        g_autoptr(GString) text = g_string_new(NULL);

        chart_draw_legend(text, names, 2, 80);
        draw(text, labels, 2, 2, values, 16);
        g_assert_cmpstr(text->str, ==, "█ first   ▒ second\na │██████████ 10\n  │▒▒▒▒▒ 5\nb │ 0\n  │▒▒▒▒▒▒▒▒▒▒ 10\n");
        g_string_truncate(text, 0);
        chart_draw_legend(text, names, 2, 17);
        g_assert_cmpstr(text->str, ==, "█ first\n▒ second\n");
}

static void test_lines(void) {
        static const ChartTick y[] = { { 0, "0" }, { 1, "10" } }, x[] = { { 0, "2021" }, { 1, "2022" } };
        g_autoptr(GString) text = g_string_new(NULL);
        ChartCanvas *canvas = chart_canvas_new(12, 3, 1);

        chart_canvas_line(canvas, 0, 0, 0, 1, 1);
        chart_canvas_append(canvas, text, y, 2, 2, x, 2);
        g_assert_cmpstr(text->str, ==,
                        "10 ┤        ▗▄▞▀\n   │   ▗▄▄▀▀▘\n 0 ┤▄▞▀▘\n   └────────────\n    2021    2022\n");
        chart_canvas_free(canvas);
}

/* Labels below x neither overlap nor leave the picture, however long they are. */
static void test_x_labels(void) {
        static const char *const labels[] = { "2021-01-01", "2021-02-01", "2021-03-01", "2021-04-01" };
        const double at[] = { 0, 0.2, 0.5, 1 };

        for (size_t width = 1; width < 60; width++) {
                g_autoptr(GString) text = g_string_new(NULL);
                g_auto(GStrv) words = NULL;

                chart_draw_x_labels(text, 3, width, at, labels, 4);
                words = g_strsplit_set(g_strchomp(text->str), " ", -1);
                for (char **word = words; *word; word++)
                        g_assert_true(!**word || g_strv_contains(labels, *word));
                if (width >= 10)
                        g_assert_cmpuint(strlen(text->str), <=, 3 + width);
        }
}

/* ---- Classes ------------------------------------------------------------------------------------------------------ */

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
        g_test_add_func("/chart/times", test_times);
        g_test_add_func("/chart/time-ticks", test_time_ticks);
        g_test_add_func("/chart/number-ticks", test_number_ticks);
        g_test_add_func("/chart/bars", test_bars);
        g_test_add_func("/chart/series", test_series);
        g_test_add_func("/chart/lines", test_lines);
        g_test_add_func("/chart/x-labels", test_x_labels);
        g_test_add_func("/chart/classes", test_classes);
        return g_test_run();
}
