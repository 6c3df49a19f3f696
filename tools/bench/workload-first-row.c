/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * first-row: how long from the call until the first row is there. The rest of the result is not read.
 *
 * On a warm worker, as the next query of a program finds it; or, with --cold, when a worker has to be started: each run
 * then waits until the service has none left, which takes its WorkerIdleSec=. In process beside it: on an open connection,
 * with --cold on one that is opened for the run.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "baseline.h"
#include "measure.h"
#include "sampler.h"
#include "service.h"
#include "workload.h"

/* How long a service may keep idle workers before we give up, and how often it is asked. */
enum {
        IDLE_WAIT_USEC = 120 * 1000 * 1000,
        IDLE_POLL_USEC = 50 * 1000,
        PAUSE_USEC = 10 * 1000, /* after a run, so that what its end costs is not the next one's */
};

typedef struct FirstRow {
        const BenchOptions *options;
        Service service;
        Baseline *baseline;    /* NULL with --cold */
        GArray *ours, *theirs; /* of double, usec */
} FirstRow;

static int wait_until_idle(FirstRow *first_row) {
        double end = sampler_now_usec() + IDLE_WAIT_USEC;
        uint64_t count;
        int r;

        while ((r = service_get_count(&first_row->service, "NWorkers", &count)) >= 0 && count > 0) {
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
        const BenchOptions *options = first_row->options;
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        double start = sampler_now_usec();
        int r;

        r = sqlipc_query(first_row->service.connection, options->database, options->sql, &cursor, NULL);
        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        *ret_usec = sampler_now_usec() - start;
        return r < 0 ? service_failed(&first_row->service, r, options->sql) : 0;
}

static int measure_theirs(FirstRow *first_row, double *ret_usec) {
        __attribute__((cleanup(baseline_closep))) Baseline *opened = NULL;
        double start = sampler_now_usec();
        int r = 0;

        if (first_row->options->cold)
                r = baseline_open(first_row->options->file, &opened);
        if (r >= 0)
                r = baseline_first_row(opened ?: first_row->baseline, first_row->options->sql);
        *ret_usec = sampler_now_usec() - start;
        return r;
}

static int measure_pair(FirstRow *first_row, bool warm_up) {
        double ours, theirs;
        int r = 0;

        if (first_row->options->cold)
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

static void report_findings(FirstRow *first_row, Report *report) {
        ReportTable *table;

        service_report(&first_row->service, first_row->options, report);
        report_fact(report, "method", "%s, file cached, %u runs", first_row->options->cold ? "no worker" : "warm worker",
                    first_row->ours->len);
        table = report_table(report, "first-row", "From the call to the first row", "side");
        report_table_column(table, "time", "us");
        report_table_column(table, "p99", "us");
        report_table_row(table, "libsqlipc", false);
        report_table_values(table, 0, first_row->ours);
        report_table_value(table, 1, report_quantile(first_row->ours, 0.99));
        report_table_row(table, "in process", false);
        report_table_values(table, 0, first_row->theirs);
        report_table_value(table, 1, report_quantile(first_row->theirs, 0.99));
}

static int measure_opened(FirstRow *first_row, Report *report) {
        const BenchOptions *options = first_row->options;
        int n_runs = options->n_rounds > 0 ? options->n_rounds
                                           : (int) bench_amount(options, 2, options->cold ? 5 : 50, options->cold ? 5 : 50);
        int r = options->cold ? 0 : measure_pair(first_row, true);

        for (int i = 0; r >= 0 && i < n_runs; i++) {
                measure_progress("first-row", (unsigned) i, (unsigned) n_runs);
                r = measure_pair(first_row, false);
        }
        measure_progress("first-row", 1, 1);
        if (r >= 0)
                report_findings(first_row, report);
        return r;
}

static int measure(const BenchOptions *options, Report *report) {
        FirstRow first_row = {
                .options = options,
                .ours = g_array_new(FALSE, FALSE, sizeof(double)),
                .theirs = g_array_new(FALSE, FALSE, sizeof(double)),
        };
        int r = options->cold ? 0 : baseline_open(options->file, &first_row.baseline);

        if (r >= 0)
                r = service_open(options, &first_row.service);
        if (r >= 0)
                r = measure_opened(&first_row, report);
        service_close(&first_row.service);
        baseline_close(first_row.baseline);
        g_array_unref(first_row.ours);
        g_array_unref(first_row.theirs);
        return r;
}

const Workload workload_first_row = {
        .verb = "first-row",
        .help = "time from the call to the first row",
        .summary = "Measures the time from the call to the first row.",
        .database = "study",
        .sql = "SELECT * FROM study",
        .measure = measure,
        .in_report = true,
};
