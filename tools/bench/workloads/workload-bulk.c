/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bulk: copies every value of a whole result into this process's memory: through libsqlipc, in process in the usual way,
 * and in process in the fastest way; on two CPUs and on one. Then measures the effect of sizes (bulk-sizes.c), and checks
 * that time grows in proportion to the rows and memory does not grow (bulk-growth.c).
 *
 * All sides must copy the same bytes, or the measurement fails. Hashes are computed after the clock has stopped.
 */
#include <errno.h>
#include <inttypes.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/bulk.h"
#include "tools/bench/workloads/workload.h"

enum { SIDE_SQLIPC, SIDE_USUAL, SIDE_FASTEST, N_SIDES };

typedef struct Bulk {
        const BenchOptions *options;
        Service service;
        Baseline *baseline;
        Copy copy;                /* of the current run */
        uint64_t n_rows, n_bytes; /* of the last run */
} Bulk;

static int run_sqlipc(void *userdata) {
        Bulk *bulk = userdata;

        return bench_service_copy(&bulk->service, bulk->options->database, bulk->options->sql, &bulk->copy);
}

static int run_usual(void *userdata) {
        Bulk *bulk = userdata;

        return baseline_copy(bulk->baseline, bulk->options->sql, BASELINE_USUAL, &bulk->copy);
}

static int run_fastest(void *userdata) {
        Bulk *bulk = userdata;

        return baseline_copy(bulk->baseline, bulk->options->sql, BASELINE_FASTEST, &bulk->copy);
}

static uint64_t check(void *userdata) {
        Bulk *bulk = userdata;
        uint64_t hash = copy_hash(&bulk->copy);

        bulk->n_rows = bulk->copy.n_rows;
        bulk->n_bytes = bulk->copy.n_bytes;
        copy_done(&bulk->copy);
        return hash;
}

/* ---- Beside SQLite in process ------------------------------------------------------------------------------------- */

/* Compares the processor time of client and server together with that of SQLite in process. */
static void report_cpu(const Findings *findings, const char *where, Report *report) {
        g_autofree char *name = g_strdup_printf("CPU of both sides / fastest, %s", where);
        g_autoptr(GArray) both = g_array_new(FALSE, FALSE, sizeof(double));
        g_autoptr(GArray) ratios = NULL;

        for (guint i = 0; i < findings[SIDE_SQLIPC].usec->len; i++) {
                double sum = g_array_index(findings[SIDE_SQLIPC].client_cpu_usec, double, i) +
                             g_array_index(findings[SIDE_SQLIPC].server_cpu_usec, double, i);

                g_array_append_val(both, sum);
        }
        ratios = measure_ratios(both, findings[SIDE_FASTEST].client_cpu_usec);
        report_figure(report, name, "", ratios);
}

static int measure_at(Bulk *bulk, Placement placement, const char *id, const char *where, Report *report) {
        static const size_t references[] = { SIDE_USUAL, SIDE_FASTEST };
        g_autofree char *title = g_strdup_printf("The whole result, every value copied, %s", where);
        const Side sides[N_SIDES] = {
                [SIDE_SQLIPC] = { "libsqlipc", run_sqlipc, check, bulk, bulk->service.pid },
                [SIDE_USUAL] = { "in process, usual", run_usual, check, bulk, 0 },
                [SIDE_FASTEST] = { "in process, fastest", run_fastest, check, bulk, 0 },
        };
        Findings findings[N_SIDES];
        int r = measure_place(placement, bulk->service.pid);

        if (r == -ENODEV || r == -EPERM) {
                report_note(report, "Not measured %s: %s.", where,
                            r == -EPERM ? "the service belongs to another user" : "there are not so many CPUs");
                return 0;
        }
        if (r >= 0)
                r = measure_sides(sides, N_SIDES, bench_rounds(bulk->options), where, findings);
        if (r >= 0) {
                (void) comparison_table(report, id, title, sides, findings, N_SIDES, references, G_N_ELEMENTS(references));
                report_cpu(findings, where, report);
                for (size_t i = 0; i < N_SIDES; i++)
                        findings_done(&findings[i]);
        }
        (void) measure_place(PLACEMENT_FREE, bulk->service.pid);
        return r;
}

/* ---- All together ------------------------------------------------------------------------------------------------- */

static int measure_opened(Bulk *bulk, Report *report) {
        int r;

        service_facts_add(report, &bulk->service, bulk->options);
        r = measure_at(bulk, PLACEMENT_TWO_CPUS, "bulk-two-cpus", "on two CPUs", report);
        if (r >= 0)
                r = measure_at(bulk, PLACEMENT_ONE_CPU, "bulk-one-cpu", "on one CPU", report);
        if (r < 0)
                return r;
        report_fact(report, "result", "%" PRIu64 " rows, %.1f MB of values, the same on all sides", bulk->n_rows,
                    (double) bulk->n_bytes / 1e6);
        report_fact(report, "method", "warm cache: one run of each first, then %d rounds of all",
                    bench_rounds(bulk->options));
        r = bulk_sizes_measure(bulk->options, report);
        return r < 0 ? r : bulk_growth_measure(bulk->options, &bulk->service, report);
}

static int measure(const BenchOptions *options, Report *report) {
        Bulk bulk = { .options = options };
        int r = baseline_open(options->file, &bulk.baseline);

        if (r >= 0)
                r = bench_service_open(options, &bulk.service);
        if (r >= 0)
                r = measure_opened(&bulk, report);
        bench_service_close(&bulk.service);
        baseline_close(bulk.baseline);
        return r;
}

const Workload workload_bulk = {
        .verb = "bulk",
        .help = "a whole table, on two CPUs and on one, by sizes, by rows",
        .summary = "Fetches a whole table and copies every value, beside SQLite in process: as programs usually do it, and "
                   "as fast as it goes. Shows what sizes of pages, pipes and writes are worth, on pipes of its own; and, "
                   "where --folder has the dataset 'narrow', time and memory by the number of rows.",
        .database = "study",
        .sql = "SELECT * FROM study",
        .measure = measure,
        .in_report = true,
};
