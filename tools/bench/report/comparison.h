/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of a report that shows the costs of the sides of a comparison. */
#ifndef SQLIPC_TOOLS_BENCH_REPORT_COMPARISON_H
#define SQLIPC_TOOLS_BENCH_REPORT_COMPARISON_H

#include "tools/bench/core/measure.h"
#include "tools/bench/report/report.h"

/* Columns of the table. The ratios to the references follow COMPARISON_TIME and begin at COMPARISON_RATIO. */
enum { COMPARISON_TIME = 0, COMPARISON_RATIO = 1 };

/** Adds a table with one row per side. Columns: time in ms; ratios to `n_references` other sides in the same round, where
 * `references` are indexes into `sides`; processor time, context switches and peak memory of client and server. The caller
 * may add rows of published figures. */
ReportTable *comparison_table(Report *report, const char *id, const char *title, const Side *sides, const Findings *findings,
                              size_t n_sides, const size_t *references, size_t n_references);

/** Adds four columns to a table: processor time of client, of server, of both, and the ratio of both to that of the row
 * named `reference`. Returns the number of the first. */
unsigned comparison_cpu_columns(ReportTable *table, const char *unit, const char *reference);
/** Fills those of the last row from column `first` on. `server`: NULL if all is done in the client. `reference`: the time of
 * both for the reference. */
void comparison_cpu_values(ReportTable *table, unsigned first, const GArray *client, const GArray *server,
                           const GArray *reference);

#endif
