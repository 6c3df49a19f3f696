/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draws a result (chart.h): writes the rows to a data file, runs gnuplot, and puts its picture in place. */
#include "tools/cli/commands/chart.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/commands/chart-plot.h"
#include "tools/cli/output/files.h"
#include "tools/cli/render/chart-draw.h"
#include "tools/cli/render/chart-text.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/command.h"
#include "tools/cli/shell/cursor-values.h"
#include "tools/cli/shell/dialect.h"
#include "tools/cli/shell/query-run.h"
#include "tools/terminal/format.h"
#include "tools/terminal/target-file.h"

/* Maximum widths of labels, in columns. In text, and side by side below x, they must leave room for others. */
enum { LABEL_WIDTH_TEXT = 30, LABEL_WIDTH_PICTURE = 60, X_LABELS_MAX = 128, WIDTH_TEXT = 80, HEIGHT_TEXT = 20 };
/* Sizes of a picture, in pixels; PLOT_MARGIN is the minimum of the margins beside a chart of lines. */
enum { WIDTH_PICTURE = 900, HEIGHT_PICTURE = 500, HEIGHT_FRAME = 90, HEIGHT_BAR = 26, HEIGHT_NAME = 20,
       WIDTH_CHARACTER = 9, PLOT_MARGIN = 180 };
/* Approximate numbers of ticks, of y in text and of numbers below a picture; and the minimum width of the canvas. */
enum { Y_TICKS = 6, CANVAS_WIDTH_MIN = 20, PICTURE_TICKS = 5 };

typedef struct Chart {
        Shell *shell;
        ChartKind kind;
        ChartForm form;
        FILE *data;             /* owned; gnuplot's input */
        FILE *points;           /* owned; doubles: of hist, until classes are known; of lines in text: place, time, each y */
        char **names;           /* owned; names of columns, as labels */
        Value *values;          /* owned; the current row */
        size_t n_columns, n_labels, n_series; /* columns in all, before the numbers, and with numbers */
        GPtrArray *labels;      /* bar: a label for each row; line with text for x: for each `stride`th row */
        size_t stride;
        GArray *bars;           /* bar: of double, n_series for each row */
        uint64_t n_rows, n_numbers;
        double minimum, maximum; /* of numbers */
        double first, last;     /* line: range of x */
        double first_time, last_time; /* line with text for x: range of times, if all texts are times */
        size_t label_width;     /* of the widest label */
        bool text_x, times, whole;
        char *problem;          /* owned; why on_row() failed */
} Chart;

static void chart_done(Chart *chart) {
        if (chart->data)
                (void) fclose(chart->data);
        if (chart->points)
                (void) fclose(chart->points);
        g_strfreev(chart->names);
        g_free(chart->values);
        g_clear_pointer(&chart->labels, g_ptr_array_unref);
        g_clear_pointer(&chart->bars, g_array_unref);
        g_free(chart->problem);
}

