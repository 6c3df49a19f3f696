/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time and memory by the number of rows, for five parts of `narrow`. The benchmark reads every value but keeps none, so that
 * the memory of this process is that of the library.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "tools/bench/core/line-fit.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/workloads/bulk.h"

#define DATABASE "narrow"

enum { N_PARTS = 5, ROUNDS = 3 };

typedef struct Part {
        Service *service;
        char *name, *sql;    /* owned */
        uint64_t n_expected; /* rows */
        uint64_t fold;       /* of the values of the last run */
} Part;

/* Uses every value, because the compiler could omit reads of unused values. */
static void look_at_row(sqlipc_cursor *cursor, unsigned n_columns, Part *part) {
        for (unsigned i = 0; i < n_columns; i++) {
                size_t size;
                const uint8_t *bytes;

                switch (sqlipc_column_type(cursor, i)) {
                case SQLIPC_INTEGER:
                        part->fold += (uint64_t) sqlipc_column_int64(cursor, i);
                        break;
                case SQLIPC_REAL:
                        part->fold += (uint64_t) sqlipc_column_double(cursor, i);
                        break;
                case SQLIPC_TEXT:
                case SQLIPC_BLOB:
                        bytes = sqlipc_column_blob(cursor, i, &size);
                        part->fold += size > 0 ? bytes[0] + size : 0;
                        break;
                case SQLIPC_NULL:
                        break;
                }
        }
}

static int run(void *userdata) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        Part *part = userdata;
        uint64_t n_rows = 0;
        unsigned n_columns = 0;
        int r = sqlipc_query(part->service->connection, DATABASE, part->sql, &cursor, NULL);

        part->fold = 0;
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                if (n_rows++ == 0)
                        n_columns = sqlipc_column_count(cursor);
                look_at_row(cursor, n_columns, part);
        }
        if (r < 0)
                return bench_service_failed(part->service, r, part->sql);
        if (n_rows == part->n_expected)
                return 0;
        fprintf(stderr, "sqlipc-bench: %s: %" PRIu64 " rows, expected %" PRIu64 ".\n", part->sql, n_rows,
                part->n_expected);
        return -EBADMSG;
}

/* Reads the number of rows of the dataset, whose keys start at 1. */
static int count_rows(Service *service, uint64_t *ret) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        static const char sql[] = "SELECT max(rowid) FROM " DATABASE;
        int r = sqlipc_query(service->connection, DATABASE, sql, &cursor, NULL);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r < 0)
                return bench_service_failed(service, r, sql);
        *ret = r > 0 ? (uint64_t) sqlipc_column_int64(cursor, 0) : 0;
        return 0;
}

static void report_parts(const Part *parts, const Findings *findings, Report *report) {
        ReportTable *table = report_table(report, "bulk-rows",
                                          "Time and memory by the number of rows of 4 columns, none kept", "rows");
        ReportChart *chart = report_chart(report, "bulk-rows", "Time by the number of rows", "rows", "ms", REPORT_LINEAR);
        double x[N_PARTS], y[N_PARTS];

        report_table_column(table, "time", "ms");
        report_table_column(table, "a million rows", "ms");
        report_table_column(table, "client peak", "MiB");
        report_table_column(table, "server peak", "MiB");
        (void) report_chart_series(chart, "libsqlipc", false);
        for (size_t i = 0; i < N_PARTS; i++) {
                g_autoptr(GArray) ms = measure_scaled(findings[i].usec, 1e-3);
                g_autoptr(GArray) each = measure_scaled(findings[i].usec, 1e3 / (double) parts[i].n_expected);

                x[i] = (double) parts[i].n_expected;
                y[i] = report_median(ms);
                report_table_row(table, parts[i].name, false);
                report_table_values(table, 0, ms);
                report_table_values(table, 1, each);
                report_table_value(table, 2, findings[i].client_peak_kib / 1024);
                report_table_value(table, 3, findings[i].server_peak_kib / 1024);
                report_chart_point(chart, 0, x[i], ms);
        }
        report_single(report, "R\u00b2 of time by rows", "", line_fit(x, y, N_PARTS).r_squared);
        report_single(report, "client memory, most rows over fewest", "MiB",
                      (findings[N_PARTS - 1].client_peak_kib - findings[0].client_peak_kib) / 1024);
        report_single(report, "server memory, most rows over fewest", "MiB",
                      (findings[N_PARTS - 1].server_peak_kib - findings[0].server_peak_kib) / 1024);
}

static int measure_parts(const BenchOptions *options, Service *service, uint64_t n_rows, Report *report) {
        Part parts[N_PARTS];
        Side sides[N_PARTS];
        Findings findings[N_PARTS];
        int r;

        for (uint64_t i = 0; i < N_PARTS; i++) {
                uint64_t n = n_rows * (i + 1) / N_PARTS;

                parts[i] = (Part) {
                        .service = service,
                        .name = g_strdup_printf("%" PRIu64, n),
                        .sql = g_strdup_printf("SELECT * FROM " DATABASE " WHERE rowid <= %" PRIu64, n),
                        .n_expected = n,
                };
                sides[i] = (Side) { .name = parts[i].name, .run = run, .userdata = &parts[i], .server = service->pid };
        }
        r = measure_sides(sides, N_PARTS, options->n_rounds > 0 ? options->n_rounds : MIN(bench_rounds(options), ROUNDS),
                          DATABASE, findings);
        if (r >= 0)
                report_parts(parts, findings, report);
        for (size_t i = 0; i < N_PARTS; i++) {
                if (r >= 0)
                        findings_done(&findings[i]);
                g_free(parts[i].name);
                g_free(parts[i].sql);
        }
        return r;
}

int bulk_growth_measure(const BenchOptions *options, Service *service, Report *report) {
        g_autofree char *file = bench_dataset_file(options, DATABASE);
        uint64_t n_rows = 0;
        int r;

        if (!file || !g_file_test(file, G_FILE_TEST_EXISTS)) {
                report_note(report, "Growth is not measured: --folder has no " DATABASE ".sqlite.");
                return 0;
        }
        r = count_rows(service, &n_rows);
        if (r >= 0 && n_rows < N_PARTS) {
                fprintf(stderr, "sqlipc-bench: %s has too few rows.\n", file);
                return -ENODATA;
        }
        return r < 0 ? r : measure_parts(options, service, n_rows, report);
}
