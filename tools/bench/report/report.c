/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The results of a workload, see report.h. Pure except for the machine's facts. */
#include "tools/bench/report/report.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "config.h"
#include "tools/bench/core/baseline.h"
#include "tools/bench/report/report-data.h"

/* ---- Making and freeing ------------------------------------------------------------------------------------------- */

static void fact_free(gpointer data) {
        ReportFact *fact = data;

        g_free(fact->name);
        g_free(fact->text);
        g_free(fact);
}

static void figure_free(gpointer data) {
        ReportFigure *figure = data;

        g_free(figure->name);
        g_free(figure->unit);
        g_array_unref(figure->values);
        g_free(figure);
}

static void verdict_free(gpointer data) {
        ReportVerdict *verdict = data;

        g_free(verdict->task);
        g_free(verdict->rival);
        g_array_unref(verdict->ratios);
        g_free(verdict);
}

static void column_free(gpointer data) {
        ReportColumn *column = data;

        g_free(column->name);
        g_free(column->unit);
        g_free(column);
}

static void table_free(gpointer data) {
        ReportTable *table = data;

        for (guint i = 0; i < table->rows->len; i++) {
                ReportRow *row = table->rows->pdata[i];

                for (guint k = 0; k < table->columns->len; k++) {
                        g_clear_pointer(&row->cells[k].values, g_array_unref);
                        g_free(row->cells[k].text);
                }
                g_free(row->cells);
                g_free(row->name);
                g_free(row);
        }
        g_ptr_array_unref(table->rows);
        g_ptr_array_unref(table->columns);
        g_free(table->id);
        g_free(table->title);
        g_free(table->rows_are);
        g_free(table);
}

static void point_free(gpointer data) {
        ReportPoint *point = data;

        g_free(point->name);
        g_free(point);
}

static void series_free(gpointer data) {
        ReportSeries *series = data;

        g_ptr_array_unref(series->points);
        g_free(series->name);
        g_free(series);
}

static void chart_free(gpointer data) {
        ReportChart *chart = data;

        g_ptr_array_unref(chart->series);
        g_free(chart->id);
        g_free(chart->title);
        g_free(chart->x_label);
        g_free(chart->y_label);
        g_free(chart);
}

Report *report_free(Report *report) {
        if (!report)
                return NULL;
        g_ptr_array_unref(report->facts);
        g_ptr_array_unref(report->verdicts);
        g_ptr_array_unref(report->figures);
        g_ptr_array_unref(report->notes);
        g_ptr_array_unref(report->tables);
        g_ptr_array_unref(report->charts);
        g_free(report->verb);
        g_free(report->title);
        g_free(report->failure);
        g_free(report);
        return NULL;
}

void report_freep(Report **report) {
        *report = report_free(*report);
}

void report_failed(Report *report, const char *why) {
        g_free(report->failure);
        report->failure = g_strdup(why);
}

/* ---- Facts -------------------------------------------------------------------------------------------------------- */

static void add_fact(Report *report, const char *name, char *text, bool machine) {
        ReportFact *fact = g_new(ReportFact, 1);

        *fact = (ReportFact) { .name = g_strdup(name), .text = text, .machine = machine };
        g_ptr_array_add(report->facts, fact);
}

void report_fact(Report *report, const char *name, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        add_fact(report, name, g_strdup_vprintf(format, arguments), false);
        va_end(arguments);
}

void report_run_fact(Report *report, const char *name, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        add_fact(report, name, g_strdup_vprintf(format, arguments), true);
        va_end(arguments);
}

void report_note(Report *report, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        g_ptr_array_add(report->notes, g_strdup_vprintf(format, arguments));
        va_end(arguments);
}

static char *processor(void) {
        g_autofree char *cpuinfo = NULL;
        const char *model;

        if (!g_file_get_contents("/proc/cpuinfo", &cpuinfo, NULL, NULL))
                return g_strdup("unknown processor");
        model = strstr(cpuinfo, "model name");
        model = model ? strchr(model, ':') : NULL;
        return model ? g_strstrip(g_strndup(model + 1, strcspn(model + 1, "\n"))) : g_strdup("unknown processor");
}

static uint64_t memory_size(void) {
        return (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE);
}

