/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wide: long values through libsqlipc, one row at a time and none kept, compared with a bare pipe of the same size, which is
 * the upper bound for a pipe, and with other ways that also read from SQLite (wide-ways.h). Every side gets each value as a
 * whole and reads every word of it.
 */
#include <inttypes.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/wide-ways.h"
#include "tools/bench/workloads/workload.h"

enum { SIDE_SQLIPC, SIDE_BARE_PIPE, SIDE_PIPE, SIDE_RING, SIDE_MEMFD, N_SIDES };

typedef struct Wide {
        const BenchOptions *options;
        Service service;
        WideSource source;
        WideValues values; /* of the last run */
} Wide;

static int run_sqlipc(void *userdata) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        Wide *wide = userdata;
        int r = sqlipc_query(wide->service.connection, wide->options->database, wide->options->sql, &cursor, NULL);

        wide->values = (WideValues) {};
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                size_t size;
                const void *bytes = sqlipc_column_blob(cursor, 0, &size);

                wide->values.n++;
                wide_look(&wide->values, bytes, size);
        }
        wide->source.n = wide->values.n;
        wide->source.n_bytes = wide->values.n_bytes;
        return r < 0 ? bench_service_failed(&wide->service, r, wide->options->sql) : 0;
}

static int run_bare_pipe(void *userdata) {
        Wide *wide = userdata;

        return wide_by_bare_pipe(&wide->source, &wide->values);
}

static int run_pipe(void *userdata) {
        Wide *wide = userdata;

        return wide_by_pipe(&wide->source, &wide->values);
}

static int run_ring(void *userdata) {
        Wide *wide = userdata;

        return wide_by_ring(&wide->source, &wide->values);
}

static int run_memfd(void *userdata) {
        Wide *wide = userdata;

        return wide_by_memfd(&wide->source, &wide->values);
}

static uint64_t check(void *userdata) {
        Wide *wide = userdata;

        return wide->values.sum * 31 + wide->values.n;
}

static void report_rates(const Wide *wide, const Side *sides, const Findings *findings, Report *report) {
        const GArray *ours = findings[SIDE_SQLIPC].usec;

        for (size_t i = 0; i < N_SIDES; i++) {
                g_autofree char *rate = g_strdup_printf("rate, %s", sides[i].name);
                g_autofree char *ratio = g_strdup_printf("libsqlipc's rate / that of %s", sides[i].name);
                g_autoptr(GArray) ratios = measure_ratios(findings[i].usec, ours);

                report_single(report, rate, "MB/s", (double) wide->source.n_bytes / report_median(findings[i].usec));
                if (i != SIDE_SQLIPC)
                        report_figure(report, ratio, "", ratios);
        }
}

static int measure_opened(Wide *wide, Report *report) {
        static const size_t references[] = { SIDE_BARE_PIPE };
        const Side sides[N_SIDES] = {
                [SIDE_SQLIPC] = { "libsqlipc", run_sqlipc, check, wide, wide->service.pid },
                [SIDE_BARE_PIPE] = { "a bare pipe", run_bare_pipe, NULL, wide, 0 }, /* other values */
                [SIDE_PIPE] = { "a pipe, from SQLite", run_pipe, check, wide, 0 },
                [SIDE_RING] = { "a shared ring, from SQLite", run_ring, check, wide, 0 },
                [SIDE_MEMFD] = { "a memfd for each, from SQLite", run_memfd, check, wide, 0 },
        };
        Findings findings[N_SIDES];
        int r = measure_sides(sides, N_SIDES, bench_rounds(wide->options), "wide", findings);

        if (r < 0)
                return r;
        service_facts_add(report, &wide->service, wide->options);
        report_fact(report, "result", "%" PRIu64 " values, %.0f MB", wide->source.n, (double) wide->source.n_bytes / 1e6);
        report_rates(wide, sides, findings, report);
        (void) comparison_table(report, "wide", "Long values, one at a time", sides, findings, N_SIDES, references,
                                G_N_ELEMENTS(references));
        for (size_t i = 0; i < N_SIDES; i++)
                findings_done(&findings[i]);
        return 0;
}

static int measure(const BenchOptions *options, Report *report) {
        Wide wide = { .options = options, .source = { .file = options->file, .sql = options->sql } };
        int r = bench_service_open(options, &wide.service);

        if (r >= 0)
                r = measure_opened(&wide, report);
        bench_service_close(&wide.service);
        return r;
}

const Workload workload_wide = {
        .verb = "wide",
        .help = "BLOBs of 1 MiB, beside a bare pipe, a shared ring, a memfd for each",
        .summary = "Fetches BLOBs, the first column of the query, one at a time: beside a bare pipe of the same size that "
                   "carries as many bytes of anything, and beside a pipe, a ring in shared memory and a memfd for each "
                   "value that a child fills from SQLite.",
        .database = "wide",
        .sql = "SELECT b FROM wide",
        .measure = measure,
        .in_report = true,
};
