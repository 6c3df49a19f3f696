/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gnuplot, as a process (chart-plot.h). */
#include "chart-plot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "child.h"

/* A number as gnuplot reads it, whatever the locale. */
static void append_range(GString *script, const char *axis, double from, double to) {
        char low[G_ASCII_DTOSTR_BUF_SIZE], high[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append_printf(script, "set %srange [%s:%s]\n", axis, g_ascii_dtostr(low, sizeof low, from),
                               g_ascii_dtostr(high, sizeof high, to));
}

/* gnuplot warns of ranges without extent. */
static void append_extent(GString *script, const char *axis, double from, double to) {
        double margin = from == to ? (from == 0 ? 1 : (from < 0 ? -from : from) / 10) : 0;

        append_range(script, axis, from - margin, to + margin);
}

static void append_terminal(GString *script, const ChartPlot *plot) {
        static const char *const terminals[] = {
                [CHART_TEXT] = "dumb noenhanced feed mono",
                [CHART_PNG] = "pngcairo noenhanced",
                [CHART_SVG] = "svg noenhanced",
        };

        g_string_append_printf(script, "set terminal %s size %zu,%zu\n", terminals[plot->form], plot->width, plot->height);
        g_string_append(script,
                        "set encoding utf8\n"
                        "set datafile separator \"\\t\"\n"
                        "set datafile missing \"NaN\"\n"
                        "set datafile commentschars \"\"\n"
                        "set style fill solid\n"
                        "set key above left noenhanced\n"
                        "set tics nomirror noenhanced\n");
}

/* A bar is a box: in text one that is flat, a row of characters. The borders are a place away from the bars. */
static void append_bars(GString *script, const ChartPlot *plot) {
        bool flat = plot->form == CHART_TEXT;

        append_extent(script, "x", plot->minimum, plot->maximum);
        append_range(script, "y", (double) plot->n_places, -1);
        g_string_append(script, "set tics scale 0\n");
        g_string_append_printf(script,
                               "plot for [i=0:%zu] '/dev/fd/3' index i using 1:2:(0):1:%s:%s:ytic(stringcolumn(3)) "
                               "with boxxyerror title columnheader(1)\n",
                               plot->n_series - 1, flat ? "2" : "($2-0.4)", flat ? "2" : "($2+0.4)");
}

static void append_lines(GString *script, const ChartPlot *plot) {
        append_extent(script, "y", plot->minimum, plot->maximum);
        append_extent(script, "x", plot->first, plot->last);
        g_string_append_printf(script, "plot for [i=2:%zu] '/dev/fd/3' using ", plot->n_series + 1);
        if (plot->text_x)
                g_string_append_printf(script, "0:i:xtic(int($0) %% %zu == 0 ? stringcolumn(1) : \"\")", plot->label_step);
        else
                g_string_append(script, "1:i");
        g_string_append(script, " with lines title columnheader(i)\n");
}

/* What gnuplot reads as its standard input; the pipe has room for all of it. */
static int open_script(const GString *script, int *ret) {
        int fds[2], r = 0;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        g_assert(script->len <= PIPE_BUF); /* a few lines, whatever the data */
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
        r = child_start(argv, &(ChildFiles) { .input = input, .output = fileno(picture), .third = fileno(data) }, &pid);
        (void) close(input);
        if (r >= 0)
                r = child_wait(pid, -1);
        return r > 0 ? -EIO : r;
}