/* Opens a file without a name. gnuplot opens it again through its descriptor. */
static int open_stream(FILE **ret) {
        int fd = open_scratch(), r;

        if (fd < 0)
                return fd;
        *ret = fdopen(fd, "w+");
        if (*ret)
                return 0;
        r = -errno;
        (void) close(fd);
        return r;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static int give_up(Chart *chart, const char *format, ...) G_GNUC_PRINTF(2, 3);

static int give_up(Chart *chart, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        chart->problem = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        return -EINVAL;
}

static int no_room(Chart *chart) {
        return give_up(chart, "cannot keep the rows in %s: %s", g_get_tmp_dir(), g_strerror(errno));
}

static size_t label_width(const Chart *chart) {
        return chart->form == CHART_TEXT || chart->kind == CHART_LINE ? LABEL_WIDTH_TEXT : LABEL_WIDTH_PICTURE;
}

static char *make_label(Chart *chart, const Value *value) {
        char *label = chart_label(value, label_width(chart));

        chart->label_width = MAX(chart->label_width, format_shown_width(label, strlen(label)));
        return label;
}

static void write_label(const Chart *chart, const char *label) {
        g_autofree char *text = chart_quoted(label);

        fputs(text, chart->data);
}

static int take_columns(Chart *chart, sqlipc_cursor *cursor) {
        g_autofree const char **names = cursor_names(cursor, &chart->n_columns);

        chart->names = g_new0(char *, chart->n_columns + 1);
        chart->values = g_new0(Value, chart->n_columns + 1);
        for (size_t i = 0; i < chart->n_columns; i++) {
                const Value name = { .type = SQLIPC_TEXT, .bytes = names[i], .size = strlen(names[i]) };

                chart->names[i] = chart_label(&name, label_width(chart));
        }
        chart->n_labels = chart->kind == CHART_LINE || (chart->kind == CHART_BAR && chart->n_columns > 1);
        chart->n_series = chart->n_columns - MIN(chart->n_labels, chart->n_columns);
        if (chart->kind == CHART_HIST && chart->n_columns != 1)
                return give_up(chart, "a histogram is of one column of numbers, and this has %zu columns", chart->n_columns);
        if (chart->n_series < 1)
                return give_up(chart, "a line needs two columns, x and y");
        if (chart->n_series > CHART_SERIES_MAX)
                return give_up(chart, "these are %zu columns of numbers, more than %d", chart->n_series, CHART_SERIES_MAX);
        return 0;
}

/* Reads a number; NULL, NaN and infinities, which cannot be drawn, become NaN. */
static int take_number(Chart *chart, size_t column, double *ret) {
        const Value *value = &chart->values[column];
        g_autoptr(GString) text = g_string_new(NULL);

        *ret = value->type == SQLIPC_INTEGER ? (double) value->integer : value->type == SQLIPC_REAL ? value->real : NAN;
        if (!isfinite(*ret))
                *ret = NAN;
        if (value->type != SQLIPC_TEXT && value->type != SQLIPC_BLOB)
                return 0;
        format_shown_value(text, value, "NULL", LABEL_WIDTH_PICTURE);
        return give_up(chart, "row %" G_GUINT64_FORMAT " has %s instead of a number in column %zu", chart->n_rows,
                       text->str, column + 1);
}

static int take_series(Chart *chart, size_t series, double *ret) {
        int r = take_number(chart, chart->n_labels + series, ret);

        if (r < 0 || isnan(*ret))
                return r;
        chart->minimum = chart->n_numbers == 0 ? *ret : MIN(chart->minimum, *ret);
        chart->maximum = chart->n_numbers == 0 ? *ret : MAX(chart->maximum, *ret);
        chart->whole = chart->whole && *ret == floor(*ret);
        chart->n_numbers++;
        return 0;
}

static int take_bar(Chart *chart) {
        const Value number = { .type = SQLIPC_INTEGER, .integer = (int64_t) chart->n_rows };

        if (chart->n_rows > CHART_BARS_MAX)
                return -E2BIG;
        g_ptr_array_add(chart->labels, make_label(chart, chart->n_labels > 0 ? &chart->values[0] : &number));
        for (size_t i = 0; i < chart->n_series; i++) {
                double value;
                int r = take_series(chart, i, &value);

                if (r < 0)
                        return r;
                g_array_append_val(chart->bars, value);
        }
        return 0;
}

/* Writes a number; NaN tells gnuplot that there is a gap. */
static void write_number(FILE *file, double value) {
        char buffer[G_ASCII_DTOSTR_BUF_SIZE];

        fputs(isnan(value) ? "NaN" : g_ascii_dtostr(buffer, sizeof buffer, value), file);
}

/* Keeps the label of every `stride`th row, and doubles the stride when there are too many. */
static void keep_label(Chart *chart, char *label) {
        GPtrArray *labels = chart->labels;

        if ((chart->n_rows - 1) % chart->stride != 0) {
                g_free(label);
                return;
        }
        g_ptr_array_add(labels, label);
        if (labels->len <= X_LABELS_MAX)
                return;
        for (guint i = 1; i < labels->len; i++)
                g_ptr_array_remove_index(labels, i);
        chart->stride *= 2;
}

static void extend(double value, double *first, double *last) {
        *first = isnan(*first) ? value : MIN(*first, value);
        *last = isnan(*last) ? value : MAX(*last, value);
}

/* Places text by its row, or by its time if all texts are times. */
static void take_text_x(Chart *chart, double *ret_place, double *ret_time) {
        char *label = make_label(chart, &chart->values[0]);

        *ret_place = (double) (chart->n_rows - 1);
        *ret_time = NAN;
        chart->times = chart->times && chart->values[0].type == SQLIPC_TEXT && chart_parse_time(label, ret_time);
        if (chart->times)
                extend(*ret_time, &chart->first_time, &chart->last_time);
        if (chart->form != CHART_TEXT)
                write_label(chart, label);
        keep_label(chart, label);
}

/* Reads x. The first row decides whether x is text. */
static int take_x(Chart *chart, double *ret_place, double *ret_time) {
        int r = 0;

        if (chart->n_rows == 1)
                chart->text_x = chart->values[0].type == SQLIPC_TEXT || chart->values[0].type == SQLIPC_BLOB;
        *ret_time = NAN;
        if (chart->text_x)
                take_text_x(chart, ret_place, ret_time);
        else
                r = take_number(chart, 0, ret_place);
        if (r >= 0 && !isnan(*ret_place))
                extend(*ret_place, &chart->first, &chart->last);
        return r;
}

static void write_names(const Chart *chart) {
        fputs("x\tplace\ttime", chart->data);
        for (size_t i = chart->n_labels; i < chart->n_columns; i++) {
                fputc('\t', chart->data);
                write_label(chart, chart->names[i]);
        }
        fputc('\n', chart->data);
}

/* Keeps a row of numbers. For gnuplot they follow the label of the row, if it has one. */
static int keep_numbers(const Chart *chart, const double *numbers, size_t n) {
        if (chart->form == CHART_TEXT)
                return fwrite(numbers, sizeof(double), n, chart->points) == n ? 0 : -EIO;
        for (size_t i = 0; i < n; i++) {
                fputc('\t', chart->data);
                write_number(chart->data, numbers[i]);
        }
        fputc('\n', chart->data);
        return ferror(chart->data) ? -EIO : 0;
}

static int take_line(Chart *chart) {
        double numbers[2 + CHART_SERIES_MAX];
        int r;

        if (chart->n_rows == 1 && chart->form != CHART_TEXT)
                write_names(chart);
        r = take_x(chart, &numbers[0], &numbers[1]);
        for (size_t i = 0; i < chart->n_series && r >= 0; i++)
                r = take_series(chart, i, &numbers[2 + i]);
        if (r < 0)
                return r;
        return keep_numbers(chart, numbers, 2 + chart->n_series) < 0 ? no_room(chart) : 0;
}

static int take_point(Chart *chart) {
        double value;
        int r = take_series(chart, 0, &value);

        if (r < 0 || isnan(value))
                return r;
        return fwrite(&value, sizeof value, 1, chart->points) == 1 ? 0 : no_room(chart);
}

static int on_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Chart *chart = userdata;

        if (!is_row)
                return take_columns(chart, cursor);
        if (chart->n_rows >= CHART_POINTS_MAX)
                return -E2BIG;
        cursor_values(cursor, chart->values, chart->n_columns);
        chart->n_rows++;
        if (chart->kind == CHART_BAR)
                return take_bar(chart);
        return chart->kind == CHART_LINE ? take_line(chart) : take_point(chart);
}

