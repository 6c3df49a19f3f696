/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The forms of a report. Each is in a file of its own, report-text.c and so on. */
#ifndef BENCH_REPORT_FORMS_H
#define BENCH_REPORT_FORMS_H

#include "report.h"

/** For people: appends facts, figures, tables and notes. */
void report_to_text(const Report *report, GString *text);
/** Appends one JSON object, without a newline. */
void report_to_json(const Report *report, GString *json);
/** Appends lines of CSV, the names of their fields first. */
void report_to_csv(const Report *report, GString *csv);

/** -ENOENT where gnuplot is not installed; said on stderr. */
int report_plot_available(void);
/** "gnuplot 5.4 patchlevel 4". The caller frees it. */
char *report_plot_version(void);
/** Draws the charts into `folder`, which is made where it is missing, as SVG and PNG; a chart without a point is left out.
 * Says on stderr what fails. -ENOENT: there is no gnuplot. -EIO: it failed. Or what kept us from making the folder. */
int report_plot(const Report *report, const char *folder);
/** Where report_plot() draws a chart: FOLDER/VERB-ID and `suffix`. The caller frees it. */
char *report_plot_file(const Report *report, const ReportChart *chart, const char *folder, const char *suffix);

/** Appends a page of all reports (of Report): self-contained, its pictures read from where report_plot() drew them. -errno
 * where one cannot be read, said on stderr. */
int report_to_html(const GPtrArray *reports, const char *folder, GString *html);

#endif
