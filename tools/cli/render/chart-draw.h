/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Draws charts as text with Unicode's blocks. Pure: numbers in, text out.
 *
 *      bars       Rock  │█████████▌ 12            lines    9 ┤   ▗▄▀▘
 *                 Blues │██ 2                              0 ┤▄▄▀▘
 *                                                            └────────
 *                                                             2024-01
 */
#ifndef SQLIPC_TOOLS_CLI_RENDER_CHART_DRAW_H
#define SQLIPC_TOOLS_CLI_RENDER_CHART_DRAW_H

#include <glib.h>

#include "tools/cli/render/chart-axis.h"

/** Writes the names of the series, each after the block that its bars or its line consist of. Starts a new line when one is
 * full. */
void chart_draw_legend(GString *text, const char *const *names, size_t n_series, size_t width);

typedef struct ChartBars {
        const char *const *labels; /* n_rows */
        size_t n_rows, n_series;
        const double *values;      /* n_series for each row; NaN: no bar */
        size_t width;              /* characters of a line */
} ChartBars;

/** Writes a line for each value: the label of its row, its bar, the value. Negative bars extend to the left of zero. */
void chart_draw_bars(GString *text, const ChartBars *bars);

/* A drawing area for lines; coordinates are from 0 to 1, from the lower left corner. */
typedef struct ChartCanvas ChartCanvas;

ChartCanvas *chart_canvas_new(size_t width, size_t height, size_t n_series);
/** Returns NULL. */
ChartCanvas *chart_canvas_free(ChartCanvas *canvas);
void chart_canvas_line(ChartCanvas *canvas, size_t series, double x0, double y0, double x1, double y1);

/** Appends the canvas with axes. Ticks are in coordinates of the canvas. A label is left out if it would touch the previous
 * one; a label at either end is moved so that it is visible as a whole. */
void chart_canvas_append(const ChartCanvas *canvas, GString *text, const ChartTick *y, size_t n_y, size_t margin,
                         const ChartTick *x, size_t n_x);

/** Writes labels below x in the same way, for any texts. */
void chart_draw_x_labels(GString *text, size_t margin, size_t width, const double *at, const char *const *labels, size_t n);

#endif
