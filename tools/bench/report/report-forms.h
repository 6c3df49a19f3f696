/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output formats of a report. Each has its own file, report-text.c and so on. */
#ifndef SQLIPC_TOOLS_BENCH_REPORT_REPORT_FORMS_H
#define SQLIPC_TOOLS_BENCH_REPORT_REPORT_FORMS_H

#include "tools/bench/report/report.h"

/** Appends facts, figures, tables and notes as text for people. */
void report_to_text(const Report *report, GString *text);
/** Appends one JSON object, without a newline. */
void report_to_json(const Report *report, GString *json);
/** Appends lines of CSV, of which the first contains the field names. */
void report_to_csv(const Report *report, GString *csv);

/** Returns -ENOENT, and reports it on stderr, if gnuplot is not installed. */
int report_plot_available(void);
/** Returns gnuplot's version, such as "gnuplot 5.4 patchlevel 4". The caller frees it. */
char *report_plot_version(void);
/** Draws the charts into `folder` as SVG and PNG. Creates the folder if it does not exist, and omits charts without points.
 * Reports errors on stderr. -ENOENT: gnuplot is not installed. -EIO: gnuplot failed. Other errors come from creating the
 * folder. */
int report_plot(const Report *report, const char *folder);
/** Returns the path of a chart that report_plot() draws: FOLDER/VERB-ID plus `suffix`. The caller frees it. */
char *report_plot_file(const Report *report, const ReportChart *chart, const char *folder, const char *suffix);

/** Appends one self-contained page with all reports (a GPtrArray of Report). It embeds the pictures that report_plot() drew.
 * If one cannot be read, reports that on stderr and returns a negative errno. */
int report_to_html(const GPtrArray *reports, const char *folder, GString *html);

#endif
