/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as one JSON object, which contains every measured value. Pure. */
#include <math.h>

#include "tools/bench/report/report-data.h"
#include "tools/bench/report/report-forms.h"

static void append_string(GString *json, const char *string) {
        g_autofree char *valid = g_utf8_make_valid(string, -1);

        g_string_append_c(json, '"');
        for (const char *p = valid; *p; p++)
                if (*p == '"' || *p == '\\')
                        g_string_append_printf(json, "\\%c", *p);
                else if ((unsigned char) *p < 0x20)
                        g_string_append_printf(json, "\\u%04x", (unsigned) (unsigned char) *p);
                else
                        g_string_append_c(json, *p);
        g_string_append_c(json, '"');
}

static void append_number(GString *json, double value) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append(json, isfinite(value) ? g_ascii_formatd(number, sizeof number, "%.9g", value) : "null");
}

static void append_key(GString *json, const char *name) {
        append_string(json, name);
        g_string_append(json, ": ");
}

static void append_member(GString *json, const char *name, const char *string) {
        append_key(json, name);
        append_string(json, string);
        g_string_append(json, ", ");
}

/* Appends members to an object that is open. */
static void append_values(GString *json, const GArray *values) {
        g_string_append(json, "\"median\": ");
        append_number(json, report_median(values));
        g_string_append(json, ", \"values\": [");
        for (guint i = 0; i < values->len; i++) {
                g_string_append(json, i > 0 ? ", " : "");
                append_number(json, g_array_index(values, double, i));
        }
        g_string_append_c(json, ']');
}

/* Appends all elements of an array with `append`, separated by commas. */
static void append_all(GString *json, const GPtrArray *elements, void (*append)(GString *json, const void *element)) {
        for (guint i = 0; i < elements->len; i++) {
                g_string_append(json, i > 0 ? ", " : "");
                append(json, elements->pdata[i]);
        }
}

static void append_fact(GString *json, const void *element) {
        const ReportFact *fact = element;

        append_key(json, fact->name);
        append_string(json, fact->text);
}

static void append_figure(GString *json, const void *element) {
        const ReportFigure *figure = element;

        append_key(json, figure->name);
        g_string_append_c(json, '{');
        append_member(json, "unit", figure->unit);
        append_values(json, figure->values);
        g_string_append_c(json, '}');
}

static void append_verdict(GString *json, const void *element) {
        const ReportVerdict *verdict = element;
        g_autofree char *outcome = report_verdict_text(verdict);

        g_string_append_c(json, '{');
        append_member(json, "task", verdict->task);
        append_member(json, "rival", verdict->rival);
        append_member(json, "outcome", outcome);
        append_values(json, verdict->ratios);
        g_string_append_c(json, '}');
}

static void append_note(GString *json, const void *element) {
        append_string(json, element);
}

static void append_column(GString *json, const void *element) {
        const ReportColumn *column = element;

        g_string_append_c(json, '{');
        append_member(json, "name", column->name);
        append_key(json, "unit");
        append_string(json, column->unit);
        g_string_append_c(json, '}');
}

static void append_cell(GString *json, const ReportCell *cell) {
        if (cell->values) {
                g_string_append_c(json, '{');
                append_values(json, cell->values);
                g_string_append_c(json, '}');
        } else if (cell->text)
                append_string(json, cell->text);
        else
                g_string_append(json, "null");
}

static void append_row(GString *json, const ReportRow *row, guint n_columns) {
        g_string_append_c(json, '{');
        append_member(json, "name", row->name);
        g_string_append_printf(json, "\"published\": %s, \"cells\": [", row->published ? "true" : "false");
        for (guint i = 0; i < n_columns; i++) {
                g_string_append(json, i > 0 ? ", " : "");
                append_cell(json, &row->cells[i]);
        }
        g_string_append(json, "]}");
}

static void append_table(GString *json, const void *element) {
        const ReportTable *table = element;

        g_string_append_c(json, '{');
        append_member(json, "id", table->id);
        append_member(json, "title", table->title);
        append_member(json, "rows-are", table->rows_are);
        g_string_append(json, "\"columns\": [");
        append_all(json, table->columns, append_column);
        g_string_append(json, "], \"rows\": [");
        for (guint i = 0; i < table->rows->len; i++) {
                g_string_append(json, i > 0 ? ", " : "");
                append_row(json, table->rows->pdata[i], table->columns->len);
        }
        g_string_append(json, "]}");
}

static void append_point(GString *json, const void *element) {
        const ReportPoint *point = element;

        g_string_append(json, "{\"x\": ");
        if (point->name)
                append_string(json, point->name);
        else
                append_number(json, point->x);
        g_string_append(json, ", \"y\": ");
        append_number(json, point->y);
        g_string_append(json, ", \"least\": ");
        append_number(json, point->least);
        g_string_append(json, ", \"most\": ");
        append_number(json, point->most);
        g_string_append_c(json, '}');
}

static void append_series(GString *json, const void *element) {
        const ReportSeries *series = element;

        g_string_append_c(json, '{');
        append_member(json, "name", series->name);
        g_string_append_printf(json, "\"published\": %s, \"points\": [", series->published ? "true" : "false");
        append_all(json, series->points, append_point);
        g_string_append(json, "]}");
}

static void append_chart(GString *json, const void *element) {
        const ReportChart *chart = element;

        g_string_append_c(json, '{');
        append_member(json, "id", chart->id);
        append_member(json, "title", chart->title);
        append_member(json, "x-label", chart->x_label);
        append_member(json, "y-label", chart->y_label);
        g_string_append(json, "\"series\": [");
        append_all(json, chart->series, append_series);
        g_string_append(json, "]}");
}

void report_to_json(const Report *report, GString *json) {
        g_string_append_c(json, '{');
        append_member(json, "workload", report->verb);
        append_member(json, "title", report->title);
        if (report->failure)
                append_member(json, "failure", report->failure);
        g_string_append(json, "\"facts\": {");
        append_all(json, report->facts, append_fact);
        g_string_append(json, "}, \"verdicts\": [");
        append_all(json, report->verdicts, append_verdict);
        g_string_append(json, "], \"figures\": {");
        append_all(json, report->figures, append_figure);
        g_string_append(json, "}, \"tables\": [");
        append_all(json, report->tables, append_table);
        g_string_append(json, "], \"charts\": [");
        append_all(json, report->charts, append_chart);
        g_string_append(json, "], \"notes\": [");
        append_all(json, report->notes, append_note);
        g_string_append(json, "]}");
}
