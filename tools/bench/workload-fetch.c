/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fetch: a whole result, every value copied into this process' memory: through libsqlipc, in process as programs usually do
 * it, and in process as fast as it goes. One warm-up run of each, then rounds of all three, every other round
 * backwards, so that a machine that slows down or speeds up favours nobody. Ratios are of neighbours, their median counts.
 *
 * All three have to copy the same bytes, or the measurement fails. Hashes are taken after the clock has stopped.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "baseline.h"
#include "copy.h"
#include "report.h"
#include "sampler.h"
#include "service.h"
#include "workload.h"

typedef enum Side { SIDE_SQLIPC, SIDE_USUAL, SIDE_FASTEST, _SIDE_MAX } Side;

static const char *const side_names[_SIDE_MAX] = { "libsqlipc", "in process, usual", "in process, fastest" };

/* What the runs of a side found, one element a run. */
typedef struct Findings {
        GArray *usec, *cpu_usec; /* of double */
        uint64_t peak_kib;       /* resident, of this process, at most */
} Findings;

typedef struct Fetch {
        ServiceOptions options;
        Service service;
        Baseline *baseline;
        Findings findings[_SIDE_MAX];
        GArray *service_cpu_usec;
        uint64_t n_rows, n_bytes, hash; /* of the first run; all others have to be the same */
        bool has_rows;
} Fetch;

static int copy_through_library(Fetch *fetch, Copy *copy) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        unsigned n_columns = 0;
        int r;

        r = sqlipc_query(fetch->service.connection, fetch->options.database, fetch->options.sql, &cursor, NULL);
        if (r < 0)
                return service_failed(&fetch->service, r, fetch->options.sql);
        while ((r = sqlipc_cursor_next(cursor)) > 0) {
                if (n_columns == 0)
                        n_columns = sqlipc_column_count(cursor);
                service_copy_row(cursor, n_columns, copy);
        }
        return r < 0 ? service_failed(&fetch->service, r, fetch->options.sql) : 0;
}

static int run_side(Fetch *fetch, Side side, Copy *copy) {
        switch (side) {
        case SIDE_SQLIPC:
                return copy_through_library(fetch, copy);
        case SIDE_USUAL:
                return baseline_copy(fetch->baseline, fetch->options.sql, BASELINE_USUAL, copy);
        case SIDE_FASTEST:
                return baseline_copy(fetch->baseline, fetch->options.sql, BASELINE_FASTEST, copy);
        case _SIDE_MAX:
                break;
        }
        g_assert_not_reached();
}

/* The first result is the measure for all others. */
static int check_rows(Fetch *fetch, Side side, const Copy *copy) {
        uint64_t hash = copy_hash(copy);

        if (!fetch->has_rows) {
                fetch->has_rows = true;
                fetch->n_rows = copy->n_rows;
                fetch->n_bytes = copy->n_bytes;
                fetch->hash = hash;
        }
        if (copy->n_rows == fetch->n_rows && copy->n_bytes == fetch->n_bytes && hash == fetch->hash)
                return 0;
        fprintf(stderr, "sqlipc-bench: %s: %" PRIu64 " rows, %" PRIu64 " bytes, other values than before.\n"
                        "Are --database and --file the same, and does the query say its order?\n",
                side_names[side], copy->n_rows, copy->n_bytes);
        return -EBADMSG;
}

static int measure(Fetch *fetch, Side side, bool warm_up) {
        Findings *findings = &fetch->findings[side];
        double start, usec, cpu, service_cpu_start, service_cpu_end;
        Copy copy = {};
        int r;

        sampler_reset_peak();
        sampler_read_tree(fetch->service.pid, &service_cpu_start, NULL);
        cpu = sampler_own_cpu_usec();
        start = sampler_now_usec();
        r = run_side(fetch, side, &copy);
        usec = sampler_now_usec() - start;
        cpu = sampler_own_cpu_usec() - cpu;
        sampler_read_tree(fetch->service.pid, &service_cpu_end, NULL);
        findings->peak_kib = MAX(findings->peak_kib, sampler_peak_kib());

        if (r >= 0)
                r = check_rows(fetch, side, &copy);
        if (r >= 0 && !warm_up) {
                double service_cpu = service_cpu_end - service_cpu_start;

                g_array_append_val(findings->usec, usec);
                g_array_append_val(findings->cpu_usec, cpu);
                if (side == SIDE_SQLIPC)
                        g_array_append_val(fetch->service_cpu_usec, service_cpu);
        }
        copy_done(&copy);
        return r;
}

static int measure_rounds(Fetch *fetch) {
        int r = 0;

        for (Side side = 0; r >= 0 && side < _SIDE_MAX; side++)
                r = measure(fetch, side, true);
        for (int round = 0; r >= 0 && round < fetch->options.n_runs; round++)
                for (int i = 0; r >= 0 && i < _SIDE_MAX; i++)
                        r = measure(fetch, (Side) (round % 2 == 0 ? i : _SIDE_MAX - 1 - i), false);
        return r;
}

