/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reports as one self-contained page, which includes style and charts and has no script. It is both HTML and well-formed
 * XML, so that tools for either can read it.
 */
#include <errno.h>
#include <string.h>

#include "tools/bench/report/report-data.h"
#include "tools/bench/report/report-forms.h"

static const char style[] =
        ":root { color-scheme: light dark; --line: #8886; --faint: #8882; --bad: #c33; --good: #286; }\n"
        "body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }\n"
        "h1, h2, h3 { line-height: 1.2; }\n"
        "h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }\n"
        "dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }\n"
        "dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }\n"
        ".wide { overflow-x: auto; }\n"
        "table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }\n"
        "caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }\n"
        "th, td { border-bottom: 1px solid var(--line); padding: 0.2rem 0.6rem; text-align: right; vertical-align: top; }\n"
        "th:first-child { text-align: left; } thead th { background: var(--faint); }\n"
        "td small { display: block; opacity: 0.7; white-space: nowrap; }\n"
        ".faster { color: var(--good); font-weight: 600; } .slower { color: var(--bad); font-weight: 600; }\n"
        "h2::first-letter { text-transform: uppercase; }\n"
        "h2 code { display: block; font-size: 0.9rem; font-weight: 400; opacity: 0.7; }\n"
        "#summary td:nth-child(2), #summary td:last-child { text-align: left; }\n"
        ".published { font-style: italic; background: var(--faint); }\n"
        ".failed { border-left: 0.3rem solid var(--bad); padding: 0.5rem 1rem; background: var(--faint); }\n"
        "svg { background: #fff; max-width: 100%; height: auto; border-radius: 0.3rem; }\n"
        "figure { margin: 1rem 0; }\n"
        "@media print { body { max-width: none; font-size: 10pt; } nav { display: none; }\n"
        "  section { break-before: page; } table, figure { break-inside: avoid; } .wide { overflow: visible; } }\n";

static void append_escaped(GString *html, const char *text) {
        g_autofree char *valid = g_utf8_make_valid(text, -1), *escaped = NULL;

        for (char *p = valid; *p; p++) /* XML cannot represent control characters */
                if ((unsigned char) *p < ' ')
                        *p = ' ';
        escaped = g_markup_escape_text(valid, -1);
        g_string_append(html, escaped);
}

static void append_element(GString *html, const char *element, const char *text) {
        g_string_append_printf(html, "<%s>", element);
        append_escaped(html, text);
        g_string_append_printf(html, "</%s>", element);
}

/* Appends a median, and below it the least and the greatest value. */
static void append_values(GString *html, const GArray *values) {
        double median = report_median(values);
        int decimals = report_decimals(median);

        g_string_append_printf(html, "%.*f", decimals, median);
        if (values->len > 1)
                g_string_append_printf(html, "<small>%.*f \xe2\x80\xa6 %.*f</small>", decimals, report_quantile(values, 0),
                                       decimals, report_quantile(values, 1));
}

/* ---- Parts of a workload ------------------------------------------------------------------------------------------ */

static void append_facts(GString *html, const Report *report, bool machine) {
        g_string_append(html, "<dl>\n");
        for (guint i = 0; i < report->facts->len; i++) {
                const ReportFact *fact = report->facts->pdata[i];

                if (fact->machine != machine)
                        continue;
                append_element(html, "dt", fact->name);
                append_element(html, "dd", fact->text);
                g_string_append_c(html, '\n');
        }
        if (machine) {
                g_autofree char *gnuplot = report_plot_version();

                append_element(html, "dt", "charts");
                append_element(html, "dd", gnuplot);
        }
        g_string_append(html, "</dl>\n");
}

