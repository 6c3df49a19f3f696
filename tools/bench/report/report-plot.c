/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Charts of a report, drawn by gnuplot: a child that gets commands and data on standard input, and writes VERB-ID.svg and
 * VERB-ID.png.
 * The commands contain the data as named blocks, so that only the pictures are written to disk.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/report/report-data.h"
#include "tools/bench/report/report-forms.h"

enum { WIDTH = 1000, HEIGHT = 440 };

int report_plot_available(void) {
        g_autofree char *path = g_find_program_in_path("gnuplot");

        if (path)
                return 0;
        fprintf(stderr, "sqlipc-bench: charts are drawn by gnuplot, which is not installed (Debian: gnuplot-nox).\n");
        return -ENOENT;
}

char *report_plot_version(void) {
        char program[] = "gnuplot", option[] = "--version", *argv[] = { program, option, NULL };
        char *version = NULL;

        if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &version, NULL,
                          NULL, NULL))
                return g_strdup("unknown");
        return g_strstrip(version);
}

/* Okabe and Ito's colours for colour-blind people, without their yellow, which is invisible on white. */
static void append_colours(GString *script) {
        static const char *const colours[] = { "#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                               "#56b4e9", "#e69f00", "#7f3c8d", "#7f7f7f", "#8c564b" };

        for (size_t i = 0; i < G_N_ELEMENTS(colours); i++)
                g_string_append_printf(script, "set linetype %zu linecolor rgb '%s' pointtype %zu\n", i + 1, colours[i],
                                       i + 1);
        g_string_append_printf(script, "set linetype cycle %zu\n", G_N_ELEMENTS(colours));
}

/* ---- Commands ----------------------------------------------------------------------------------------------------- */

/* Appends literal text for gnuplot: in single quotes only a single quote is special; line breaks are not allowed. */
static void append_quoted(GString *script, const char *text) {
        g_string_append_c(script, '\'');
        for (const char *p = text; *p; p++)
                if (*p == '\'')
                        g_string_append(script, "''");
                else
                        g_string_append_c(script, (unsigned char) *p < ' ' ? ' ' : *p);
        g_string_append_c(script, '\'');
}

static void append_setting(GString *script, const char *setting, const char *text) {
        g_string_append_printf(script, "set %s ", setting);
        append_quoted(script, text);
        g_string_append_c(script, '\n');
}

/* Appends a word of a data block. A double quote would end the word and cannot be escaped. */
static void append_word(GString *script, const char *text) {
        g_autofree char *word = g_strdelimit(g_strdup(text), "\"\\\n\r\t", '\'');

        g_string_append_printf(script, "\"%s\"", word);
}

static void append_number(GString *script, double value) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append_printf(script, " %s", g_ascii_formatd(number, sizeof number, "%.9g", value));
}

static void append_line_data(GString *script, const ReportSeries *series, guint number) {
        g_string_append_printf(script, "$data%u << END_OF_DATA\n", number);
        for (guint i = 0; i < series->points->len; i++) {
                const ReportPoint *point = series->points->pdata[i];

                append_number(script, point->x);
                append_number(script, point->y);
                append_number(script, point->least);
                append_number(script, point->most);
                g_string_append_c(script, '\n');
        }
        g_string_append(script, "END_OF_DATA\n");
}

static const ReportPoint *find_bar(const ReportSeries *series, const char *name) {
        for (guint i = 0; i < series->points->len; i++) {
                const ReportPoint *point = series->points->pdata[i];

                if (g_str_equal(point->name, name))
                        return point;
        }
        return NULL;
}

/* Returns the names of all bars in the order of their first use. The strings are borrowed. */
static GPtrArray *bar_names(const ReportChart *chart) {
        GPtrArray *names = g_ptr_array_new();

        for (guint i = 0; i < chart->series->len; i++) {
                const ReportSeries *series = chart->series->pdata[i];

                for (guint k = 0; k < series->points->len; k++) {
                        const ReportPoint *point = series->points->pdata[k];

                        if (!g_ptr_array_find_with_equal_func(names, point->name, g_str_equal, NULL))
                                g_ptr_array_add(names, point->name);
                }
        }
        return names;
}

