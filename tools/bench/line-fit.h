/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The straight line that is nearest to some points, by least squares. Pure. */
#ifndef BENCH_LINE_FIT_H
#define BENCH_LINE_FIT_H

#include <stddef.h>

typedef struct LineFit {
        double slope, intercept;
        double slope_error; /* its standard error; NAN of two points, through which a line always goes */
        double r_squared; /* how much of the variation of y it explains: 1 all, 0 nothing; NAN where y does not vary */
} LineFit;

/** Of at least two points whose x differ. */
LineFit line_fit(const double *x, const double *y, size_t n);

#endif
