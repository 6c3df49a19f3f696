/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Labels and classes of charts (chart-text.h). Pure. */
#include "chart-text.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "format.h"
#include "render-cell.h"

/* More does not fit any picture. */
enum { LABEL_BYTES_MAX = 400 };

/* Nothing else of a chart has it: names and labels are placeholders, the rest are lines and numbers. */
#define PLACEHOLDER '@'
#define ELLIPSIS "\u2026"

/* ---- Labels ------------------------------------------------------------------------------------------------------- */

static size_t width_of(const char *text) {
        return format_shown_width(text, strlen(text));
}

char *chart_label(const Value *value, size_t width) {
        GString *text = g_string_new(NULL);

        format_shown_value(text, value, "NULL", LABEL_BYTES_MAX);
        if (width_of(text->str) > width) {
                size_t size;

                (void) render_cell_prefix(text->str, width - 1, &size);
                g_string_truncate(text, size);
                g_string_append(text, ELLIPSIS);
        }
        return g_string_free(text, FALSE);
}

/* Within double quotes gnuplot reads "\033" as a control character, and ends at a quote. */
char *chart_quoted(const char *label) {
        GString *quoted = g_string_new("\"");

        for (const char *p = label; *p; p++)
                if (*p == '\\')
                        g_string_append(quoted, "\\\\");
                else if (*p == '"')
                        g_string_append(quoted, "''");
                else
                        g_string_append_c(quoted, *p);
        g_string_append_c(quoted, '"');
        return g_string_free(quoted, FALSE);
}

char *chart_placeholder(const char *label) {
        return g_strnfill(width_of(label), PLACEHOLDER);
}

static void trim(GString *text) {
        while (text->len > 0 && text->str[text->len - 1] == ' ')
                g_string_truncate(text, text->len - 1);
}

/* In as many columns as there are placeholders: gnuplot may have cut some off. */
static void put_label(GString *text, const char *label, size_t width) {
        size_t size, columns = render_cell_prefix(label, width, &size);

        g_string_append_len(text, label, (gssize) size);
        g_string_append_printf(text, "%*s", (int) (width - columns), "");
}

/* A line ends here: blanks at its end go, and a chart does not begin with an empty one. */
static void end_line(GString *text) {
        trim(text);
        if (text->len > 0)
                g_string_append_c(text, '\n');
}

char *chart_put_labels(const char *text, const char *const *labels) {
        GString *output = g_string_new(NULL);

        for (const char *p = text; *p; p++)
                if (*p == PLACEHOLDER) {
                        size_t width = strspn(p, (const char[]) { PLACEHOLDER, '\0' });

                        while (*labels && !**labels)
                                labels++;
                        put_label(output, *labels ?: "", width);
                        labels += *labels != NULL;
                        p += width - 1;
                } else if (*p == '\n')
                        end_line(output);
                else if (*p != '\f') /* gnuplot begins with a new page */
                        g_string_append_c(output, *p);
        while (output->len > 0 && g_ascii_isspace(output->str[output->len - 1]))
                g_string_truncate(output, output->len - 1);
        end_line(output);
        return g_string_free(output, FALSE);
}

/* ---- Classes ------------------------------------------------------------------------------------------------------ */

/* The least of 1, 2, 5, 10, 20, ... and their like below 1 that is not less than `step`. */
static double round_up(double step) {
        double power = pow(10, floor(log10(step)));

        for (size_t i = 0; i < 3; i++) {
                static const double factors[] = { 1, 2, 5 };

                if (factors[i] * power >= step * (1 - 1e-9)) /* what is not exact in binary rounds to itself */
                        return factors[i] * power;
        }
        return 10 * power;
}

ChartClasses chart_classes(double minimum, double maximum, bool whole) {
        double range = maximum / CHART_CLASSES - minimum / CHART_CLASSES; /* the difference alone could be infinite */
        ChartClasses classes = {};

        if (range <= 0)
                range = minimum == 0 || whole ? 1 : fabs(minimum) / 10;
        classes.width = round_up(range);
        if (!isfinite(classes.width) || classes.width <= 0) /* at the ends of what a double can hold */
                classes.width = range;
        if (whole && classes.width < 1)
                classes.width = 1;
        classes.start = floor(minimum / classes.width) * classes.width;
        if (!isfinite(classes.start))
                classes.start = minimum;
        classes.n = 1;
        while (classes.n < CHART_CLASSES + 2 && classes.start + (double) classes.n * classes.width <= maximum)
                classes.n++;
        return classes;
}

size_t chart_class_of(const ChartClasses *classes, double value) {
        double i = floor(value / classes->width - classes->start / classes->width);

        return i <= 0 ? 0 : MIN((size_t) i, classes->n - 1);
}
