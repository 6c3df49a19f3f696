/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a chart says of data: labels, classes of a histogram. Pure. */
#ifndef CLI_CHART_TEXT_H
#define CLI_CHART_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "value.h"

/* Classes of a histogram are about so many. */
enum { CHART_CLASSES = 20 };

/** A value as a label: it may be shown, and takes at most `width` columns. To be freed. */
char *chart_label(const Value *value, size_t width);

/** A label as gnuplot reads it from a file of data, so that it is text and nothing else. To be freed. */
char *chart_quoted(const char *label);

typedef struct ChartClasses {
        double start, width; /* class i: [start + i * width, start + (i + 1) * width) */
        size_t n;            /* at most CHART_CLASSES + 2 */
} ChartClasses;

/** Classes with round limits for values from `minimum` to `maximum`; `whole`: all are integers, and so are limits. */
ChartClasses chart_classes(double minimum, double maximum, bool whole);

/** The class that holds `value`. */
size_t chart_class_of(const ChartClasses *classes, double value);

#endif
