/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Draws a result as a chart: in the terminal with Unicode's blocks, or into a file with gnuplot:
 *
 *      bar    label, number...   a bar for each number, at most CHART_BARS_MAX rows; a single column has numbers
 *      line   x, y...            a line for each y over x: x is a number, a time, or a text, which is placed by its row
 *      hist   number             the number of values in classes of equal width
 *
 * NULL, NaN and infinities are left out. A text or BLOB in a column of numbers is an error.
 */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_CHART_H
#define SQLIPC_TOOLS_CLI_COMMANDS_CHART_H

#include "tools/cli/shell/shell.h"

enum { CHART_BARS_MAX = 1000, CHART_SERIES_MAX = 8, CHART_POINTS_MAX = 1000 * 1000 };

typedef enum ChartKind {
        CHART_BAR,
        CHART_LINE,
        CHART_HIST,
} ChartKind;

/** Runs `sql` with the shell's parameters. `path`: the .png or .svg file to create; NULL: draws text to the current output.
 * Returns 0, or an error, which has been reported. */
int chart_run(Shell *shell, ChartKind kind, const char *sql, const char *path);

#endif
