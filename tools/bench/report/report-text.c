/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report for people, in columns and without charts. Pure. */
#include "tools/bench/report/report-data.h"
#include "tools/bench/report/report-forms.h"

enum { LABEL_WIDTH = 32 };

static void append_padded(GString *text, const char *string, glong width, bool right) {
        glong missing = width - g_utf8_strlen(string, -1);
        g_autofree char *padding = g_strnfill((gsize) MAX(missing, 0), ' ');

        g_string_append_printf(text, "%s%s", right ? padding : string, right ? string : padding);
}

static void append_figure(GString *text, const ReportFigure *figure) {
        g_autofree char *label = report_label(figure->name, figure->unit), *values = report_values_text(figure->values);

        append_padded(text, label, LABEL_WIDTH, false);
        g_string_append_printf(text, " %s\n", values);
}

static void append_verdict(GString *text, const ReportVerdict *verdict) {
        g_autofree char *values = report_values_text(verdict->ratios), *outcome = report_verdict_text(verdict);

        g_string_append_printf(text, "%s, beside %s: %s (time ratio %s)\n", verdict->task, verdict->rival, outcome, values);
}

/* Returns the table as lines of strings, headings first. The caller frees all of them. */
static GPtrArray *make_lines(const ReportTable *table) {
        GPtrArray *lines = g_ptr_array_new_with_free_func((GDestroyNotify) g_ptr_array_unref);
        GPtrArray *head = g_ptr_array_new_with_free_func(g_free);

        g_ptr_array_add(head, g_strdup(table->rows_are));
        for (guint i = 0; i < table->columns->len; i++) {
                const ReportColumn *column = table->columns->pdata[i];

                g_ptr_array_add(head, report_label(column->name, column->unit));
        }
        g_ptr_array_add(lines, head);
        for (guint i = 0; i < table->rows->len; i++) {
                const ReportRow *row = table->rows->pdata[i];
                GPtrArray *line = g_ptr_array_new_with_free_func(g_free);

                g_ptr_array_add(line, g_strconcat(row->name, row->published ? " [published]" : "", NULL));
                for (guint k = 0; k < table->columns->len; k++)
                        g_ptr_array_add(line, report_cell_text(&row->cells[k]));
                g_ptr_array_add(lines, line);
        }
        return lines;
}

static glong column_width(const GPtrArray *lines, guint column) {
        glong width = 0;

        for (guint i = 0; i < lines->len; i++)
                width = MAX(width, g_utf8_strlen(((GPtrArray *) lines->pdata[i])->pdata[column], -1));
        return width;
}

/* Returns the length without trailing blanks. */
static gsize trimmed(const GString *text) {
        gsize length = text->len;

        while (length > 0 && text->str[length - 1] == ' ')
                length--;
        return length;
}

static void append_table(GString *text, const ReportTable *table) {
        g_autoptr(GPtrArray) lines = make_lines(table);

        g_string_append_printf(text, "\n%s\n\n", table->title);
        for (guint i = 0; i < lines->len; i++) {
                const GPtrArray *line = lines->pdata[i];

                for (guint k = 0; k < line->len; k++) {
                        g_string_append(text, k > 0 ? "  " : "");
                        append_padded(text, line->pdata[k], column_width(lines, k), k > 0);
                }
                g_string_truncate(text, trimmed(text));
                g_string_append_c(text, '\n');
        }
}

void report_to_text(const Report *report, GString *text) {
        g_string_append_printf(text, "%s: %s\n\n", report->verb, report->title);
        for (guint i = 0; i < report->facts->len; i++) {
                const ReportFact *fact = report->facts->pdata[i];

                append_padded(text, fact->name, LABEL_WIDTH, false);
                g_string_append_printf(text, " %s\n", fact->text);
        }
        for (guint i = 0; i < report->verdicts->len; i++)
                append_verdict(text, report->verdicts->pdata[i]);
        for (guint i = 0; i < report->figures->len; i++)
                append_figure(text, report->figures->pdata[i]);
        for (guint i = 0; i < report->tables->len; i++)
                append_table(text, report->tables->pdata[i]);
        for (guint i = 0; i < report->notes->len; i++)
                g_string_append_printf(text, "%s%s\n", i == 0 ? "\n" : "", (const char *) report->notes->pdata[i]);
        if (report->failure)
                g_string_append_printf(text, "\nNot measured to the end: %s\n", report->failure);
}
