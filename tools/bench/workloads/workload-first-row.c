/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * first-row: the time from the call until the first row arrives. The rest of the result is not read. Three cases:
 *
 *      warm worker       an idle worker exists, as for a second query of a program
 *      before a scan     one row, followed by an endless scan that never fills a page
 *      no worker         with --cold: a worker must be started. Each run first waits until the service has no worker, which
 *                        takes WorkerIdleSec=
 *
 * SQLite in process is measured, too: on an open connection; for "no worker", on one that is opened for each run.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/workload.h"

/* The longest time to wait for idle workers to end, and the interval of the checks. */
enum {
        IDLE_WAIT_USEC = 120 * 1000 * 1000,
        IDLE_POLL_USEC = 50 * 1000,
        PAUSE_USEC = 10 * 1000, /* after a run, so that its end does not disturb the next one */
};

static const char scan_without_end[] =
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x = 1";

typedef struct FirstRow {
        const BenchOptions *options;
        Service service;
        Baseline *baseline;
        const char *sql;       /* of the current case */
        bool cold;             /* of the current case: without a worker */
        GArray *ours, *theirs; /* of double, usec; of the current case */
} FirstRow;

static int wait_until_idle(FirstRow *first_row) {
        double end = sampler_now_usec() + IDLE_WAIT_USEC;
        uint64_t count;
        int r;

        while ((r = bench_service_get_count(&first_row->service, "NWorkers", &count)) >= 0 && count > 0) {
                if (sampler_now_usec() > end) {
                        fprintf(stderr, "sqlipc-bench: the service keeps a worker: do others use it?\n");
                        return -EBUSY;
                }
                g_usleep(IDLE_POLL_USEC);
        }
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: the service does not tell its workers: %s\n", g_strerror(-r));
        return r;
}

static int measure_ours(FirstRow *first_row, double *ret_usec) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        double start = sampler_now_usec();
        int r;

        r = sqlipc_query(first_row->service.connection, first_row->options->database, first_row->sql, &cursor, NULL);
        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        *ret_usec = sampler_now_usec() - start;
        return r < 0 ? bench_service_failed(&first_row->service, r, first_row->sql) : 0;
}

static int measure_theirs(FirstRow *first_row, double *ret_usec) {
        __attribute__((cleanup(baseline_closep))) Baseline *opened = NULL;
        double start = sampler_now_usec();
        int r = 0;

        if (first_row->cold)
                r = baseline_open(first_row->options->file, &opened);
        if (r >= 0)
                r = baseline_first_row(opened ?: first_row->baseline, first_row->sql);
        *ret_usec = sampler_now_usec() - start;
        return r;
}

static int measure_pair(FirstRow *first_row, bool warm_up) {
        double ours, theirs;
        int r = 0;

        if (first_row->cold)
                r = wait_until_idle(first_row);
        if (r >= 0)
                r = measure_ours(first_row, &ours);
        if (r >= 0)
                r = measure_theirs(first_row, &theirs);
        if (r < 0)
                return r;
        if (!warm_up) {
                g_array_append_val(first_row->ours, ours);
                g_array_append_val(first_row->theirs, theirs);
        }
        g_usleep(PAUSE_USEC);
        return 0;
}

static void report_case(FirstRow *first_row, const char *name, Report *report, ReportTable *table) {
        g_autofree char *task = g_strdup_printf("First row, %s", name);
        g_autoptr(GArray) ratios = measure_ratios(first_row->ours, first_row->theirs);

        report_verdict(report, task, "SQLite in process", ratios);
        report_table_row(table, name, false);
        report_table_values(table, 0, first_row->ours);
        report_table_value(table, 1, report_quantile(first_row->ours, 0.99));
        report_table_values(table, 2, first_row->theirs);
}

static int measure_case(FirstRow *first_row, const char *name, int n_runs, Report *report,
                        ReportTable *table) {
        int r = first_row->cold ? 0 : measure_pair(first_row, true);

        g_array_set_size(first_row->ours, 0);
        g_array_set_size(first_row->theirs, 0);
        for (int i = 0; r >= 0 && i < n_runs; i++) {
                measure_progress(name, (unsigned) i, (unsigned) n_runs);
                r = measure_pair(first_row, false);
        }
        measure_progress(name, 1, 1);
        if (r >= 0)
                report_case(first_row, name, report, table);
        return r;
}

static ReportTable *make_table(Report *report) {
        ReportTable *table = report_table(report, "first-row", "From the call to the first row", "case");

        report_table_column(table, "libsqlipc", "us");
        report_table_column(table, "libsqlipc, p99", "us");
        report_table_column(table, "in process", "us");
        return table;
}

static int measure_cases(FirstRow *first_row, Report *report) {
        const BenchOptions *options = first_row->options;
        int n_runs = options->n_rounds > 0 ? options->n_rounds : (int) bench_amount(options, 2, 50, 50);
        int n_cold_runs = options->n_rounds > 0 ? options->n_rounds : (int) bench_amount(options, 2, 3, 5);
        ReportTable *table;
        int r;

        service_facts_add(report, &first_row->service, options);
        report_fact(report, "method", "file cached, one run first where there is a worker");
        table = make_table(report);
        first_row->sql = options->sql;
        r = measure_case(first_row, "warm worker", n_runs, report, table);
        first_row->sql = scan_without_end;
        if (r >= 0)
                r = measure_case(first_row, "before a scan without end", n_runs, report, table);
        first_row->sql = options->sql;
        first_row->cold = true;
        if (r >= 0 && options->cold)
                r = measure_case(first_row, "no worker", n_cold_runs, report, table);
        return r;
}

static int measure(const BenchOptions *options, Report *report) {
        FirstRow first_row = {
                .options = options,
                .ours = g_array_new(FALSE, FALSE, sizeof(double)),
                .theirs = g_array_new(FALSE, FALSE, sizeof(double)),
        };
        int r = baseline_open(options->file, &first_row.baseline);

        if (r >= 0)
                r = bench_service_open(options, &first_row.service);
        if (r >= 0)
                r = measure_cases(&first_row, report);
        bench_service_close(&first_row.service);
        baseline_close(first_row.baseline);
        g_array_unref(first_row.ours);
        g_array_unref(first_row.theirs);
        return r;
}

const Workload workload_first_row = {
        .verb = "first-row",
        .help = "time from the call to the first row",
        .summary = "Measures the time from the call to the first row, on a warm worker and where a scan without end "
                   "follows; with --cold also where a worker has to be started.",
        .database = "study",
        .sql = "SELECT * FROM study",
        .measure = measure,
        .in_report = true,
};