/* Appends one block for all series, with a line for each name and a column for each series. */
static void append_bar_data(GString *script, const ReportChart *chart) {
        g_autoptr(GPtrArray) names = bar_names(chart);

        g_string_append(script, "$data0 << END_OF_DATA\n");
        for (guint i = 0; i < names->len; i++) {
                append_word(script, names->pdata[i]);
                for (guint k = 0; k < chart->series->len; k++) {
                        const ReportPoint *bar = find_bar(chart->series->pdata[k], names->pdata[i]);

                        if (bar)
                                append_number(script, bar->y);
                        else
                                g_string_append(script, " NaN");
                }
                g_string_append_c(script, '\n');
        }
        g_string_append(script, "END_OF_DATA\n");
}

/* Writes numbers on axes in full, because gnuplot's prefixes turn 0.8 into "800.0m" and 1024 into "1ki". */
static void append_y_axis(GString *script, const ReportChart *chart) {
        g_string_append(script, chart->axes & REPORT_LOG_Y ? "set logscale y 10\n" : "set yrange [0:*]\n");
        g_string_append(script, "set format y '%.10g'\n");
}

/* gnuplot rejects a series without points. */
static bool is_drawn(const ReportSeries *series) {
        return series->points->len > 0;
}

static void append_plot_of_bars(GString *script, const ReportChart *chart) {
        const char *separator = "";

        append_y_axis(script, chart);
        g_string_append(script, "set style data histograms\nset style histogram clustered gap 1\n"
                                "set style fill solid 0.8\nset xtics rotate by -25 noenhanced\nplot ");
        for (guint i = 0; i < chart->series->len; i++) {
                const ReportSeries *series = chart->series->pdata[i];

                if (!is_drawn(series))
                        continue;
                g_string_append_printf(script, "%s$data0 using %u:xtic(1) linetype %u fillstyle %s title ", separator,
                                       i + 2, i + 1, series->published ? "pattern 4" : "solid 0.8");
                append_quoted(script, series->name);
                separator = ", ";
        }
        g_string_append_c(script, '\n');
}

/* Returns true if the x of all points are powers of two, as for sizes. */
static bool is_binary(const ReportChart *chart) {
        for (guint i = 0; i < chart->series->len; i++) {
                const ReportSeries *series = chart->series->pdata[i];

                for (guint k = 0; k < series->points->len; k++) {
                        int exponent;

                        if (frexp(((ReportPoint *) series->points->pdata[k])->x, &exponent) != 0.5)
                                return false;
                }
        }
        return true;
}

/* Returns "4 KiB" for 4096 bytes, "4096" for other units. The caller frees it. */
static char *size_label(const ReportChart *chart, double value) {
        static const char *const units[] = { "", " KiB", " MiB", " GiB" };
        size_t unit = 0;

        if (g_str_equal(chart->x_label, "bytes"))
                for (; value >= 1024 && unit + 1 < G_N_ELEMENTS(units); unit++)
                        value /= 1024;
        return g_strdup_printf("%.10g%s", value, units[unit]);
}

/* Appends a label at every second power of two, from the least x to the greatest. */
static void append_binary_tics(GString *script, const ReportChart *chart) {
        double least = INFINITY, most = 0;
        const char *separator = "set xtics (";

        for (guint i = 0; i < chart->series->len; i++) {
                const ReportSeries *series = chart->series->pdata[i];

                for (guint k = 0; k < series->points->len; k++) {
                        least = fmin(least, ((ReportPoint *) series->points->pdata[k])->x);
                        most = fmax(most, ((ReportPoint *) series->points->pdata[k])->x);
                }
        }
        for (double value = least; value <= most; value *= 4) {
                g_autofree char *label = size_label(chart, value);

                g_string_append_printf(script, "%s'%s'", separator, label);
                append_number(script, value);
                separator = ", ";
        }
        g_string_append(script, ")\n");
}

static void append_x_axis(GString *script, const ReportChart *chart) {
        g_string_append(script, "set format x '%.10g'\n");
        if ((chart->axes & REPORT_LOG_X) && is_binary(chart)) {
                g_string_append(script, "set logscale x 2\n");
                append_binary_tics(script, chart);
        } else if (chart->axes & REPORT_LOG_X)
                g_string_append(script, "set logscale x 10\n");
}

