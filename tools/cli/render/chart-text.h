/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Texts and numbers of a chart: labels, and the classes of a histogram. Pure. */
#ifndef SQLIPC_TOOLS_CLI_RENDER_CHART_TEXT_H
#define SQLIPC_TOOLS_CLI_RENDER_CHART_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/terminal/value.h"

/* A histogram has about this many classes. */
enum { CHART_CLASSES = 20 };

/** A value as a label that is safe to show and at most `width` columns wide. The caller frees it. */
char *chart_label(const Value *value, size_t width);

/** Quotes a label for gnuplot's data file, so that gnuplot takes it literally. The caller frees it. */
char *chart_quoted(const char *label);

typedef struct ChartClasses {
        double start, width; /* class i: [start + i * width, start + (i + 1) * width) */
        size_t n;            /* at most CHART_CLASSES + 2 */
} ChartClasses;

/** Makes classes with round limits for values from `minimum` to `maximum`. `whole`: all values are integers, so limits are
 * integers, too. */
ChartClasses chart_classes(double minimum, double maximum, bool whole);

/** Returns the class that contains `value`. */
size_t chart_class_of(const ChartClasses *classes, double value);

#endif
