/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The contents of a report, for its writers: report-text.c, report-json.c, report-csv.c, report-plot.c, report-html.c.
 * Workloads include only report.h.
 */
#ifndef SQLIPC_TOOLS_BENCH_REPORT_REPORT_DATA_H
#define SQLIPC_TOOLS_BENCH_REPORT_REPORT_DATA_H

#include <stdio.h>

#include "tools/bench/report/report.h"

typedef struct ReportFact {
        char *name, *text;
        bool machine; /* the same for all workloads of a run */
} ReportFact;

/* All measured values; or a text; or nothing if both are NULL. */
typedef struct ReportCell {
        GArray *values; /* of double */
        char *text;
} ReportCell;

typedef struct ReportFigure {
        char *name, *unit;
        GArray *values; /* of double */
} ReportFigure;

typedef struct ReportVerdict {
        char *task, *rival;
        GArray *ratios; /* of double: sqlipc's time divided by the rival's */
} ReportVerdict;

typedef struct ReportColumn {
        char *name, *unit;
} ReportColumn;

typedef struct ReportRow {
        char *name;
        bool published;
        ReportCell *cells; /* as many as the table has columns */
} ReportRow;

struct ReportTable {
        char *id, *title, *rows_are;
        GPtrArray *columns; /* of ReportColumn */
        GPtrArray *rows;    /* of ReportRow */
};

/* A point of a line, or a bar. */
typedef struct ReportPoint {
        double x;
        char *name;             /* of a bar, which has no `x`; NULL for a point */
        double y, least, most;  /* all three are equal if there is only one value */
} ReportPoint;

typedef struct ReportSeries {
        char *name;
        bool published;
        GPtrArray *points; /* of ReportPoint */
} ReportSeries;

struct ReportChart {
        char *id, *title, *x_label, *y_label;
        ReportAxes axes;
        GPtrArray *series; /* of ReportSeries */
};

struct Report {
        char *verb, *title;
        char *failure;      /* why the workload failed; NULL: it did not */
        GPtrArray *facts;   /* of ReportFact */
        GPtrArray *verdicts; /* of ReportVerdict */
        GPtrArray *figures; /* of ReportFigure */
        GPtrArray *notes;   /* of char */
        GPtrArray *tables;  /* of ReportTable */
        GPtrArray *charts;  /* of ReportChart */
};

/** Returns true if no series has a point. */
bool report_chart_is_empty(const ReportChart *chart);
/** Returns the number of decimals to print for a figure of this size. */
int report_decimals(double value);
/** Returns "412 (404 ... 456)", or "412" for a single value. The caller frees it. */
char *report_values_text(const GArray *values);
/** Returns a cell's values or text as text, "" for an empty cell. The caller frees it. */
char *report_cell_text(const ReportCell *cell);
/** FASTER or SLOWER if sqlipc was faster or slower in every round, of at least two; otherwise UNCLEAR. */
typedef enum ReportOutcome { REPORT_FASTER, REPORT_SLOWER, REPORT_UNCLEAR } ReportOutcome;
ReportOutcome report_outcome(const ReportVerdict *verdict);
/** Returns "1.7 times as fast", "takes 1.2 times as long", or a text for UNCLEAR. The caller frees it. */
char *report_verdict_text(const ReportVerdict *verdict);
/** Returns "NAME, UNIT", or "NAME" if there is no unit. The caller frees it. */
char *report_label(const char *name, const char *unit);

#endif
