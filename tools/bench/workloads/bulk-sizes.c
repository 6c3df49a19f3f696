/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The effect of sizes: fetches the same result through bare pipes of pages (page-pipe.h) with all combinations of page and
 * pipe size, and of write and pipe size at the service's page size. One combination is that of the service: pages of
 * 256 KiB, each written at once, and a pipe that grows to 1 MiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/workloads/bulk.h"
#include "tools/bench/workloads/page-pipe.h"

#define KIB ((size_t) 1024)
#define SERVICE_PAGE_SIZE (256 * KIB)

static const size_t pipe_sizes[] = { 64 * KIB, 256 * KIB, 1024 * KIB };
static const size_t page_sizes[] = { 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB };
static const size_t write_sizes[] = { 4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB };

enum {
        N_PIPES = G_N_ELEMENTS(pipe_sizes),
        N_ROWS_MAX = MAX(G_N_ELEMENTS(page_sizes), G_N_ELEMENTS(write_sizes)),
        N_SIDES_MAX = N_ROWS_MAX * N_PIPES,
};

typedef struct Sized {
        PagePipe pages;
        Copy *copy; /* of the current run; all sides share it */
} Sized;

static int run(void *userdata) {
        Sized *sized = userdata;

        return page_pipe_copy(&sized->pages, sized->copy);
}

static uint64_t check(void *userdata) {
        Sized *sized = userdata;
        uint64_t hash = copy_hash(sized->copy);

        copy_done(sized->copy);
        return hash;
}

/* Adds a table with one row per size and one column per pipe size, and its chart. */
static void report_sizes(const Findings *findings, const size_t *sizes, size_t n_sizes, const char *id, const char *title,
                         const char *rows_are, Report *report) {
        ReportTable *table = report_table(report, id, title, rows_are);
        ReportChart *chart = report_chart(report, id, title, rows_are, "ms", REPORT_LOG_X);

        for (size_t k = 0; k < N_PIPES; k++) {
                g_autofree char *name = g_strdup_printf("pipe of %zu KiB", pipe_sizes[k] / KIB);

                report_table_column(table, name, "ms");
                report_chart_series(chart, name, false);
        }
        for (size_t i = 0; i < n_sizes; i++) {
                g_autofree char *name = g_strdup_printf("%zu KiB", sizes[i] / KIB);

                report_table_row(table, name, false);
                for (size_t k = 0; k < N_PIPES; k++) {
                        g_autoptr(GArray) ms = measure_scaled(findings[i * N_PIPES + k].usec, 1e-3);

                        report_table_values(table, (unsigned) k, ms);
                        report_chart_point(chart, (unsigned) k, (double) sizes[i] / KIB, ms);
                }
        }
}

static int measure_sizes(const BenchOptions *options, const size_t *sizes, size_t n_sizes, bool are_writes, const char *id,
                         const char *title, const char *rows_are, Report *report) {
        Side sides[N_SIDES_MAX] = {};
        Sized sized[N_SIDES_MAX] = {};
        Findings findings[N_SIDES_MAX];
        size_t n = n_sizes * N_PIPES;
        Copy copy = {};
        int r;

        for (size_t i = 0; i < n; i++) {
                size_t size = sizes[i / N_PIPES];

                sized[i] = (Sized) {
                        .pages = {
                                .file = options->file,
                                .sql = options->sql,
                                .page_size = are_writes ? SERVICE_PAGE_SIZE : size,
                                .pipe_size = pipe_sizes[i % N_PIPES],
                                .write_size = are_writes ? size : 0,
                        },
                        .copy = &copy,
                };
                sides[i] = (Side) { .name = "a pipe of pages", .run = run, .check = check, .userdata = &sized[i] };
        }
        r = measure_sides(sides, n, bench_rounds(options), rows_are, findings);
        if (r < 0)
                return r;
        report_sizes(findings, sizes, n_sizes, id, title, rows_are, report);
        for (size_t i = 0; i < n; i++)
                findings_done(&findings[i]);
        return 0;
}

/* Checks that this user may have a pipe of the largest size. */
static int try_pipe(void) {
        int fds[2], r = 0;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        if (fcntl(fds[1], F_SETPIPE_SZ, (int) pipe_sizes[N_PIPES - 1]) < 0)
                r = -errno;
        close(fds[0]);
        close(fds[1]);
        return r;
}

int bulk_sizes_measure(const BenchOptions *options, Report *report) {
        int r = try_pipe();

        if (r < 0) {
                report_note(report, "Sizes are not measured: no pipe of %zu KiB for this user (%s).",
                            pipe_sizes[N_PIPES - 1] / KIB, g_strerror(-r));
                return 0;
        }
        r = measure_sizes(options, page_sizes, G_N_ELEMENTS(page_sizes), false, "bulk-pages",
                          "A bare pipe of pages: page size, each page one write", "page size", report);
        if (r >= 0)
                r = measure_sizes(options, write_sizes, G_N_ELEMENTS(write_sizes), true, "bulk-writes",
                                  "A bare pipe of pages: pages of 256 KiB in smaller writes", "write size", report);
        return r;
}
