/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a workload found, for people or as JSON: facts (what was measured, on what) and figures (median, least, most,
 * each value).
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <glib.h>
#include <stdbool.h>

typedef struct Report Report;

/** `title` is borrowed. The machine's facts are in it from the start. */
Report *report_new(const char *title);
Report *report_free(Report *report);
void report_freep(Report **report);

void report_fact(Report *report, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** `unit` may be "". Values are GArrays of double, not empty. */
void report_figure(Report *report, const char *name, const char *unit, const GArray *values);
void report_single(Report *report, const char *name, const char *unit, double value);
/** Writes it to stdout. 0, or negative where it cannot be written. */
int report_print(const Report *report, bool json);

/** The middle of the values, or of the two in the middle. */
double report_median(const GArray *values);

#endif
