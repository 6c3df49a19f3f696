/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fits a straight line to points by least squares. Pure. */
#ifndef SQLIPC_TOOLS_BENCH_CORE_LINE_FIT_H
#define SQLIPC_TOOLS_BENCH_CORE_LINE_FIT_H

#include <stddef.h>

typedef struct LineFit {
        double slope, intercept;
        double slope_error; /* standard error of the slope; NAN for two points, which any line fits exactly */
        double r_squared; /* share of the variation of y that the line explains, 0 to 1; NAN if y does not vary */
} LineFit;

/** Fits at least two points, whose x must not all be equal. */
LineFit line_fit(const double *x, const double *y, size_t n);

#endif
