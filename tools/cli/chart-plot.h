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

typedef enum ChartForm {
        CHART_TEXT,
        CHART_PNG,
        CHART_SVG,
} ChartForm;

typedef struct ChartPlot {
        ChartForm form;
        size_t width, height;   /* of CHART_TEXT, in characters; else of the picture, in pixels */
        bool bars;              /* blocks of "value, place, label", a bar each; else lines: "x, y, y, ..." */
        size_t n_series;
        size_t n_places;        /* bars: on the axis of labels */
        double minimum, maximum; /* bars: of the values, with 0; lines: of all y */
        double first, last;     /* lines: of x; both 0 where x is text, which is placed by its row */
        bool text_x;
        size_t label_step;      /* lines with text for x: each so many rows one is shown */
} ChartPlot;

/** Has gnuplot draw what `data` holds into `picture`, files both. 0; -ENOENT: there is no gnuplot; -EIO: it failed,
 * and said why on stderr; or -errno. */
int chart_plot(const ChartPlot *plot, FILE *data, FILE *picture);

#endif