static int read_rows(Chart *chart, const char *sql) {
        size_t n_parameters;
        const sqlipc_parameter *parameters;
        int r;

        dialect_look_up(chart->shell);
        parameters = parameter_list_for(chart->shell->parameters, session_dialect(&chart->shell->session), sql,
                                        &n_parameters);
        r = query_run(chart->shell, sql, parameters, n_parameters, on_row, chart, NULL);
        if (chart->problem)
                return command_fail(chart->shell, -EBADE, "%s", chart->problem);
        if (r == -E2BIG) {
                shell_complain(chart->shell, "there are more rows than a chart can show: these are the first %d",
                               chart->kind == CHART_BAR ? CHART_BARS_MAX : CHART_POINTS_MAX);
                r = 0;
        }
        if (r < 0 || chart->n_numbers > 0)
                return r;
        return command_fail(chart->shell, -EBADE, "there are no %s to draw", chart->n_rows == 0 ? "rows" : "numbers");
}

/* ---- Bars --------------------------------------------------------------------------------------------------------- */

/* The bars of a row are adjacent, and rows are separated by a gap. */
static size_t places_of_row(const Chart *chart) {
        return chart->n_series + (chart->n_series > 1);
}

static void write_bars(const Chart *chart) {
        for (size_t series = 0; series < chart->n_series; series++) {
                fputs(series > 0 ? "\n\n" : "", chart->data);
                write_label(chart, chart->names[chart->n_labels + series]);
                fputc('\n', chart->data);
                for (size_t row = 0; row < chart->labels->len; row++) {
                        write_number(chart->data, g_array_index(chart->bars, double, row * chart->n_series + series));
                        fprintf(chart->data, "\t%zu\t", row * places_of_row(chart) + series);
                        if (series == 0)
                                write_label(chart, chart->labels->pdata[row]);
                        fputc('\n', chart->data);
                }
        }
}

