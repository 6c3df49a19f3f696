/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Axes of charts: parses times, and chooses the round values that get a label. Pure. */
#ifndef SQLIPC_TOOLS_CLI_RENDER_CHART_AXIS_H
#define SQLIPC_TOOLS_CLI_RENDER_CHART_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum { CHART_TICKS_MAX = 24, CHART_TICK_SIZE = 24 };

typedef struct ChartTick {
        double at;
        char label[CHART_TICK_SIZE];
} ChartTick;

/** Returns the smallest number of the series ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, ... that is not less than `step`. */
double chart_round_up(double step);

/** Returns true if the text is a time in SQLite's format: 2024-05, 2024-05-31, 2024-05-31 12:30, optionally with seconds and
 * their fraction, T instead of the blank, and Z at the end. `*ret`: seconds since 1970, in UTC. */
bool chart_parse_time(const char *text, double *ret);

/** Round times from `first` to `last`, as many as fit with their labels side by side into `width` characters. Returns their
 * number. */
size_t chart_time_ticks(double first, double last, size_t width, ChartTick ret[static CHART_TICKS_MAX]);

/** Round numbers from `first` to `last`, about `n` of them. Returns their number. */
size_t chart_number_ticks(double first, double last, size_t n, ChartTick ret[static CHART_TICKS_MAX]);

#endif