static void append_plot_of_lines(GString *script, const ReportChart *chart) {
        const char *separator = "";

        append_x_axis(script, chart);
        append_y_axis(script, chart);
        g_string_append(script, "plot ");
        for (guint i = 0; i < chart->series->len; i++) {
                const ReportSeries *series = chart->series->pdata[i];

                if (!is_drawn(series))
                        continue;
                g_string_append_printf(script, "%s$data%u using 1:2:3:4 with yerrorlines linetype %u linewidth 1.5",
                                       separator, i, i + 1);
                g_string_append(script, series->published ? " dashtype 2 title " : " title ");
                append_quoted(script, series->name);
                separator = ", ";
        }
        g_string_append_c(script, '\n');
}

static void append_chart(GString *script, const ReportChart *chart, const char *stem) {
        static const struct {
                const char *suffix, *terminal;
        } pictures[] = {
                { "svg", "svg noenhanced font 'sans-serif,13' background '#ffffff'" },
                { "png", "pngcairo noenhanced font 'sans,10' background '#ffffff'" },
        };

        /* The legend must not cover a label of the x axis: bars have none, so there it goes below. */
        g_string_append_printf(script, "reset\nset encoding utf8\nset grid\n"
                                       "set key outside %s vertical Left reverse noenhanced width 1 spacing 1.2\n",
                               chart->axes & REPORT_BARS ? "below center" : "right top");
        append_colours(script);
        append_setting(script, "title", chart->title);
        append_setting(script, "xlabel", chart->x_label);
        append_setting(script, "ylabel", chart->y_label);
        if (chart->axes & REPORT_BARS)
                append_bar_data(script, chart);
        else
                for (guint i = 0; i < chart->series->len; i++)
                        append_line_data(script, chart->series->pdata[i], i);
        for (size_t i = 0; i < G_N_ELEMENTS(pictures); i++) {
                g_autofree char *file = g_strdup_printf("%s.%s", stem, pictures[i].suffix);

                g_string_append_printf(script, "set terminal %s size %d,%d\n", pictures[i].terminal, WIDTH, HEIGHT);
                append_setting(script, "output", file);
                if (chart->axes & REPORT_BARS)
                        append_plot_of_bars(script, chart);
                else
                        append_plot_of_lines(script, chart);
                g_string_append(script, "unset output\n");
        }
}

/* ---- gnuplot ------------------------------------------------------------------------------------------------------ */

/* gnuplot prints its errors to our stderr. */
static int run_gnuplot(const char *script, size_t size) {
        char program[] = "gnuplot", commands_on_stdin[] = "-", *argv[] = { program, commands_on_stdin, NULL };
        g_autoptr(GError) error = NULL;
        GPid pid;
        FILE *commands;
        bool written;
        int fd, status;

        if (!g_spawn_async_with_pipes(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid,
                                      &fd, NULL, NULL, &error)) {
                fprintf(stderr, "sqlipc-bench: %s\n", error->message);
                return -ENOENT;
        }
        commands = fdopen(fd, "w");
        if (!commands)
                (void) close(fd);
        written = commands && fwrite(script, 1, size, commands) == size;
        written = commands && fclose(commands) == 0 && written;
        if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 && written)
                return 0;
        fprintf(stderr, "sqlipc-bench: gnuplot could not draw the charts.\n");
        return -EIO;
}

char *report_plot_file(const Report *report, const ReportChart *chart, const char *folder, const char *suffix) {
        return g_strdup_printf("%s/%s-%s%s", folder, report->verb, chart->id, suffix);
}

int report_plot(const Report *report, const char *folder) {
        g_autoptr(GString) script = g_string_new(NULL);

        if (g_mkdir_with_parents(folder, 0777) < 0) {
                int r = -errno;

                fprintf(stderr, "sqlipc-bench: cannot make %s: %s\n", folder, g_strerror(-r));
                return r;
        }
        for (guint i = 0; i < report->charts->len; i++) {
                const ReportChart *chart = report->charts->pdata[i];
                g_autofree char *stem = report_plot_file(report, chart, folder, "");

                if (!report_chart_is_empty(chart))
                        append_chart(script, chart, stem);
        }
        return script->len > 0 ? run_gnuplot(script->str, script->len) : 0;
}