static void add_class(Chart *chart, const ChartClasses *classes, size_t i, double n) {
        double from = classes->start + (double) i * classes->width, to = from + classes->width;
        g_autofree char *limits = NULL;
        Value label = { .type = SQLIPC_TEXT };

        if (chart->whole && classes->width == 1)
                limits = g_strdup_printf("%.15g", from);
        else
                limits = g_strdup_printf("%.15g \u2026 %.15g", from, to);
        label.bytes = limits;
        label.size = strlen(limits);
        g_ptr_array_add(chart->labels, make_label(chart, &label));
        g_array_append_val(chart->bars, n);
        chart->minimum = 0;
        chart->maximum = MAX(chart->maximum, n);
}

/* Counts the values of each class, which makes a histogram a chart of bars. */
static int count_classes(Chart *chart) {
        const ChartClasses classes = chart_classes(chart->minimum, chart->maximum, chart->whole);
        g_autofree uint64_t *counts = g_new0(uint64_t, classes.n);
        double value;

        if (fflush(chart->points) != 0)
                return -errno;
        rewind(chart->points);
        while (fread(&value, sizeof value, 1, chart->points) == 1)
                counts[chart_class_of(&classes, value)]++;
        if (ferror(chart->points))
                return -EIO;
        chart->maximum = 0;
        for (size_t i = 0; i < classes.n; i++)
                add_class(chart, &classes, i, (double) counts[i]);
        return 0;
}

/* ---- Pictures ----------------------------------------------------------------------------------------------------- */

static void plan_bars(const Chart *chart, ChartPlot *plot, ChartTick ticks[static CHART_TICKS_MAX]) {
        size_t n_places = chart->labels->len * places_of_row(chart) - (chart->n_series > 1);

        plot->bars = true;
        plot->n_places = n_places;
        plot->minimum = MIN(chart->minimum, 0);
        plot->maximum = MAX(chart->maximum, 0);
        plot->n_ticks = chart_number_ticks(plot->minimum, plot->maximum, PICTURE_TICKS, ticks);
        plot->ticks = ticks;
        plot->height = HEIGHT_FRAME + HEIGHT_NAME * chart->n_series + HEIGHT_BAR * n_places;
}

/* Returns the number of rows between two labels below x: a multiple of `stride`, because only those labels were kept. */
static size_t label_step(const Chart *chart, size_t width) {
        size_t n_fitting = MAX(width / (chart->label_width + 2), 1);
        size_t step = (chart->n_rows + n_fitting - 1) / n_fitting;

        return (step + chart->stride - 1) / chart->stride * chart->stride;
}

static ChartX kind_of_x(const Chart *chart) {
        if (!chart->text_x)
                return CHART_X_NUMBER;
        return chart->times && chart->first_time < chart->last_time ? CHART_X_TIME : CHART_X_ROWS;
}

static void plan_lines(const Chart *chart, ChartPlot *plot, ChartTick ticks[static CHART_TICKS_MAX]) {
        size_t width = (WIDTH_PICTURE - PLOT_MARGIN) / WIDTH_CHARACTER;

        plot->minimum = chart->minimum;
        plot->maximum = chart->maximum;
        plot->x = kind_of_x(chart);
        plot->first = isnan(chart->first) ? 0 : chart->first;
        plot->last = isnan(chart->last) ? 0 : chart->last;
        plot->label_width = chart->text_x ? chart->label_width : CHART_TICK_SIZE / 2;
        plot->label_step = label_step(chart, width);
        plot->height = HEIGHT_PICTURE + HEIGHT_NAME * chart->n_series;
        plot->ticks = ticks;
        if (plot->x == CHART_X_TIME) {
                plot->first = chart->first_time;
                plot->last = chart->last_time;
                plot->n_ticks = chart_time_ticks(plot->first, plot->last, width, ticks);
        } else
                plot->n_ticks = chart_number_ticks(plot->first, plot->last, PICTURE_TICKS, ticks);
}

