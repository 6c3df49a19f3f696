/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fetch: copies every value of a whole result into the memory of this process: through libsqlipc, in process in the usual
 * way, and in process in the fastest way. All three must copy the same bytes, or the measurement fails. Hashes are computed
 * after the clock has stopped.
 */
#include <inttypes.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/workload.h"

enum { SAMPLE_USEC = 5000 }; /* interval at which the service's memory is read */

typedef enum SideNumber { SIDE_SQLIPC, SIDE_USUAL, SIDE_FASTEST, _SIDE_MAX } SideNumber;

typedef struct Fetch {
        const BenchOptions *options;
        Service service;
        Baseline *baseline;
        Copy copy;                /* of the current run */
        uint64_t n_rows, n_bytes; /* of the last run */
} Fetch;

static int run_sqlipc(void *userdata) {
        Fetch *fetch = userdata;

        return bench_service_copy(&fetch->service, fetch->options->database, fetch->options->sql, &fetch->copy);
}

static int run_usual(void *userdata) {
        Fetch *fetch = userdata;

        return baseline_copy(fetch->baseline, fetch->options->sql, BASELINE_USUAL, &fetch->copy);
}

static int run_fastest(void *userdata) {
        Fetch *fetch = userdata;

        return baseline_copy(fetch->baseline, fetch->options->sql, BASELINE_FASTEST, &fetch->copy);
}

static uint64_t check(void *userdata) {
        Fetch *fetch = userdata;
        uint64_t hash = copy_hash(&fetch->copy);

        fetch->n_rows = fetch->copy.n_rows;
        fetch->n_bytes = fetch->copy.n_bytes;
        copy_done(&fetch->copy);
        return hash;
}

/* Does an extra run, not timed, to measure by how much the memory of the service's processes grows meanwhile. */
static int measure_service_memory(Fetch *fetch, Report *report) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        uint64_t most_kib;
        double next = 0;
        Usage before, now;
        int r;

        sampler_read_tree(fetch->service.pid, &before);
        most_kib = before.anonymous_kib;
        r = sqlipc_query(fetch->service.connection, fetch->options->database, fetch->options->sql, &cursor, NULL);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                if (sampler_now_usec() >= next) {
                        sampler_read_tree(fetch->service.pid, &now);
                        most_kib = MAX(most_kib, now.anonymous_kib);
                        next = sampler_now_usec() + SAMPLE_USEC;
                }
        if (r < 0)
                return bench_service_failed(&fetch->service, r, fetch->options->sql);
        report_single(report, "service, RssAnon before", "MiB", (double) before.anonymous_kib / 1024);
        report_single(report, "service, RssAnon more", "MiB", (double) (most_kib - before.anonymous_kib) / 1024);
        return 0;
}

static void report_verdicts(const Findings *findings, Report *report) {
        g_autoptr(GArray) usual = measure_ratios(findings[SIDE_SQLIPC].usec, findings[SIDE_USUAL].usec);
        g_autoptr(GArray) fastest = measure_ratios(findings[SIDE_SQLIPC].usec, findings[SIDE_FASTEST].usec);

        report_verdict(report, "Whole table", "SQLite in process, the usual loop", usual);
        report_verdict(report, "Whole table", "SQLite in process, the fastest loop", fastest);
}

static void report_findings(Fetch *fetch, const Side *sides, const Findings *findings, int n_rounds, Report *report) {
        static const size_t references[] = { SIDE_USUAL, SIDE_FASTEST };

        service_facts_add(report, &fetch->service, fetch->options);
        report_fact(report, "result", "%" PRIu64 " rows, %.1f MB of values, the same on all sides", fetch->n_rows,
                    (double) fetch->n_bytes / 1e6);
        report_fact(report, "method", "warm cache: one run of each first, then %d rounds of all", n_rounds);
        for (size_t i = 0; i < _SIDE_MAX; i++) {
                g_autofree char *rate = g_strdup_printf("rate, %s", sides[i].name);

                report_single(report, rate, "MB/s", (double) fetch->n_bytes / report_median(findings[i].usec));
        }
        report_verdicts(findings, report);
        comparison_table(report, "fetch", "The whole result, every value copied", sides, findings, _SIDE_MAX, references,
                         G_N_ELEMENTS(references));
}

static int measure_opened(Fetch *fetch, Report *report) {
        const Side sides[_SIDE_MAX] = {
                [SIDE_SQLIPC] = { "libsqlipc", run_sqlipc, check, fetch, fetch->service.pid },
                [SIDE_USUAL] = { "in process, usual", run_usual, check, fetch, 0 },
                [SIDE_FASTEST] = { "in process, fastest", run_fastest, check, fetch, 0 },
        };
        Findings findings[_SIDE_MAX];
        int n_rounds = bench_rounds(fetch->options);
        int r = measure_sides(sides, _SIDE_MAX, n_rounds, "fetch", findings);

        if (r < 0)
                return r;
        report_findings(fetch, sides, findings, n_rounds, report);
        for (size_t i = 0; i < _SIDE_MAX; i++)
                findings_done(&findings[i]);
        return measure_service_memory(fetch, report);
}

static int measure(const BenchOptions *options, Report *report) {
        Fetch fetch = { .options = options };
        int r = baseline_open(options->file, &fetch.baseline);

        if (r >= 0)
                r = bench_service_open(options, &fetch.service);
        if (r >= 0)
                r = measure_opened(&fetch, report);
        bench_service_close(&fetch.service);
        baseline_close(fetch.baseline);
        return r;
}

const Workload workload_fetch = {
        .verb = "fetch",
        .help = "fetch a whole result, beside the same loop in process",
        .summary = "Fetches a whole result and copies every value, beside SQLite in process: as programs usually do it, "
                   "and as fast as it goes.",
        .database = "study",
        .sql = "SELECT * FROM study",
        .measure = measure,
        .in_report = true,
};
