/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A result as a picture (chart.h): rows to a file of data, gnuplot, and its picture to where it belongs. */
#include "chart.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "chart-plot.h"
#include "chart-text.h"
#include "command.h"
#include "cursor-values.h"
#include "files.h"
#include "format.h"
#include "query.h"
#include "target-file.h"

/* Columns that labels take at most; in text they leave room for the bars. */
enum { LABEL_WIDTH_TEXT = 30, LABEL_WIDTH_PICTURE = 60, X_LABELS_MAX = 128, WIDTH_TEXT = 80, HEIGHT_TEXT = 24 };
enum { WIDTH_PICTURE = 900, HEIGHT_PICTURE = 500, HEIGHT_FRAME = 110, HEIGHT_BAR = 26 };

typedef struct Chart {
        Shell *shell;
        ChartKind kind;
        ChartForm form;
        FILE *data;             /* owned; what gnuplot reads */
        FILE *points;           /* owned; hist: doubles until classes are known */
        char **names;           /* owned; of columns, as labels */
        Value *values;          /* owned; of the row */
        size_t n_columns, n_labels, n_series; /* columns before the numbers, and of numbers */
        GPtrArray *labels;      /* bar: of rows; line with text for x: of each `stride`th row */
        size_t stride;
        GArray *bars;           /* bar: of double, n_series for each row */
        uint64_t n_rows, n_numbers;
        double minimum, maximum; /* of numbers */
        double first, last;     /* line: of x */
        size_t label_width;     /* the widest */
        bool text_x, whole;
        char *problem;          /* owned; why on_row() gave up */
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

/* gnuplot opens it again by its descriptor. */
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
        return chart->form == CHART_TEXT ? LABEL_WIDTH_TEXT : LABEL_WIDTH_PICTURE;
}

static char *make_label(Chart *chart, const Value *value) {
        char *label = chart_label(value, label_width(chart));

        chart->label_width = MAX(chart->label_width, format_shown_width(label, strlen(label)));
        return label;
}