static int draw_picture(Chart *chart, FILE *picture) {
        ChartPlot plot = { .form = chart->form, .width = WIDTH_PICTURE, .n_series = chart->n_series };
        ChartTick ticks[CHART_TICKS_MAX];

        if (chart->kind == CHART_LINE)
                plan_lines(chart, &plot, ticks);
        else {
                write_bars(chart);
                plan_bars(chart, &plot, ticks);
        }
        if (ferror(chart->data))
                return -EIO;
        return chart_plot(&plot, chart->data, picture);
}

/* ---- Text --------------------------------------------------------------------------------------------------------- */

static void draw_bars(const Chart *chart, GString *text, size_t width) {
        chart_draw_bars(text, &(ChartBars) {
                .labels = (const char *const *) chart->labels->pdata,
                .n_rows = chart->labels->len,
                .n_series = chart->n_series,
                .values = (const double *) (void *) chart->bars->data,
                .width = width,
        });
}

static double share(double value, double first, double last) {
        return first < last ? (value / 2 - first / 2) / (last / 2 - first / 2) : 0.5; /* avoids infinity */
}

typedef struct LineRanges {
        size_t column; /* of `points`: which column is x */
        double first, last, minimum, maximum;
} LineRanges;

static LineRanges line_ranges(const Chart *chart) {
        bool time = kind_of_x(chart) == CHART_X_TIME;

        return (LineRanges) {
                .column = time,
                .first = time ? chart->first_time : chart->first,
                .last = time ? chart->last_time : chart->last,
                .minimum = chart->minimum,
                .maximum = chart->maximum,
        };
}

/* Draws the points. A point without x or y makes a gap in the line. */
static int draw_points(const Chart *chart, const LineRanges *ranges, ChartCanvas *canvas) {
        double row[2 + CHART_SERIES_MAX], before[2][CHART_SERIES_MAX];
        const size_t n = 2 + chart->n_series;

        for (size_t i = 0; i < chart->n_series; i++)
                before[0][i] = NAN;
        if (fflush(chart->points) != 0)
                return -errno;
        rewind(chart->points);
        while (fread(row, sizeof(double), n, chart->points) == n)
                for (size_t i = 0; i < chart->n_series; i++) {
                        double x = share(row[ranges->column], ranges->first, ranges->last);
                        double y = share(row[2 + i], ranges->minimum, ranges->maximum);
                        bool joined = !isnan(before[0][i]) && !isnan(before[1][i]);

                        if (!isnan(x) && !isnan(y))
                                chart_canvas_line(canvas, i, joined ? before[0][i] : x, joined ? before[1][i] : y, x, y);
                        before[0][i] = x;
                        before[1][i] = y;
                }
        return ferror(chart->points) ? -EIO : 0;
}

/* Converts the ticks to coordinates of the canvas. Returns the width of the widest label. */
static size_t place_ticks(ChartTick *ticks, size_t n, double first, double last) {
        size_t widest = 0;

        for (size_t i = 0; i < n; i++) {
                ticks[i].at = share(ticks[i].at, first, last);
                widest = MAX(widest, strlen(ticks[i].label));
        }
        return widest;
}

/* Writes the texts of x, each below its row. */
static void draw_row_labels(const Chart *chart, GString *text, size_t margin, size_t width) {
        size_t step = label_step(chart, width) / chart->stride, n = 0;
        const char *labels[X_LABELS_MAX + 1];
        double at[X_LABELS_MAX + 1];

        for (size_t i = 0; i < chart->labels->len; i += step, n++) {
                labels[n] = chart->labels->pdata[i];
                at[n] = share((double) (i * chart->stride), chart->first, chart->last);
        }
        chart_draw_x_labels(text, margin, width, at, labels, n);
}

static int draw_lines(const Chart *chart, GString *text, size_t width) {
        const LineRanges ranges = line_ranges(chart);
        ChartTick x[CHART_TICKS_MAX], y[CHART_TICKS_MAX];
        size_t n_y = chart_number_ticks(ranges.minimum, ranges.maximum, Y_TICKS, y), n_x = 0;
        size_t margin = place_ticks(y, n_y, ranges.minimum, ranges.maximum);
        ChartCanvas *canvas;
        ChartX kind = kind_of_x(chart);
        int r;

        width = MAX(width, margin + 2 + CANVAS_WIDTH_MIN) - margin - 2;
        if (kind == CHART_X_TIME)
                n_x = chart_time_ticks(ranges.first, ranges.last, width, x);
        else if (kind == CHART_X_NUMBER)
                n_x = chart_number_ticks(ranges.first, ranges.last, MAX(width / 14, 1), x);
        (void) place_ticks(x, n_x, ranges.first, ranges.last);
        canvas = chart_canvas_new(width, HEIGHT_TEXT, chart->n_series);
        r = draw_points(chart, &ranges, canvas);
        chart_canvas_append(canvas, text, y, n_y, margin, x, n_x);
        chart_canvas_free(canvas);
        if (kind == CHART_X_ROWS)
                draw_row_labels(chart, text, margin + 2, width);
        return r;
}

