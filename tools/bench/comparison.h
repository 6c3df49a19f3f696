/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the sides of a comparison cost, as a table of a report. */
#ifndef BENCH_COMPARISON_H
#define BENCH_COMPARISON_H

#include "measure.h"
#include "report.h"

/* Columns of the table; ratios to the references stand behind COMPARISON_TIME, from COMPARISON_RATIO on. */
enum { COMPARISON_TIME = 0, COMPARISON_RATIO = 1 };

/** A row for each side: time in ms; its ratios in the same round to `n_references` sides, by their numbers; processor time,
 * context switches and peak memory of client and server. The caller may add rows of published figures. */
ReportTable *comparison_table(Report *report, const char *id, const char *title, const Side *sides, const Findings *findings,
                              size_t n_sides, const size_t *references, size_t n_references);

#endif
