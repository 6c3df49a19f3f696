/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The results of a workload, as data: facts (what was measured, and on which machine), figures, tables and charts. Published
 * figures appear beside the measured ones. Other files write the output formats: report-text.c (for people), report-json.c,
 * report-csv.c, report-plot.c (gnuplot), report-html.c.
 *
 * A figure consists of all values that were measured; the main value is their median. A cell contains such values, a text,
 * or nothing.
 */
#ifndef SQLIPC_TOOLS_BENCH_REPORT_REPORT_H
#define SQLIPC_TOOLS_BENCH_REPORT_REPORT_H

#include <glib.h>
#include <stdbool.h>

typedef struct Report Report;
typedef struct ReportTable ReportTable;
typedef struct ReportChart ReportChart;

/** Creates a report with the machine's facts. This function and those below copy all strings and values that they get. */
Report *report_new(const char *verb, const char *title);
Report *report_free(Report *report);
void report_freep(Report **report);
/** Marks the measurement as incomplete. The report keeps its contents. */
void report_failed(Report *report, const char *why);

void report_fact(Report *report, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** As report_fact(), for a fact that is the same for all workloads of a run. */
void report_run_fact(Report *report, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** Adds a line to the summary that compares sqlipc with `rival` for `task`. `ratios` contains sqlipc's time divided by the
 * rival's, one value per round. Adds nothing if a ratio is not known (NAN). */
void report_verdict(Report *report, const char *task, const char *rival, const GArray *ratios);
/** `unit` may be "". Values are GArrays of double; if there are none or one is NAN (not known), nothing is shown. */
void report_figure(Report *report, const char *name, const char *unit, const GArray *values);
void report_single(Report *report, const char *name, const char *unit, double value);
/** Adds a sentence that explains how to read the figures, or names the source of a published one. */
void report_note(Report *report, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Adds a table, which the report owns. `id`: [a-z0-9-]+, unique among the tables; a chart's is unique among the charts. It
 * becomes a file name and an anchor. `rows_are`: the heading of the first column, which contains the rows' names. */
ReportTable *report_table(Report *report, const char *id, const char *title, const char *rows_are);
/** Adds a column; returns its number, from 0. Add all columns before the first row. */
unsigned report_table_column(ReportTable *table, const char *name, const char *unit);
/** Begins a row of empty cells. `published`: its figures come from the publication that `name` mentions, and are marked as
 * published. */
void report_table_row(ReportTable *table, const char *name, bool published);
/** Fills a cell of the last row. */
void report_table_values(ReportTable *table, unsigned column, const GArray *values);
void report_table_value(ReportTable *table, unsigned column, double value);
void report_table_text(ReportTable *table, unsigned column, const char *format, ...) G_GNUC_PRINTF(3, 4);

typedef enum ReportAxes {
        REPORT_LINEAR = 0,
        REPORT_LOG_X = 1 << 0,
        REPORT_LOG_Y = 1 << 1,
        REPORT_BARS = 1 << 2, /* x values are names without an order */
} ReportAxes;

ReportChart *report_chart(Report *report, const char *id, const char *title, const char *x_label, const char *y_label,
                          ReportAxes axes);
/** Adds a line, or a colour of bars; returns its number, from 0. `published`: drawn dashed or hatched. */
unsigned report_chart_series(ReportChart *chart, const char *name, bool published);
/** Adds a point at the median of `values`. */
void report_chart_point(ReportChart *chart, unsigned series, double x, const GArray *values);
void report_chart_value(ReportChart *chart, unsigned series, double x, double y);
/** Adds the bar named `x`, for REPORT_BARS. */
void report_chart_bar(ReportChart *chart, unsigned series, const char *x, double y);

/** Returns the median: the middle value, or the mean of the two middle values. */
double report_median(const GArray *values);
/** Returns the value below which `fraction` of the values are (0.99: p99). */
double report_quantile(const GArray *values, double fraction);

#endif