static int draw_text(Chart *chart, size_t width, FILE *to) {
        g_autoptr(GString) text = g_string_new(NULL);
        int r = 0;

        chart_draw_legend(text, (const char *const *) chart->names + chart->n_labels, chart->n_series, width);
        if (chart->kind == CHART_LINE)
                r = draw_lines(chart, text, width);
        else
                draw_bars(chart, text, width);
        if (r < 0)
                return r;
        return fputs(text->str, to) < 0 ? -errno : 0;
}

/* ---- Output ------------------------------------------------------------------------------------------------------- */

static int complain_of(Chart *chart, int r, const char *path) {
        Shell *shell = chart->shell;

        if (r == -ENOENT && !path)
                return command_fail(shell, r, "pictures are drawn by gnuplot, which is not installed (Debian: gnuplot-nox)");
        if (path)
                return command_fail(shell, r, "%s: %s", path, g_strerror(-r));
        return command_fail(shell, r, "the chart cannot be drawn: %s", g_strerror(-r));
}

static int show_text(Chart *chart) {
        FILE *file;
        int r;

        r = answer_begin(chart->shell, &file);
        if (r < 0)
                return r;
        r = draw_text(chart, output_width(chart->shell->output) ?: WIDTH_TEXT, file);
        if (r < 0)
                (void) complain_of(chart, r, NULL);
        return answer_end(chart->shell, r);
}

/* Draws into the temporary file of `target`. */
static int draw_into(Chart *chart, const TargetFile *target) {
        int fd = fcntl(target->fd, F_DUPFD_CLOEXEC, 0), r;
        FILE *picture = fd < 0 ? NULL : fdopen(fd, "w");

        if (!picture)
                return -errno;
        r = draw_picture(chart, picture);
        (void) fclose(picture); /* only gnuplot has written to it */
        return r;
}

static int save_picture(Chart *chart, const char *path) {
        TargetFile target;
        int r;

        r = target_file_begin(&target, path, true);
        if (r < 0)
                return complain_of(chart, r, path);
        r = draw_into(chart, &target);
        if (r < 0) {
                target_file_drop(&target);
                return complain_of(chart, r, NULL);
        }
        r = target_file_keep(&target);
        return r < 0 ? complain_of(chart, r, path) : 0;
}

static int form_of(const char *path, ChartForm *ret) {
        if (!path)
                *ret = CHART_TEXT;
        else if (g_str_has_suffix(path, ".png"))
                *ret = CHART_PNG;
        else if (g_str_has_suffix(path, ".svg"))
                *ret = CHART_SVG;
        else
                return -EINVAL;
        return 0;
}

int chart_run(Shell *shell, ChartKind kind, const char *sql, const char *path) {
        Chart chart = {
                .shell = shell,
                .kind = kind,
                .labels = g_ptr_array_new_with_free_func(g_free),
                .bars = g_array_new(FALSE, FALSE, sizeof(double)),
                .stride = 1,
                .first = NAN,
                .last = NAN,
                .first_time = NAN,
                .last_time = NAN,
                .times = true,
                .whole = true,
        };
        int r;

        r = form_of(path, &chart.form);
        if (r < 0)
                (void) command_fail(shell, r, "%s: a picture is a .png or a .svg", path);
        else {
                r = open_stream(&chart.data);
                if (r >= 0)
                        r = open_stream(&chart.points);
                if (r < 0)
                        (void) complain_of(&chart, r, g_get_tmp_dir());
        }
        if (r >= 0)
                r = read_rows(&chart, sql);
        if (r >= 0 && kind == CHART_HIST) {
                r = count_classes(&chart);
                if (r < 0)
                        (void) complain_of(&chart, r, NULL);
        }
        if (r >= 0)
                r = path ? save_picture(&chart, path) : show_text(&chart);
        chart_done(&chart);
        return r;
}
