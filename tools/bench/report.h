/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a workload found, as data: facts (what was measured, on what), figures, tables and charts, published figures beside
 * the measured ones. Its forms are written elsewhere: report-text.c (for people), report-json.c, report-csv.c,
 * report-plot.c (gnuplot), report-html.c.
 *
 * A cell, as a figure, is all values that were measured, of which the median counts; a text; or nothing.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <glib.h>
#include <stdbool.h>

typedef struct Report Report;
typedef struct ReportTable ReportTable;
typedef struct ReportChart ReportChart;

/** `verb` and `title` are copied, as are all strings and values below. The machine's facts are in it from the start. */
Report *report_new(const char *verb, const char *title);
Report *report_free(Report *report);
void report_freep(Report **report);
/** It was not measured to the end; what is there stays. */
void report_failed(Report *report, const char *why);

void report_fact(Report *report, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** As report_fact(), for what is the same for all workloads of a run. */
void report_run_fact(Report *report, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** One line of the summary: how long sqlipc takes for `task` beside `rival`. `ratios`: sqlipc's time divided by the rival's,
 * one value a round; nothing is added if one is not known. */
void report_verdict(Report *report, const char *task, const char *rival, const GArray *ratios);
/** `unit` may be "". Values are GArrays of double; where there are none, or one is NAN (not known), nothing is shown. */
void report_figure(Report *report, const char *name, const char *unit, const GArray *values);
void report_single(Report *report, const char *name, const char *unit, double value);
/** A sentence about how to read the figures, or where a published one comes from. */
void report_note(Report *report, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** A table, owned by the report. `id`: [a-z0-9-]+, its own among the tables, as a chart's is among the charts (file name,
 * anchor). `rows_are`: head of the first column, what each row's name is. */
ReportTable *report_table(Report *report, const char *id, const char *title, const char *rows_are);
/** One more column; returns its number, from 0. All columns come before the first row. */
unsigned report_table_column(ReportTable *table, const char *name, const char *unit);
/** Begins a row, whose cells hold nothing. `published`: its figures come from the literature, `name` says which, and are
 * shown as such. */
void report_table_row(ReportTable *table, const char *name, bool published);
/** Fills a cell of the last row. */
void report_table_values(ReportTable *table, unsigned column, const GArray *values);
void report_table_value(ReportTable *table, unsigned column, double value);
void report_table_text(ReportTable *table, unsigned column, const char *format, ...) G_GNUC_PRINTF(3, 4);

typedef enum ReportAxes {
        REPORT_LINEAR = 0,
        REPORT_LOG_X = 1 << 0,
        REPORT_LOG_Y = 1 << 1,
        REPORT_BARS = 1 << 2, /* x has names, and no order */
} ReportAxes;

ReportChart *report_chart(Report *report, const char *id, const char *title, const char *x_label, const char *y_label,
                          ReportAxes axes);
/** One more line or colour of bars; returns its number, from 0. `published`: dashed, or hatched. */
unsigned report_chart_series(ReportChart *chart, const char *name, bool published);
/** `values`: whose median is drawn. */
void report_chart_point(ReportChart *chart, unsigned series, double x, const GArray *values);
void report_chart_value(ReportChart *chart, unsigned series, double x, double y);
/** REPORT_BARS: the bar named `x`. */
void report_chart_bar(ReportChart *chart, unsigned series, const char *x, double y);

/** The middle of the values, or of the two in the middle. */
double report_median(const GArray *values);
/** The value below which `fraction` of them are (0.99: p99). */
double report_quantile(const GArray *values, double fraction);

#endif