/* As gnuplot gets it. */
static void write_label(const Chart *chart, const char *label) {
        g_autofree char *text = chart->form == CHART_TEXT ? chart_placeholder(label) : chart_quoted(label);

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

/* NaN for what has no place in a picture. */
static int take_number(Chart *chart, size_t column, double *ret) {
        const Value *value = &chart->values[column];
        g_autoptr(GString) text = g_string_new(NULL);

        *ret = value->type == SQLIPC_INTEGER ? (double) value->integer : value->type == SQLIPC_REAL ? value->real : NAN;
        if (!isfinite(*ret))
                *ret = NAN;
        if (value->type != SQLIPC_TEXT && value->type != SQLIPC_BLOB)
                return 0;
        format_shown_value(text, value, "NULL", LABEL_WIDTH_PICTURE);
        return give_up(chart, "row %" G_GUINT64_FORMAT " has %s where a number belongs, in column %zu", chart->n_rows,
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

/* NaN is how gnuplot is told of a gap. */
static void write_number(FILE *file, double value) {
        char buffer[G_ASCII_DTOSTR_BUF_SIZE];

        fputs(isnan(value) ? "NaN" : g_ascii_dtostr(buffer, sizeof buffer, value), file);
}

/* Of many rows, every second, every fourth, ... */
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

/* The first row says whether x is text. */
static int take_x(Chart *chart) {
        double x;
        int r;

        if (chart->n_rows == 1)
                chart->text_x = chart->values[0].type == SQLIPC_TEXT || chart->values[0].type == SQLIPC_BLOB;
        if (chart->text_x) {
                char *label = make_label(chart, &chart->values[0]);

                write_label(chart, label);
                keep_label(chart, label);
                chart->last = (double) (chart->n_rows - 1);
                return 0;
        }
        r = take_number(chart, 0, &x);
        if (r < 0)
                return r;
        write_number(chart->data, x);
        if (!isnan(x)) {
                chart->first = isnan(chart->first) ? x : MIN(chart->first, x);
                chart->last = isnan(chart->last) ? x : MAX(chart->last, x);
        }
        return 0;
}

static int take_line(Chart *chart) {
        int r;

        for (size_t i = 0; i < chart->n_columns && chart->n_rows == 1; i++) {
                write_label(chart, chart->names[i]);
                fputc(i + 1 < chart->n_columns ? '\t' : '\n', chart->data);
        }
        r = take_x(chart);
        for (size_t i = 0; i < chart->n_series && r >= 0; i++) {
                double value;

                r = take_series(chart, i, &value);
                if (r < 0)
                        break;
                fputc('\t', chart->data);
                write_number(chart->data, value);
        }
        fputc('\n', chart->data);
        return r < 0 ? r : ferror(chart->data) ? no_room(chart) : 0;
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
        const sqlipc_parameter *parameters = parameter_list_for(chart->shell->parameters, sql, &n_parameters);
        int r;

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

/* Bars of a row stand together, and rows apart. */
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

/* A histogram is a chart of bars, once the values are counted. */
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

/* ---- The picture -------------------------------------------------------------------------------------------------- */

static void plan_bars(const Chart *chart, ChartPlot *plot) {
        size_t n_places = chart->labels->len * places_of_row(chart) - (chart->n_series > 1);

        plot->bars = true;
        plot->n_places = n_places;
        plot->minimum = MIN(chart->minimum, 0);
        plot->maximum = MAX(chart->maximum, 0);
        /* Two borders, a line of names above and one of numbers below, each with a blank one. */
        plot->height = chart->form == CHART_TEXT ? n_places + 6 : HEIGHT_FRAME + HEIGHT_BAR * n_places;
}

/* So many rows from a label below x to the next: one that was kept. */
static size_t label_step(const Chart *chart, size_t width) {
        size_t n_fitting = MAX(width / (chart->form == CHART_TEXT ? 1 : 8) / (chart->label_width + 2), 1);
        size_t step = (chart->n_rows + n_fitting - 1) / n_fitting;

        return (step + chart->stride - 1) / chart->stride * chart->stride;
}

static void plan_lines(const Chart *chart, ChartPlot *plot) {
        plot->minimum = chart->minimum;
        plot->maximum = chart->maximum;
        plot->text_x = chart->text_x;
        plot->first = isnan(chart->first) ? 0 : chart->first;
        plot->last = isnan(chart->last) ? 0 : chart->last;
        plot->label_step = label_step(chart, plot->width);
        plot->height = chart->form == CHART_TEXT ? HEIGHT_TEXT : HEIGHT_PICTURE;
}

static int draw(Chart *chart, size_t width, FILE *picture) {
        ChartPlot plot = { .form = chart->form, .width = width, .n_series = chart->n_series };
        int r = 0;

        if (chart->kind == CHART_HIST)
                r = count_classes(chart);
        if (r < 0)
                return r;
        if (chart->kind == CHART_LINE)
                plan_lines(chart, &plot);
        else {
                write_bars(chart);
                plan_bars(chart, &plot);
        }
        if (ferror(chart->data))
                return -EIO;
        return chart_plot(&plot, chart->data, picture);
}

static int complain_of(Chart *chart, int r, const char *path) {
        Shell *shell = chart->shell;

        if (r == -ENOENT && !path)
                return command_fail(shell, r, "charts are drawn by gnuplot, which is not installed (Debian: gnuplot-nox)");
        if (path)
                return command_fail(shell, r, "%s: %s", path, g_strerror(-r));
        return command_fail(shell, r, "the chart cannot be drawn: %s", g_strerror(-r));
}

/* ---- To where it belongs ------------------------------------------------------------------------------------------ */

/* Names of series in the first line, then labels: of bars from above, of x from the left. */
static GPtrArray *labels_in_text(const Chart *chart, size_t width) {
        GPtrArray *labels = g_ptr_array_new();
        size_t step = chart->kind == CHART_LINE ? label_step(chart, width) / chart->stride : 1;

        for (size_t i = chart->n_labels; i < chart->n_columns; i++)
                g_ptr_array_add(labels, chart->names[i]);
        for (size_t i = 0; i < chart->labels->len; i += step)
                g_ptr_array_add(labels, chart->labels->pdata[i]);
        g_ptr_array_add(labels, NULL);
        return labels;
}

static int read_picture(FILE *picture, GString *ret) {
        char buffer[4096];
        size_t n;

        rewind(picture);
        while ((n = fread(buffer, 1, sizeof buffer, picture)) > 0)
                g_string_append_len(ret, buffer, (gssize) n);
        return ferror(picture) ? -EIO : 0;
}

static int draw_text(Chart *chart, size_t width, FILE *to) {
        g_autoptr(GPtrArray) labels = NULL;
        g_autoptr(GString) picture = g_string_new(NULL);
        g_autofree char *text = NULL;
        FILE *file;
        int r;

        r = open_stream(&file);
        if (r < 0)
                return r;
        r = draw(chart, width, file);
        if (r >= 0)
                r = read_picture(file, picture);
        (void) fclose(file);
        if (r < 0)
                return r;
        labels = labels_in_text(chart, width);
        text = chart_put_labels(picture->str, (const char *const *) labels->pdata);
        return fputs(text, to) < 0 ? -errno : 0;
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

/* Into the file that replaces the one of that name once it is whole. */
static int draw_into(Chart *chart, const TargetFile *target) {
        int fd = fcntl(target->fd, F_DUPFD_CLOEXEC, 0), r;
        FILE *picture = fd < 0 ? NULL : fdopen(fd, "w");

        if (!picture)
                return -errno;
        r = draw(chart, WIDTH_PICTURE, picture);
        (void) fclose(picture); /* we wrote nothing, gnuplot did */
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
        if (r >= 0)
                r = path ? save_picture(&chart, path) : show_text(&chart);
        chart_done(&chart);
        return r;
}