/* A run of its own, without a clock: what the service's processes hold while rows flow, beyond what they held before. */
static int measure_service_memory(Fetch *fetch, uint64_t *ret_before_kib, uint64_t *ret_peak_kib) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        uint64_t before_kib, peak_kib = 0, kib;
        double next = 0;
        int r;

        sampler_read_tree(fetch->service.pid, NULL, &before_kib);
        r = sqlipc_query(fetch->service.connection, fetch->options.database, fetch->options.sql, &cursor, NULL);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                if (sampler_now_usec() >= next) {
                        sampler_read_tree(fetch->service.pid, NULL, &kib);
                        peak_kib = MAX(peak_kib, kib);
                        next = sampler_now_usec() + 5000;
                }
        if (r < 0)
                return service_failed(&fetch->service, r, fetch->options.sql);
        *ret_before_kib = before_kib;
        *ret_peak_kib = MAX(peak_kib, before_kib);
        return 0;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

static GArray *scaled(const GArray *values, double factor) {
        GArray *result = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint i = 0; i < values->len; i++) {
                double value = g_array_index(values, double, i) * factor;

                g_array_append_val(result, value);
        }
        return result;
}

static void report_ratio(Fetch *fetch, Report *report, const char *name, Side side) {
        const GArray *ours = fetch->findings[SIDE_SQLIPC].usec, *theirs = fetch->findings[side].usec;
        g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint i = 0; i < ours->len; i++) {
                double ratio = g_array_index(ours, double, i) / g_array_index(theirs, double, i);

                g_array_append_val(ratios, ratio);
        }
        report_figure(report, name, "", ratios);
}

static void report_sides(Fetch *fetch, Report *report) {
        for (Side side = 0; side < _SIDE_MAX; side++) {
                g_autoptr(GArray) ms = scaled(fetch->findings[side].usec, 1e-3);

                report_figure(report, side_names[side], "ms", ms);
        }
        report_ratio(fetch, report, "libsqlipc / usual", SIDE_USUAL);
        report_ratio(fetch, report, "libsqlipc / fastest", SIDE_FASTEST);

        for (Side side = 0; side < _SIDE_MAX; side++) {
                g_autoptr(GArray) ms = scaled(fetch->findings[side].cpu_usec, 1e-3);
                g_autofree char *cpu = g_strdup_printf("CPU, %s", side_names[side]);
                g_autofree char *peak = g_strdup_printf("peak, %s", side_names[side]);
                g_autofree char *rate = g_strdup_printf("rate, %s", side_names[side]);

                report_single(report, rate, "MB/s", (double) fetch->n_bytes / report_median(fetch->findings[side].usec));
                report_figure(report, cpu, "ms", ms);
                report_single(report, peak, "MiB", (double) fetch->findings[side].peak_kib / 1024);
        }
}

static int print(Fetch *fetch) {
        __attribute__((cleanup(report_freep))) Report *report = report_new("fetch");
        g_autoptr(GArray) service_cpu = scaled(fetch->service_cpu_usec, 1e-3);
        uint64_t before_kib = 0, peak_kib = 0;
        int r;

        r = measure_service_memory(fetch, &before_kib, &peak_kib);
        if (r < 0)
                return r;

        service_report(&fetch->service, &fetch->options, report);
        report_fact(report, "result", "%" PRIu64 " rows, %.1f MB of values, the same on all sides", fetch->n_rows,
                    (double) fetch->n_bytes / 1e6);
        report_fact(report, "method", "warm cache: one run of each first, then %d rounds of all", fetch->options.n_runs);
        report_sides(fetch, report);
        report_figure(report, "CPU, service", "ms", service_cpu);
        report_single(report, "service, RssAnon before", "MiB", (double) before_kib / 1024);
        report_single(report, "service, RssAnon more", "MiB", (double) (peak_kib - before_kib) / 1024);
        return report_print(report, fetch->options.json);
}

static int run(Fetch *fetch) {
        int r;

        r = baseline_open(fetch->options.file, &fetch->baseline);
        if (r < 0)
                return r;
        r = service_open(&fetch->options, &fetch->service);
        if (r < 0)
                return r;
        r = measure_rounds(fetch);
        if (r >= 0)
                r = print(fetch);
        service_close(&fetch->service);
        return r;
}

int workload_fetch(int argc, char **argv) {
        Fetch fetch = { .options.n_runs = 5 };
        const GOptionEntry entries[] = {
                { "pairs", 0, 0, G_OPTION_ARG_INT, &fetch.options.n_runs, "Rounds that are measured, 5", "N" },
                {},
        };
        int r;

        r = service_options_parse(&fetch.options, entries, "Fetches a whole result, beside SQLite in process.", argc, argv);
        if (r >= 0 && fetch.options.n_runs < 1) {
                fprintf(stderr, "sqlipc-bench: --pairs is at least 1.\n");
                r = -EINVAL;
        }
        if (r < 0) {
                service_options_done(&fetch.options);
                return BENCH_USAGE;
        }

        for (Side side = 0; side < _SIDE_MAX; side++) {
                fetch.findings[side].usec = g_array_new(FALSE, FALSE, sizeof(double));
                fetch.findings[side].cpu_usec = g_array_new(FALSE, FALSE, sizeof(double));
        }
        fetch.service_cpu_usec = g_array_new(FALSE, FALSE, sizeof(double));
        r = run(&fetch);

        g_array_unref(fetch.service_cpu_usec);
        for (Side side = 0; side < _SIDE_MAX; side++) {
                g_array_unref(fetch.findings[side].usec);
                g_array_unref(fetch.findings[side].cpu_usec);
        }
        baseline_close(fetch.baseline);
        service_options_done(&fetch.options);
        return r < 0 ? BENCH_FAILED : BENCH_OK;
}
