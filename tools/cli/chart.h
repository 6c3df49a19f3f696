/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A result as a picture: in the terminal, of Unicode's blocks, or in a file, drawn by gnuplot:
 *
 *      bar    label, number...   a bar for each number, at most CHART_BARS_MAX rows; a single column: numbers
 *      line   x, y...            a line for each y over x: a number, a time, or a text in its row's place
 *      hist   number             how many values there are in classes of equal width
 *
 * NULL, NaN and infinities have no place in a picture, and are left out. What is no number elsewhere is refused.
 */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include "shell.h"

enum { CHART_BARS_MAX = 1000, CHART_SERIES_MAX = 8, CHART_POINTS_MAX = 1000 * 1000 };

typedef enum ChartKind {
        CHART_BAR,
        CHART_LINE,
        CHART_HIST,
} ChartKind;

/** Runs `sql` with the shell's parameters. `path`: a file to make, .png or .svg; NULL: text, to where results go. 0, or what
 * failed, told. */
int chart_run(Shell *shell, ChartKind kind, const char *sql, const char *path);

#endif
