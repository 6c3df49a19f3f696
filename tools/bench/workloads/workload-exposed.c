/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exposed: the cost of Expose=. The same file is published twice, as a whole and with its tables exposed, and gets the same
 * queries: a scan, point look-ups, a join. Both go through the service, so that their ratio shows only the cost of Expose=.
 * SQLite in process is measured for comparison.
 *
 * All sides must return the same bytes, or the measurement fails.
 */
#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/workload.h"

typedef enum SideNumber { SIDE_EXPOSED, SIDE_WHOLE, SIDE_PROCESS, _SIDE_MAX } SideNumber;
typedef enum BarrierSide { BARRIER_YES, BARRIER_NO, _BARRIER_MAX } BarrierSide;

/* A row of a view that hides each tenth row. */
#define BARRIER_SUFFIX "-barrier"
#define ROW_OF_VIEW "SELECT c02 FROM study_shown WHERE id = 11"

/* Queries on the study's table. CROSS JOIN fixes the order of the tables, so that all sides do the same look-ups. */
static const struct {
        const char *name, *sql;
} queries[] = {
        { "scan", NULL }, /* --sql */
        { "look-ups", "SELECT count(*) FROM study AS a CROSS JOIN study AS b ON b.id = 1 + a.id * 7 % 20000 "
                      "WHERE a.id <= 20000" },
        { "subqueries", "SELECT sum((SELECT length(c02) FROM study AS b WHERE b.id = a.id)) FROM study AS a "
                        "WHERE id <= 20000" },
        { "join", "SELECT count(*) FROM study AS a JOIN study AS b ON b.id = a.id + 1 WHERE a.c01 < b.c01" },
};

typedef struct Exposed {
        const BenchOptions *options;
        Service service;
        Baseline *baseline;
        const char *sql; /* the current query */
        Copy copy;       /* of the current run */
} Exposed;

static int run_exposed(void *userdata) {
        Exposed *exposed = userdata;

        return bench_service_copy(&exposed->service, exposed->options->exposed, exposed->sql, &exposed->copy);
}

/* The same file, with SecurityBarrier=yes. */
static int run_barrier(void *userdata) {
        Exposed *exposed = userdata;
        g_autofree char *name = g_strconcat(exposed->options->exposed, BARRIER_SUFFIX, NULL);

        return bench_service_copy(&exposed->service, name, exposed->sql, &exposed->copy);
}

static int run_whole(void *userdata) {
        Exposed *exposed = userdata;

        return bench_service_copy(&exposed->service, exposed->options->database, exposed->sql, &exposed->copy);
}

static int run_process(void *userdata) {
        Exposed *exposed = userdata;

        return baseline_copy(exposed->baseline, exposed->sql, BASELINE_FASTEST, &exposed->copy);
}

static uint64_t check(void *userdata) {
        Exposed *exposed = userdata;
        uint64_t hash = copy_hash(&exposed->copy);

        copy_done(&exposed->copy);
        return hash;
}

static ReportTable *make_table(Report *report) {
        ReportTable *table = report_table(report, "exposed", "The same file exposed and whole", "query");

        report_table_column(table, "exposed", "ms");
        report_table_column(table, "whole", "ms");
        report_table_column(table, "in process", "ms");
        report_table_column(table, "exposed / whole", "");
        return table;
}

static void report_query(ReportTable *table, const char *name, Findings findings[static _SIDE_MAX]) {
        g_autoptr(GArray) ratios = measure_ratios(findings[SIDE_EXPOSED].usec, findings[SIDE_WHOLE].usec);

        report_table_row(table, name, false);
        for (unsigned side = 0; side < _SIDE_MAX; side++) {
                g_autoptr(GArray) ms = measure_scaled(findings[side].usec, 1e-3);

                report_table_values(table, side, ms);
        }
        report_table_values(table, _SIDE_MAX, ratios);
}

static int measure_query(Exposed *exposed, const char *name, const char *sql, ReportTable *table) {
        const Side sides[_SIDE_MAX] = {
                [SIDE_EXPOSED] = { "exposed", run_exposed, check, exposed, exposed->service.pid },
                [SIDE_WHOLE] = { "whole", run_whole, check, exposed, exposed->service.pid },
                [SIDE_PROCESS] = { "in process", run_process, check, exposed, 0 },
        };
        Findings findings[_SIDE_MAX];
        int r;

        exposed->sql = sql;
        r = measure_sides(sides, _SIDE_MAX, bench_rounds(exposed->options), name, findings);
        if (r < 0)
                return r;
        report_query(table, name, findings);
        for (size_t i = 0; i < _SIDE_MAX; i++)
                findings_done(&findings[i]);
        return 0;
}

static void report_barrier(Report *report, Findings findings[static _BARRIER_MAX]) {
        ReportTable *table = report_table(report, "barrier", "One row of a view that hides rows", "SecurityBarrier=");
        g_autoptr(GArray) ratios = measure_ratios(findings[BARRIER_YES].usec, findings[BARRIER_NO].usec);

        report_table_column(table, "time", "ms");
        report_table_column(table, "ratio to no", "");
        for (unsigned side = 0; side < _BARRIER_MAX; side++) {
                g_autoptr(GArray) ms = measure_scaled(findings[side].usec, 1e-3);

                report_table_row(table, side == BARRIER_YES ? "yes" : "no", false);
                report_table_values(table, 0, ms);
                if (side == BARRIER_YES)
                        report_table_values(table, 1, ratios);
        }
}

static int measure_barrier(Exposed *exposed, Report *report) {
        const Side sides[_BARRIER_MAX] = {
                [BARRIER_YES] = { "with a barrier", run_barrier, check, exposed, exposed->service.pid },
                [BARRIER_NO] = { "without", run_exposed, check, exposed, exposed->service.pid },
        };
        Findings findings[_BARRIER_MAX];
        int r;

        exposed->sql = ROW_OF_VIEW;
        r = measure_sides(sides, _BARRIER_MAX, bench_rounds(exposed->options), "barrier", findings);
        if (r < 0)
                return r;
        report_barrier(report, findings);
        for (size_t i = 0; i < _BARRIER_MAX; i++)
                findings_done(&findings[i]);
        return 0;
}

static int measure_queries(Exposed *exposed, Report *report) {
        ReportTable *table;
        int r = 0;

        service_facts_add(report, &exposed->service, exposed->options);
        report_fact(report, "method", "warm cache: one run of each first, then %d rounds of all",
                    bench_rounds(exposed->options));
        table = make_table(report);
        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(queries); i++)
                r = measure_query(exposed, queries[i].name, queries[i].sql ?: exposed->options->sql, table);
        return r < 0 ? r : measure_barrier(exposed, report);
}

static int measure(const BenchOptions *options, Report *report) {
        Exposed exposed = { .options = options };
        int r = baseline_open(options->file, &exposed.baseline);

        if (r >= 0)
                r = bench_service_open(options, &exposed.service);
        if (r >= 0)
                r = measure_queries(&exposed, report);
        bench_service_close(&exposed.service);
        baseline_close(exposed.baseline);
        return r;
}

const Workload workload_exposed = {
        .verb = "exposed",
        .help = "what Expose= costs: the same file whole and exposed",
        .summary = "Measures what Expose= costs: a scan, look-ups and a join, of the same file whole and exposed; and what\n"
                   "SecurityBarrier= costs: one row of a view, from a third database called as --exposed with \"-barrier\".",
        .database = "study",
        .sql = "SELECT * FROM study",
        .measure = measure,
        .in_report = true,
};
