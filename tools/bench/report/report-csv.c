/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A report as CSV (RFC 4180): one line for each cell of a table, each figure and each point of a chart, so that every line
 * has the same fields, regardless of the table's columns. Pure.
 */
#include "tools/bench/report/report-data.h"
#include "tools/bench/report/report-forms.h"

typedef struct Record {
        const char *table, *row, *column, *unit;
        bool published;
        const GArray *values; /* or NULL */
        const char *text;     /* or NULL */
} Record;

static void append_field(GString *csv, const char *field) {
        if (csv->len > 0 && csv->str[csv->len - 1] != '\n')
                g_string_append_c(csv, ',');
        g_string_append_c(csv, '"');
        for (const char *p = field; *p; p++)
                g_string_append_printf(csv, *p == '"' ? "\"%c" : "%c", *p);
        g_string_append_c(csv, '"');
}

static void append_number(GString *csv, double value) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append_printf(csv, ",%s", g_ascii_formatd(number, sizeof number, "%.9g", value));
}

static void append_record(GString *csv, const Report *report, const Record *record) {
        append_field(csv, report->verb);
        append_field(csv, record->table);
        append_field(csv, record->row);
        g_string_append_printf(csv, ",%d", record->published);
        append_field(csv, record->column);
        append_field(csv, record->unit);
        if (record->values) {
                append_number(csv, report_median(record->values));
                append_number(csv, report_quantile(record->values, 0));
                append_number(csv, report_quantile(record->values, 1));
                g_string_append_printf(csv, ",%u,", record->values->len);
        } else {
                g_string_append(csv, ",,,,");
                append_field(csv, record->text);
        }
        g_string_append(csv, "\r\n");
}

static void append_table(GString *csv, const Report *report, const ReportTable *table) {
        for (guint i = 0; i < table->rows->len; i++) {
                const ReportRow *row = table->rows->pdata[i];

                for (guint k = 0; k < table->columns->len; k++) {
                        const ReportColumn *column = table->columns->pdata[k];
                        const ReportCell *cell = &row->cells[k];

                        if (cell->values || cell->text)
                                append_record(csv, report,
                                              &(Record) { table->id, row->name, column->name, column->unit, row->published,
                                                          cell->values, cell->text });
                }
        }
}

/* A chart may have the same id as the table that it shows. */
static void append_series(GString *csv, const Report *report, const ReportChart *chart, const ReportSeries *series) {
        g_autofree char *table = g_strdup_printf("%s (chart)", chart->id);

        for (guint i = 0; i < series->points->len; i++) {
                const ReportPoint *point = series->points->pdata[i];
                g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
                char x[G_ASCII_DTOSTR_BUF_SIZE];

                g_array_append_val(values, point->y);
                g_ascii_formatd(x, sizeof x, "%.9g", point->x);
                append_record(csv, report,
                              &(Record) { table, point->name ?: x, series->name, chart->y_label, series->published,
                                          values, NULL });
        }
}

void report_to_csv(const Report *report, GString *csv) {
        g_string_append(csv, "workload,table,row,published,column,unit,median,least,most,n,text\r\n");
        for (guint i = 0; i < report->facts->len; i++) {
                const ReportFact *fact = report->facts->pdata[i];

                append_record(csv, report, &(Record) { "facts", fact->name, "", "", false, NULL, fact->text });
        }
        for (guint i = 0; i < report->verdicts->len; i++) {
                const ReportVerdict *verdict = report->verdicts->pdata[i];

                append_record(csv, report,
                              &(Record) { "verdicts", verdict->task, verdict->rival, "", false, verdict->ratios, NULL });
        }
        for (guint i = 0; i < report->figures->len; i++) {
                const ReportFigure *figure = report->figures->pdata[i];

                append_record(csv, report,
                              &(Record) { "figures", figure->name, "", figure->unit, false, figure->values, NULL });
        }
        for (guint i = 0; i < report->tables->len; i++)
                append_table(csv, report, report->tables->pdata[i]);
        for (guint i = 0; i < report->charts->len; i++) {
                const ReportChart *chart = report->charts->pdata[i];

                for (guint k = 0; k < chart->series->len; k++)
                        append_series(csv, report, chart, chart->series->pdata[k]);
        }
}
