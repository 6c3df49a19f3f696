/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gnuplot, as a process (chart-plot.h). */
#include "tools/cli/commands/chart-plot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "tools/cli/output/program.h"

enum { Y_LABEL_WIDTH = 12 };

/* Appends a range in gnuplot's number format, independent of the locale. */
static void append_range(GString *script, const char *axis, double from, double to) {
        char low[G_ASCII_DTOSTR_BUF_SIZE], high[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append_printf(script, "set %srange [%s:%s]\n", axis, g_ascii_dtostr(low, sizeof low, from),
                               g_ascii_dtostr(high, sizeof high, to));
}

/* Appends a range that is never empty, because gnuplot warns of empty ones. */
static void append_extent(GString *script, const char *axis, double from, double to) {
        double margin = from == to ? (from == 0 ? 1 : (from < 0 ? -from : from) / 10) : 0;

        append_range(script, axis, from - margin, to + margin);
}

/* Appends the settings of the picture. The legend is above it, each name after its line or bar. */
static void append_terminal(GString *script, const ChartPlot *plot) {
        g_string_append_printf(script, "set terminal %s noenhanced size %zu,%zu\n",
                               plot->form == CHART_PNG ? "pngcairo" : "svg", plot->width, plot->height);
        g_string_append(script,
                        "set encoding utf8\n"
                        "set datafile separator \"\\t\"\n"
                        "set datafile missing \"NaN\"\n"
                        "set datafile commentschars \"\"\n"
                        "set style fill solid\n"
                        "set key above left Left reverse noenhanced\n"
                        "set tics nomirror noenhanced\n");
}

/* Appends our own labels, which consist of digits. gnuplot's own would overlap. */
static void append_ticks(GString *script, const ChartPlot *plot) {
        char at[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append(script, "set xtics (");
        for (size_t i = 0; i < plot->n_ticks; i++)
                g_string_append_printf(script, "%s\"%s\" %s", i > 0 ? ", " : "", plot->ticks[i].label,
                                       g_ascii_dtostr(at, sizeof at, plot->ticks[i].at));
        g_string_append(script, ")\n");
}

/* Appends the plot of bars. The borders are one place away from them. */
static void append_bars(GString *script, const ChartPlot *plot) {
        append_extent(script, "x", plot->minimum, plot->maximum);
        append_range(script, "y", (double) plot->n_places, -1);
        g_string_append(script, "set tics scale 0\nset rmargin 6\n");
        append_ticks(script, plot);
        g_string_append_printf(script,
                               "plot for [i=0:%zu] '/dev/fd/3' index i "
                               "using 1:2:(0):1:($2-0.4):($2+0.4):ytic(stringcolumn(3)) "
                               "with boxxyerror title columnheader(1)\n",
                               plot->n_series - 1);
}

/* Appends the margins. Half of the first and of the last label below x is outside of the axes. The left margin also contains
 * the labels of y. */
static void append_margins(GString *script, const ChartPlot *plot) {
        size_t half = plot->label_width / 2 + 2;

        g_string_append_printf(script, "set rmargin %zu\nset lmargin %zu\n", half, MAX(half, (size_t) Y_LABEL_WIDTH));
}

static void append_lines(GString *script, const ChartPlot *plot) {
        append_extent(script, "y", plot->minimum, plot->maximum);
        append_extent(script, "x", plot->first, plot->last);
        append_margins(script, plot);
        if (plot->x != CHART_X_ROWS)
                append_ticks(script, plot);
        g_string_append_printf(script, "plot for [i=4:%zu] '/dev/fd/3' using %d:i", plot->n_series + 3,
                               plot->x == CHART_X_TIME ? 3 : 2);
        if (plot->x == CHART_X_ROWS)
                g_string_append_printf(script, ":xtic(int($0) %% %zu == 0 ? stringcolumn(1) : \"\")", plot->label_step);
        g_string_append(script, " with lines linewidth 2 title columnheader(i)\n");
}

/* Opens a pipe with the script, which gnuplot reads as its standard input. All of it fits into the pipe. */
static int open_script(const GString *script, int *ret) {
        int fds[2], r = 0;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        g_assert(script->len <= PIPE_BUF); /* it has a few lines, independent of the data */
        if (write(fds[1], script->str, script->len) != (ssize_t) script->len)
                r = -EIO;
        (void) close(fds[1]);
        if (r < 0)
                (void) close(fds[0]);
        else
                *ret = fds[0];
        return r;
}

int chart_plot(const ChartPlot *plot, FILE *data, FILE *picture) {
        static const char *const argv[] = { "gnuplot", "--default-settings", "-", NULL };
        g_autoptr(GString) script = g_string_new(NULL);
        int input = -1, r;
        pid_t pid;

        append_terminal(script, plot);
        if (plot->bars)
                append_bars(script, plot);
        else
                append_lines(script, plot);

        if (fflush(data) != 0 || fflush(picture) != 0)
                return -errno;
        r = open_script(script, &input);
        if (r < 0)
                return r;
        r = program_start(argv, &(ProgramFiles) { .input = input, .output = fileno(picture), .third = fileno(data) }, &pid);
        (void) close(input);
        if (r >= 0)
                r = program_wait(pid, -1);
        return r > 0 ? -EIO : r;
}