Report *report_new(const char *verb, const char *title) {
        g_autofree char *model = processor();
        Report *report = g_new(Report, 1);
        struct utsname system;

        *report = (Report) {
                .verb = g_strdup(verb),
                .title = g_strdup(title),
                .facts = g_ptr_array_new_with_free_func(fact_free),
                .verdicts = g_ptr_array_new_with_free_func(verdict_free),
                .figures = g_ptr_array_new_with_free_func(figure_free),
                .notes = g_ptr_array_new_with_free_func(g_free),
                .tables = g_ptr_array_new_with_free_func(table_free),
                .charts = g_ptr_array_new_with_free_func(chart_free),
        };
        (void) uname(&system);
        add_fact(report, "machine", g_strdup_printf("%ld x %s", sysconf(_SC_NPROCESSORS_ONLN), model), true);
        add_fact(report, "memory", g_format_size_full(memory_size(), G_FORMAT_SIZE_IEC_UNITS), true);
        add_fact(report, "kernel", g_strdup_printf("%s %s", system.sysname, system.release), true);
        add_fact(report, "sqlipc", g_strdup(SQLIPC_VERSION ", built with libsystemd " LIBSYSTEMD_VERSION), true);
        add_fact(report, "SQLite in process", g_strdup(baseline_version()), true);
        return report;
}

/* ---- Figures and tables ------------------------------------------------------------------------------------------- */

/* Returns a copy; NULL if there is nothing to show. */
static GArray *known(const GArray *values) {
        if (!values || values->len == 0)
                return NULL;
        for (guint i = 0; i < values->len; i++)
                if (!isfinite(g_array_index(values, double, i)))
                        return NULL;
        return g_array_copy((GArray *) values);
}

void report_figure(Report *report, const char *name, const char *unit, const GArray *values) {
        GArray *copy = known(values);
        ReportFigure *figure;

        if (!copy)
                return;
        figure = g_new(ReportFigure, 1);
        *figure = (ReportFigure) { .name = g_strdup(name), .unit = g_strdup(unit), .values = copy };
        g_ptr_array_add(report->figures, figure);
}

void report_verdict(Report *report, const char *task, const char *rival, const GArray *ratios) {
        GArray *copy = known(ratios);
        ReportVerdict *verdict;

        if (!copy)
                return;
        verdict = g_new(ReportVerdict, 1);
        *verdict = (ReportVerdict) { .task = g_strdup(task), .rival = g_strdup(rival), .ratios = copy };
        g_ptr_array_add(report->verdicts, verdict);
}

static GArray *single(double value) {
        GArray *values = g_array_new(FALSE, FALSE, sizeof(double));

        return g_array_append_val(values, value);
}

void report_single(Report *report, const char *name, const char *unit, double value) {
        g_autoptr(GArray) values = single(value);

        report_figure(report, name, unit, values);
}

ReportTable *report_table(Report *report, const char *id, const char *title, const char *rows_are) {
        ReportTable *table = g_new(ReportTable, 1);

        *table = (ReportTable) {
                .id = g_strdup(id),
                .title = g_strdup(title),
                .rows_are = g_strdup(rows_are),
                .columns = g_ptr_array_new_with_free_func(column_free),
                .rows = g_ptr_array_new(),
        };
        g_ptr_array_add(report->tables, table);
        return table;
}

unsigned report_table_column(ReportTable *table, const char *name, const char *unit) {
        ReportColumn *column = g_new(ReportColumn, 1);

        g_assert(table->rows->len == 0);
        *column = (ReportColumn) { .name = g_strdup(name), .unit = g_strdup(unit) };
        g_ptr_array_add(table->columns, column);
        return table->columns->len - 1;
}

void report_table_row(ReportTable *table, const char *name, bool published) {
        ReportRow *row = g_new(ReportRow, 1);

        *row = (ReportRow) {
                .name = g_strdup(name),
                .published = published,
                .cells = g_new0(ReportCell, table->columns->len),
        };
        g_ptr_array_add(table->rows, row);
}

static ReportCell *cell_of_last_row(ReportTable *table, unsigned column) {
        ReportRow *row;

        g_assert(table->rows->len > 0 && column < table->columns->len);
        row = table->rows->pdata[table->rows->len - 1];
        g_assert(!row->cells[column].values && !row->cells[column].text);
        return &row->cells[column];
}

void report_table_values(ReportTable *table, unsigned column, const GArray *values) {
        cell_of_last_row(table, column)->values = known(values);
}

void report_table_value(ReportTable *table, unsigned column, double value) {
        g_autoptr(GArray) values = single(value);

        report_table_values(table, column, values);
}

void report_table_text(ReportTable *table, unsigned column, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        cell_of_last_row(table, column)->text = g_strdup_vprintf(format, arguments);
        va_end(arguments);
}

/* ---- Charts ------------------------------------------------------------------------------------------------------- */

ReportChart *report_chart(Report *report, const char *id, const char *title, const char *x_label, const char *y_label,
                          ReportAxes axes) {
        ReportChart *chart = g_new(ReportChart, 1);

        *chart = (ReportChart) {
                .id = g_strdup(id),
                .title = g_strdup(title),
                .x_label = g_strdup(x_label),
                .y_label = g_strdup(y_label),
                .axes = axes,
                .series = g_ptr_array_new_with_free_func(series_free),
        };
        g_ptr_array_add(report->charts, chart);
        return chart;
}

