/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gnuplot, as a process. Its script holds nothing but words of ours and numbers: what is data comes to it in a file,
 * as its descriptor 3, and the picture leaves by its standard output.
 */
#ifndef CLI_CHART_PLOT_H
#define CLI_CHART_PLOT_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "chart-axis.h"

typedef enum ChartForm {
        CHART_TEXT, /* without gnuplot */
        CHART_PNG,
        CHART_SVG,
} ChartForm;

typedef enum ChartX {
        CHART_X_NUMBER,
        CHART_X_ROWS, /* a text for each row */
        CHART_X_TIME,
} ChartX;

typedef struct ChartPlot {
        ChartForm form;         /* a picture's */
        size_t width, height;   /* in pixels */
        bool bars;              /* blocks of "value, place, label", a bar each; else lines: "label, x, time, y, y, ..." */
        size_t n_series;
        size_t n_places;        /* bars: on the axis of labels */
        double minimum, maximum; /* bars: of the values, with 0; lines: of all y */
        ChartX x;               /* lines: what it is */
        double first, last;     /* lines: of x */
        size_t label_step;      /* CHART_X_ROWS: each so many rows have their label */
        size_t label_width;     /* characters of the widest label below x */
        const ChartTick *ticks; /* what has a label below, but for CHART_X_ROWS */
        size_t n_ticks;
} ChartPlot;

/** Has gnuplot draw what `data` holds into `picture`, files both. 0; -ENOENT: there is no gnuplot; -EIO: it failed,
 * and said why on stderr; or -errno. */
int chart_plot(const ChartPlot *plot, FILE *data, FILE *picture);

#endif
