/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Least squares, see line-fit.h. Pure. */
#include "tools/bench/core/line-fit.h"

#include <math.h>

LineFit line_fit(const double *x, const double *y, size_t n) {
        double mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;

        for (size_t i = 0; i < n; i++) {
                mean_x += x[i] / (double) n;
                mean_y += y[i] / (double) n;
        }
        for (size_t i = 0; i < n; i++) {
                xx += (x[i] - mean_x) * (x[i] - mean_x);
                xy += (x[i] - mean_x) * (y[i] - mean_y);
                yy += (y[i] - mean_y) * (y[i] - mean_y);
        }
        return (LineFit) {
                .slope = xy / xx,
                .intercept = mean_y - xy / xx * mean_x,
                /* fmax(): if the points lie on the line, rounding can make this negative */
                .slope_error = n > 2 ? sqrt(fmax(yy - xy * xy / xx, 0) / (double) (n - 2) / xx) : NAN,
                .r_squared = xy * xy / (xx * yy),
        };
}