static void append_figures(GString *html, const GPtrArray *figures) {
        if (figures->len == 0)
                return;
        g_string_append(html, "<div class=\"wide\"><table>\n<tbody>\n");
        for (guint i = 0; i < figures->len; i++) {
                const ReportFigure *figure = figures->pdata[i];
                g_autofree char *label = report_label(figure->name, figure->unit);

                g_string_append(html, "<tr>");
                append_element(html, "th", label);
                g_string_append(html, "<td>");
                append_values(html, figure->values);
                g_string_append(html, "</td></tr>\n");
        }
        g_string_append(html, "</tbody>\n</table></div>\n");
}

static void append_row(GString *html, const ReportRow *row, guint n_columns) {
        g_string_append(html, row->published ? "<tr class=\"published\">" : "<tr>");
        g_string_append(html, "<th>");
        append_escaped(html, row->name);
        g_string_append(html, row->published ? " (published)</th>" : "</th>");
        for (guint i = 0; i < n_columns; i++) {
                g_string_append(html, "<td>");
                if (row->cells[i].values)
                        append_values(html, row->cells[i].values);
                else
                        append_escaped(html, row->cells[i].text ?: "");
                g_string_append(html, "</td>");
        }
        g_string_append(html, "</tr>\n");
}

static void append_table(GString *html, const Report *report, const ReportTable *table) {
        g_string_append_printf(html, "<div class=\"wide\"><table id=\"%s-%s\">\n", report->verb, table->id);
        append_element(html, "caption", table->title);
        g_string_append(html, "\n<thead><tr>");
        append_element(html, "th", table->rows_are);
        for (guint i = 0; i < table->columns->len; i++) {
                const ReportColumn *column = table->columns->pdata[i];
                g_autofree char *label = report_label(column->name, column->unit);

                append_element(html, "th", label);
        }
        g_string_append(html, "</tr></thead>\n<tbody>\n");
        for (guint i = 0; i < table->rows->len; i++)
                append_row(html, table->rows->pdata[i], table->columns->len);
        g_string_append(html, "</tbody>\n</table></div>\n");
}

/* Makes the ids of a picture unique in the page, because gnuplot uses the same ids, such as gpPt1, in every picture. */
static char *with_own_ids(const char *svg, const char *prefix) {
        g_autoptr(GRegex) regex = g_regex_new("(\\bid=['\"]|href=['\"]#|url\\(['\"]?#)", G_REGEX_DEFAULT, 0, NULL);
        g_autofree char *replacement = g_strdup_printf("\\1%s-", prefix);

        return g_regex_replace(regex, svg, -1, 0, replacement, 0, NULL);
}

static int append_chart(GString *html, const Report *report, const ReportChart *chart, const char *folder) {
        g_autofree char *path = report_plot_file(report, chart, folder, ".svg"), *file = NULL, *svg = NULL;
        g_autofree char *prefix = g_strdup_printf("%s-%s", report->verb, chart->id);
        g_autoptr(GError) error = NULL;
        const char *picture;

        if (report_chart_is_empty(chart))
                return 0;
        if (!g_file_get_contents(path, &file, NULL, &error)) {
                fprintf(stderr, "sqlipc-bench: %s\n", error->message);
                return -EIO;
        }
        picture = strstr(file, "<svg"); /* skips the XML declaration, which may occur only at the start of a file */
        if (!picture) {
                fprintf(stderr, "sqlipc-bench: %s is no SVG.\n", path);
                return -EBADMSG;
        }
        svg = with_own_ids(picture, prefix);
        g_string_append_printf(html, "<figure>\n%s</figure>\n", svg);
        return 0;
}

static int append_report(GString *html, const Report *report, const char *folder) {
        int r = 0, k;

        g_string_append_printf(html, "<section id=\"%s\">\n<h2>", report->verb);
        append_escaped(html, report->title);
        g_string_append_printf(html, " <code>sqlipc-bench %s</code></h2>\n", report->verb);
        if (report->failure) {
                g_string_append(html, "<p class=\"failed\">This failed, and shows what was found before: ");
                append_escaped(html, report->failure);
                g_string_append(html, "</p>\n");
        }
        append_facts(html, report, false);
        append_figures(html, report->figures);
        for (guint i = 0; i < report->tables->len; i++)
                append_table(html, report, report->tables->pdata[i]);
        for (guint i = 0; i < report->charts->len; i++) {
                k = append_chart(html, report, report->charts->pdata[i], folder);
                if (k < 0)
                        r = k;
        }
        for (guint i = 0; i < report->notes->len; i++) {
                append_element(html, "p", report->notes->pdata[i]);
                g_string_append_c(html, '\n');
        }
        g_string_append(html, "</section>\n");
        return r;
}

