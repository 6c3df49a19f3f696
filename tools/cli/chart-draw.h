/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Charts of text, drawn with Unicode's blocks. Pure: numbers in, text out.
 *
 *      bars       Rock  │█████████▌ 12            lines    9 ┤   ▗▄▀▘
 *                 Blues │██ 2                              0 ┤▄▄▀▘
 *                                                            └────────
 *                                                             2024-01
 */
#ifndef CLI_CHART_DRAW_H
#define CLI_CHART_DRAW_H

#include <glib.h>

#include "chart-axis.h"

/** A line of names, each behind the block that its bars or its line are made of; more than one line where they need it. */
void chart_draw_legend(GString *text, const char *const *names, size_t n_series, size_t width);

typedef struct ChartBars {
        const char *const *labels; /* n_rows */
        size_t n_rows, n_series;
        const double *values;      /* n_series for each row; NaN: no bar */
        size_t width;              /* characters that a line may have */
} ChartBars;

/** A line for each value: its row's label, its bar, the value. Negative ones go to the left of zero. */
void chart_draw_bars(GString *text, const ChartBars *bars);

/* Where lines are drawn; coordinates are from 0 to 1, from the lower left corner. */
typedef struct ChartCanvas ChartCanvas;

ChartCanvas *chart_canvas_new(size_t width, size_t height, size_t n_series);
/** Returns NULL. */
ChartCanvas *chart_canvas_free(ChartCanvas *canvas);
void chart_canvas_line(ChartCanvas *canvas, size_t series, double x0, double y0, double x1, double y1);

/** Appends the canvas with axes. Ticks are at coordinates of the canvas; a label that has no room beside the last one is
 * left out, one at an end is moved so that all of it is seen. */
void chart_canvas_append(const ChartCanvas *canvas, GString *text, const ChartTick *y, size_t n_y, size_t margin,
                         const ChartTick *x, size_t n_x);

/** The same for any labels. */
void chart_draw_x_labels(GString *text, size_t margin, size_t width, const double *at, const char *const *labels, size_t n);

#endif
