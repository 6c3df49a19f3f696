/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Labels and classes of charts (chart-text.h). Pure. */
#include "tools/cli/render/chart-text.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "tools/cli/render/chart-axis.h"
#include "tools/cli/render/render-cell.h"
#include "tools/terminal/format.h"

/* Longer labels fit no picture. */
enum { LABEL_BYTES_MAX = 400 };

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

/* Inside double quotes gnuplot reads "\033" as a control character, and ends the text at a quote; so both are escaped. */
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

/* ---- Classes ------------------------------------------------------------------------------------------------------ */

ChartClasses chart_classes(double minimum, double maximum, bool whole) {
        double range = maximum / CHART_CLASSES - minimum / CHART_CLASSES; /* the plain difference could be infinite */
        ChartClasses classes = {};

        if (range <= 0)
                range = minimum == 0 || whole ? 1 : fabs(minimum) / 10;
        classes.width = chart_round_up(range);
        if (!isfinite(classes.width) || classes.width <= 0) /* close to the limits of a double */
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