unsigned report_chart_series(ReportChart *chart, const char *name, bool published) {
        ReportSeries *series = g_new(ReportSeries, 1);

        *series = (ReportSeries) {
                .name = g_strdup(name),
                .published = published,
                .points = g_ptr_array_new_with_free_func(point_free),
        };
        g_ptr_array_add(chart->series, series);
        return chart->series->len - 1;
}

/* Omits values that are not known or that a logarithmic axis cannot show. */
static void add_point(ReportChart *chart, unsigned series, const ReportPoint *point) {
        ReportPoint *copy;

        if (!isfinite(point->y) || ((chart->axes & REPORT_LOG_Y) && point->least <= 0) ||
            ((chart->axes & REPORT_LOG_X) && point->x <= 0)) {
                g_free(point->name);
                return;
        }
        copy = g_memdup2(point, sizeof *point);
        g_ptr_array_add(((ReportSeries *) chart->series->pdata[series])->points, copy);
}

void report_chart_point(ReportChart *chart, unsigned series, double x, const GArray *values) {
        g_autoptr(GArray) copy = known(values);

        g_assert(series < chart->series->len && !(chart->axes & REPORT_BARS));
        if (copy)
                add_point(chart, series,
                          &(ReportPoint) {
                                  .x = x,
                                  .y = report_median(copy),
                                  .least = report_quantile(copy, 0),
                                  .most = report_quantile(copy, 1),
                          });
}

void report_chart_value(ReportChart *chart, unsigned series, double x, double y) {
        g_assert(series < chart->series->len && !(chart->axes & REPORT_BARS));
        add_point(chart, series, &(ReportPoint) { .x = x, .y = y, .least = y, .most = y });
}

void report_chart_bar(ReportChart *chart, unsigned series, const char *x, double y) {
        g_assert(series < chart->series->len && (chart->axes & REPORT_BARS));
        add_point(chart, series, &(ReportPoint) { .x = 1, .name = g_strdup(x), .y = y, .least = y, .most = y });
}

bool report_chart_is_empty(const ReportChart *chart) {
        for (guint i = 0; i < chart->series->len; i++)
                if (((ReportSeries *) chart->series->pdata[i])->points->len > 0)
                        return false;
        return true;
}

/* ---- Numbers ------------------------------------------------------------------------------------------------------ */

static int compare_doubles(gconstpointer a, gconstpointer b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

static GArray *sorted(const GArray *values) {
        GArray *copy = g_array_copy((GArray *) values);

        g_array_sort(copy, compare_doubles);
        return copy;
}

double report_median(const GArray *values) {
        g_autoptr(GArray) in_order = sorted(values);
        guint n = in_order->len;

        return (g_array_index(in_order, double, (n - 1) / 2) + g_array_index(in_order, double, n / 2)) / 2;
}

double report_quantile(const GArray *values, double fraction) {
        g_autoptr(GArray) in_order = sorted(values);
        guint rank = (guint) ceil(fraction * in_order->len);

        return g_array_index(in_order, double, CLAMP(rank, 1, in_order->len) - 1);
}

int report_decimals(double value) {
        double size = fabs(value);

        return size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.01 ? 3 : 6;
}

ReportOutcome report_outcome(const ReportVerdict *verdict) {
        double least = report_quantile(verdict->ratios, 0), most = report_quantile(verdict->ratios, 1);

        if (verdict->ratios->len < 2)
                return REPORT_UNCLEAR;
        return most < 1 ? REPORT_FASTER : least > 1 ? REPORT_SLOWER : REPORT_UNCLEAR;
}

char *report_verdict_text(const ReportVerdict *verdict) {
        double ratio = report_median(verdict->ratios);

        switch (report_outcome(verdict)) {
        case REPORT_FASTER:
                return g_strdup_printf("%.1f times as fast", 1 / ratio);
        case REPORT_SLOWER:
                return g_strdup_printf("takes %.1f times as long", ratio);
        case REPORT_UNCLEAR:
                break;
        }
        return g_strdup(verdict->ratios->len < 2 ? "one round does not tell" : "no clear difference");
}

char *report_values_text(const GArray *values) {
        double median = report_median(values);
        int decimals = report_decimals(median);

        if (values->len == 1)
                return g_strdup_printf("%.*f", decimals, median);
        return g_strdup_printf("%.*f (%.*f ... %.*f)", decimals, median, decimals, report_quantile(values, 0), decimals,
                               report_quantile(values, 1));
}

char *report_cell_text(const ReportCell *cell) {
        return cell->values ? report_values_text(cell->values) : g_strdup(cell->text ?: "");
}

char *report_label(const char *name, const char *unit) {
        return *unit ? g_strdup_printf("%s, %s", name, unit) : g_strdup(name);
}