/* ---- The page ----------------------------------------------------------------------------------------------------- */

static void append_verdict(GString *html, const Report *report, const ReportVerdict *verdict) {
        static const char *const classes[] = {
                [REPORT_FASTER] = "faster",
                [REPORT_SLOWER] = "slower",
                [REPORT_UNCLEAR] = "",
        };
        g_autofree char *outcome = report_verdict_text(verdict);

        g_string_append_printf(html, "<tr><th><a href=\"#%s\">", report->verb);
        append_escaped(html, verdict->task);
        g_string_append(html, "</a></th>");
        append_element(html, "td", verdict->rival);
        g_string_append(html, "<td>");
        append_values(html, verdict->ratios);
        g_string_append_printf(html, "</td><td class=\"%s\">", classes[report_outcome(verdict)]);
        append_escaped(html, outcome);
        g_string_append(html, "</td></tr>\n");
}

static void append_summary(GString *html, const GPtrArray *reports) {
        g_string_append(html, "<section id=\"summary\">\n<h2>Summary</h2>\n<div class=\"wide\"><table>\n"
                              "<caption>sqlipc's time divided by the rival's: below 1, sqlipc is faster</caption>\n"
                              "<thead><tr><th>task</th><th>rival</th><th>time ratio</th><th>sqlipc</th></tr></thead>\n"
                              "<tbody>\n");
        for (guint i = 0; i < reports->len; i++) {
                const Report *report = reports->pdata[i];

                for (guint k = 0; k < report->verdicts->len; k++)
                        append_verdict(html, report, report->verdicts->pdata[k]);
        }
        g_string_append(html, "</tbody>\n</table></div>\n<p>\"Faster\" and \"slower\" are said only if all rounds agree."
                              "</p>\n</section>\n");
}

static void append_head(GString *html, const GPtrArray *reports) {
        g_autoptr(GDateTime) now = g_date_time_new_now_utc();
        g_autofree char *time = g_date_time_format(now, "%Y-%m-%d %H:%M UTC");

        g_string_append_printf(html,
                               "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
                               "<meta charset=\"utf-8\"/>\n"
                               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                               "<title>sqlipc-bench</title>\n<style>\n%s</style>\n</head>\n<body>\n"
                               "<h1>sqlipc-bench</h1>\n<p>Measured until %s, in one run on one machine. A figure is "
                               "the median of its rounds, with the least and the most below it. Sides of a comparison "
                               "take turns. All files were in the page cache. Rows and lines marked as published come "
                               "from the literature: other machines, other times.</p>\n",
                               style, time);
        if (reports->len > 0)
                append_facts(html, reports->pdata[0], true);
        g_string_append(html, "<nav><ul>\n");
        for (guint i = 0; i < reports->len; i++) {
                const Report *report = reports->pdata[i];

                g_string_append_printf(html, "<li><a href=\"#%s\">", report->verb);
                append_escaped(html, report->title);
                g_string_append_printf(html, "</a>%s</li>\n", report->failure ? " <strong>(failed)</strong>" : "");
        }
        g_string_append(html, "</ul></nav>\n");
}

int report_to_html(const GPtrArray *reports, const char *folder, GString *html) {
        int r = 0, k;

        append_head(html, reports);
        append_summary(html, reports);
        for (guint i = 0; i < reports->len; i++) {
                k = append_report(html, reports->pdata[i], folder);
                if (k < 0)
                        r = k;
        }
        g_string_append(html, "</body>\n</html>\n");
        return r;
}
