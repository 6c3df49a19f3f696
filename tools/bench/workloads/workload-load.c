/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * load: the table of the 2010 study, written into an empty table in WAL mode, in one transaction that reaches the disk: as a
 * load of libsqlipc, and by a prepared INSERT in process. After each run the table is read, and must have all rows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/load.h"
#include "tools/bench/workloads/workload.h"
#include "tools/bench/workloads/write.h"

enum { N_LOADERS_MAX = 2 };

typedef struct Loader {
        const LoaderKind *kind;
        void *loader;
        uint64_t hash; /* of the table after the last run */
} Loader;

typedef struct LoadRun {
        const BenchOptions *options;
        Service service;
        LoadRows rows;
        LoadTask task;
        Loader loaders[N_LOADERS_MAX];
        Side sides[N_LOADERS_MAX]; /* one for each loader */
        size_t n;                  /* of them */
        size_t direct;             /* the index of load_direct: what the others are compared with */
        uint64_t hash, n_bytes;    /* of the rows */
} LoadRun;

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

static int run(void *userdata) {
        Loader *loader = userdata;

        return loader->kind->load(loader->loader);
}

/* Empties the table for the next run, too. If that fails, the next run does: no identifier may exist twice. */
static uint64_t check(void *userdata) {
        Loader *loader = userdata;
        Copy copy = {};
        int r = loader->kind->copy(loader->loader, &copy);

        loader->hash = r < 0 ? 0 : copy_hash(&copy);
        copy_done(&copy);
        (void) loader->kind->clear(loader->loader);
        return loader->hash;
}

/* The sides were compared with each other. Their rows must also be those that they were given. */
static int check_rows(const LoadRun *l) {
        for (size_t i = 0; i < l->n; i++)
                if (l->loaders[i].hash != l->hash) {
                        fprintf(stderr, "sqlipc-bench: the rows that %s loaded differ from those that it was given.\n",
                                l->sides[i].name);
                        return -EBADMSG;
                }
        return 0;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

static void report_rate(const LoadRun *l, const Side *side, const Findings *findings, Report *report) {
        g_autofree char *name = g_strdup_printf("rate, %s", side->name);
        g_autoptr(GArray) rates = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint i = 0; i < findings->usec->len; i++) {
                double rate = (double) l->rows.n / g_array_index(findings->usec, double, i) * 1e6;

                g_array_append_val(rates, rate);
        }
        report_figure(report, name, "rows/s", rates);
}

static void report_findings(const LoadRun *l, const Findings *findings, int n_rounds, Report *report) {
        report_fact(report, "rows", "%" PRId64 " of study, %.1f MB of values, in memory before the clock starts", l->rows.n,
                    (double) l->n_bytes / 1e6);
        report_fact(report, "method", "an empty table in WAL mode, one transaction with synchronous FULL; one run of each"
                                      " first, then %d rounds of all", n_rounds);
        for (size_t i = 0; i < l->n; i++)
                report_rate(l, &l->sides[i], &findings[i], report);
        for (size_t i = 0; i < l->n; i++)
                if (i != l->direct) {
                        g_autoptr(GArray) ratios = measure_ratios(findings[i].usec, findings[l->direct].usec);

                        report_verdict(report, "Bulk load", "a prepared INSERT in process", ratios);
                }
        comparison_table(report, "load", "All rows loaded in one transaction", l->sides, findings, l->n, &l->direct, 1);
        report_note(report, "After each run the table is read, and must have exactly the rows that were loaded.");
}

static int measure_loaders(LoadRun *l, Report *report) {
        Findings findings[N_LOADERS_MAX];
        int n_rounds = bench_rounds(l->options);
        int r = measure_sides(l->sides, l->n, n_rounds, "load", findings);

        if (r < 0)
                return r;
        r = check_rows(l);
        if (r >= 0)
                report_findings(l, findings, n_rounds, report);
        for (size_t i = 0; i < l->n; i++)
                findings_done(&findings[i]);
        return r;
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static int add_loader(LoadRun *l, const LoaderKind *kind, pid_t server) {
        Loader *loader = &l->loaders[l->n];
        int r = kind->open(&l->task, &loader->loader);

        if (r < 0)
                return r;
        loader->kind = kind;
        l->sides[l->n++] = (Side) { kind->name, run, check, loader, server };
        return kind->clear(loader->loader);
}

/* Adds the service, if it lets this user write. */
static int add_service(LoadRun *l, Report *report) {
        const WriteTarget target = { .options = l->options, .table = LOAD_TABLE };
        g_autofree char *obstacle = write_library_obstacle(&target);

        if (!obstacle)
                return add_loader(l, &load_library, l->service.pid);
        report_note(report, "libsqlipc is left out, because the service does not write %s: %s", LOAD_TABLE, obstacle);
        return 0;
}

static int measure_opened(LoadRun *l, Report *report) {
        int r = add_service(l, report);

        l->direct = l->n;
        if (r >= 0)
                r = add_loader(l, &load_direct, 0);
        if (r >= 0)
                r = measure_loaders(l, report);
        for (size_t i = 0; i < l->n; i++)
                l->loaders[i].kind->close(l->loaders[i].loader);
        return r;
}

static void make_rows(LoadRun *l) {
        Copy copy = {};

        load_rows_init(&l->rows, bench_amount(l->options, 500, 100000, 300000));
        load_rows_copy(&l->rows, &copy);
        l->hash = copy_hash(&copy);
        l->n_bytes = copy.n_bytes;
        copy_done(&copy);
}

static int measure(const BenchOptions *options, Report *report) {
        g_autofree char *file = g_strdup_printf("%s/direct-" LOAD_TABLE ".sqlite", options->folder);
        LoadRun l = { .options = options, .task = { .options = options, .rows = &l.rows, .file = file } };
        int r = bench_service_open(options, &l.service);

        if (r < 0)
                return r;
        service_facts_add(report, &l.service, options);
        make_rows(&l);
        r = measure_opened(&l, report);
        write_direct_remove(&(WriteTarget) { .file = file });
        load_rows_done(&l.rows);
        bench_service_close(&l.service);
        return r;
}

const Workload workload_load = {
        .verb = "load",
        .help = "many rows in one transaction, beside an INSERT loop",
        .summary = "Loads the rows of the dataset study into an empty table, in one transaction that reaches the disk:\n"
                   "through libsqlipc, and by a prepared INSERT in process, in WAL mode. The service publishes the\n"
                   "dataset " LOAD_TABLE " with Mode=read-write.",
        .measure = measure,
        .bus = true,
        .folder = true,
        .in_report = true,
};
