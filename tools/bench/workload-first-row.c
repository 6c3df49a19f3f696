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
#include "report.h"
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
        ServiceOptions options;
        gboolean cold;
        Service service;
        Baseline *baseline;    /* NULL with --cold */
        GArray *ours, *theirs; /* of double, usec */
} FirstRow;

static int wait_until(FirstRow *first_row, const char *property) {
        double end = sampler_now_usec() + IDLE_WAIT_USEC;
        uint64_t count;
        int r;

        while ((r = service_get_count(&first_row->service, property, &count)) >= 0 && count > 0) {
                if (sampler_now_usec() > end) {
                        fprintf(stderr, "sqlipc-bench: %s of the service does not reach 0: do others use it?\n", property);
                        return -EBUSY;
                }
                g_usleep(IDLE_POLL_USEC);
        }
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: the service does not tell its %s: %s\n", property, g_strerror(-r));
        return r;
}

static int measure_ours(FirstRow *first_row, double *ret_usec) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        double start = sampler_now_usec();
        int r;

        r = sqlipc_query(first_row->service.connection, first_row->options.database, first_row->options.sql, &cursor, NULL);
        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        *ret_usec = sampler_now_usec() - start;
        return r < 0 ? service_failed(&first_row->service, r, first_row->options.sql) : 0;
}

static int measure_theirs(FirstRow *first_row, double *ret_usec) {
        __attribute__((cleanup(baseline_closep))) Baseline *opened = NULL;
        double start = sampler_now_usec();
        int r = 0;

        if (first_row->cold)
                r = baseline_open(first_row->options.file, &opened);
        if (r >= 0)
                r = baseline_first_row(first_row->cold ? opened : first_row->baseline, first_row->options.sql);
        *ret_usec = sampler_now_usec() - start;
        return r;
}

static int measure_pair(FirstRow *first_row, bool warm_up) {
        double ours, theirs;
        int r = 0;

        if (first_row->cold)
                r = wait_until(first_row, "NWorkers");
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

static int print(FirstRow *first_row) {
        __attribute__((cleanup(report_freep))) Report *report = report_new("first-row");

        service_report(&first_row->service, &first_row->options, report);
        report_fact(report, "method", "%s, file cached, %d runs", first_row->cold ? "no worker" : "warm worker",
                    first_row->options.n_runs);
        report_figure(report, "libsqlipc", "us", first_row->ours);
        report_figure(report, "in process", "us", first_row->theirs);
        return report_print(report, first_row->options.json);
}

static int run(FirstRow *first_row) {
        int r = 0;

        if (!first_row->cold)
                r = baseline_open(first_row->options.file, &first_row->baseline);
        if (r >= 0)
                r = service_open(&first_row->options, &first_row->service);
        if (r < 0)
                return r;

        if (!first_row->cold)
                r = measure_pair(first_row, true);
        for (int i = 0; r >= 0 && i < first_row->options.n_runs; i++)
                r = measure_pair(first_row, false);
        if (r >= 0)
                r = print(first_row);
        service_close(&first_row->service);
        return r;
}

int workload_first_row(int argc, char **argv) {
        FirstRow first_row = {};
        const GOptionEntry entries[] = {
                { "runs", 0, 0, G_OPTION_ARG_INT, &first_row.options.n_runs, "Runs, 50, or 5 with --cold", "N" },
                { "cold", 0, 0, G_OPTION_ARG_NONE, &first_row.cold, "Wait before each run until no worker is left", NULL },
                {},
        };
        int r;

        r = service_options_parse(&first_row.options, entries, "Measures the time from the call to the first row.", argc,
                                  argv);
        if (r >= 0 && first_row.options.n_runs < 0) {
                fprintf(stderr, "sqlipc-bench: --runs is at least 1.\n");
                r = -EINVAL;
        }
        if (r < 0) {
                service_options_done(&first_row.options);
                return BENCH_USAGE;
        }
        if (first_row.options.n_runs == 0)
                first_row.options.n_runs = first_row.cold ? 5 : 50;

        first_row.ours = g_array_new(FALSE, FALSE, sizeof(double));
        first_row.theirs = g_array_new(FALSE, FALSE, sizeof(double));
        r = run(&first_row);
        g_array_unref(first_row.ours);
        g_array_unref(first_row.theirs);
        baseline_close(first_row.baseline);
        service_options_done(&first_row.options);
        return r < 0 ? BENCH_FAILED : BENCH_OK;
}
