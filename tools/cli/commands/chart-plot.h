/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Draws a chart with gnuplot, as a child process. The script contains only fixed words and numbers. The data, labels
 * included, reaches gnuplot in a file, as its descriptor 3; gnuplot writes the picture to its standard output.
 */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_CHART_PLOT_H
#define SQLIPC_TOOLS_CLI_COMMANDS_CHART_PLOT_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/render/chart-axis.h"

typedef enum ChartForm {
        CHART_TEXT, /* drawn without gnuplot */
        CHART_PNG,
        CHART_SVG,
} ChartForm;

typedef enum ChartX {
        CHART_X_NUMBER,
        CHART_X_ROWS, /* a text for each row */
        CHART_X_TIME,
} ChartX;

typedef struct ChartPlot {
        ChartForm form;         /* CHART_PNG or CHART_SVG */
        size_t width, height;   /* in pixels */
        bool bars;              /* a block of "value, place, label" lines per series; else lines: "label, x, time, y, ..." */
        size_t n_series;
        size_t n_places;        /* bars: places on the axis of labels */
        double minimum, maximum; /* bars: of the values and 0; lines: of all y */
        ChartX x;               /* lines: the type of x */
        double first, last;     /* lines: range of x */
        size_t label_step;      /* CHART_X_ROWS: every label_step-th row has a label */
        size_t label_width;     /* characters of the widest label below x */
        const ChartTick *ticks; /* labels of the axis of numbers or times; unused for CHART_X_ROWS */
        size_t n_ticks;
} ChartPlot;

/** Runs gnuplot to draw `data` into `picture`; both are files. Returns 0; -ENOENT: gnuplot is not installed; -EIO: gnuplot
 * failed and wrote the reason to stderr; or -errno. */
int chart_plot(const ChartPlot *plot, FILE *data, FILE *picture);

#endif
