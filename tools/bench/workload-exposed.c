/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exposed: what Expose= costs. The same file is published twice, whole and with its tables exposed, and asked the same: a
 * scan, point look-ups, a join. Both go through the service, so that the ratio is of what stands between a client's SQL
 * and the file alone; SQLite in process is beside them. One warm-up run of each, then rounds, every other one backwards.
 *
 * All sides have to bring the same bytes, or the measurement fails.
 */
#include <errno.h>
#include <stdio.h>

#include "baseline.h"
#include "copy.h"
#include "report.h"
#include "sampler.h"
#include "service.h"
#include "workload.h"

typedef enum Side { SIDE_EXPOSED, SIDE_WHOLE, SIDE_PROCESS, _SIDE_MAX } Side;

static const char *const side_names[_SIDE_MAX] = { "exposed", "whole", "in process" };

/* On the table of the study. CROSS JOIN keeps the order of the tables, so that both sides do the same look-ups. */
static const struct {
        const char *name, *sql;
} queries[] = {
        { "scan", NULL }, /* --sql */
        { "look-ups", "SELECT count(*) FROM study AS a CROSS JOIN study AS b ON b.id = 1 + a.id * 7 % 20000 "
                      "WHERE a.id <= 20000" },
        { "subqueries", "SELECT sum((SELECT length(c02) FROM study AS b WHERE b.id = a.id)) FROM study AS a "
                        "WHERE id <= 20000" },
        { "join", "SELECT count(*) FROM study AS a JOIN study AS b ON b.id = a.id + 1 WHERE a.c01 < b.c01" },
};

typedef struct Exposed {
        ServiceOptions options;
        char *exposed; /* the database's name where its tables are exposed; owned */
        Service service;
        Baseline *baseline;
} Exposed;

static int copy_through_service(Exposed *exposed, const char *database, const char *sql, Copy *copy) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        unsigned n_columns = 0;
        int r = sqlipc_query(exposed->service.connection, database, sql, &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                if (n_columns == 0)
                        n_columns = sqlipc_column_count(cursor);
                service_copy_row(cursor, n_columns, copy);
        }
        return r < 0 ? service_failed(&exposed->service, r, sql) : 0;
}

static int run_side(Exposed *exposed, Side side, const char *sql, Copy *copy) {
        if (side == SIDE_PROCESS)
                return baseline_copy(exposed->baseline, sql, BASELINE_FASTEST, copy);
        return copy_through_service(exposed, side == SIDE_EXPOSED ? exposed->exposed : exposed->options.database, sql, copy);
}

/* Measures one side once; the hash over its values has to be `*hash`, which 0 leaves open. */
static int measure(Exposed *exposed, Side side, const char *sql, uint64_t *hash, GArray *usec) {
        Copy copy = {};
        double start = sampler_now_usec(), took;
        uint64_t its_hash;
        int r = run_side(exposed, side, sql, &copy);

        took = sampler_now_usec() - start;
        its_hash = copy_hash(&copy);
        copy_done(&copy);
        if (r < 0)
                return r;
        if (*hash != 0 && its_hash != *hash) {
                fprintf(stderr, "sqlipc-bench: %s brings other values than before: are the databases the same file?\n",
                        side_names[side]);
                return -EBADMSG;
        }
        *hash = its_hash;
        if (usec)
                g_array_append_val(usec, took);
        return 0;
}

static void report_query(Report *report, const char *name, GArray *usec[static _SIDE_MAX]) {
        g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
        g_autofree char *ratio_name = g_strdup_printf("%s, exposed / whole", name);

        for (Side side = 0; side < _SIDE_MAX; side++) {
                g_autoptr(GArray) ms = g_array_new(FALSE, FALSE, sizeof(double));
                g_autofree char *figure = g_strdup_printf("%s, %s", name, side_names[side]);

                for (guint i = 0; i < usec[side]->len; i++)
                        g_array_append_vals(ms, &(double) { g_array_index(usec[side], double, i) / 1000 }, 1);
                report_figure(report, figure, "ms", ms);
        }
        for (guint i = 0; i < usec[SIDE_WHOLE]->len; i++)
                g_array_append_vals(ratios,
                                    &(double) { g_array_index(usec[SIDE_EXPOSED], double, i) /
                                                g_array_index(usec[SIDE_WHOLE], double, i) },
                                    1);
        report_figure(report, ratio_name, "", ratios);
}

static int measure_query(Exposed *exposed, const char *name, const char *sql, Report *report) {
        GArray *usec[_SIDE_MAX];
        uint64_t hash = 0;
        int r = 0;

        for (Side side = 0; side < _SIDE_MAX; side++)
                usec[side] = g_array_new(FALSE, FALSE, sizeof(double));
        for (Side side = 0; r >= 0 && side < _SIDE_MAX; side++)
                r = measure(exposed, side, sql, &hash, NULL);
        for (int round = 0; r >= 0 && round < exposed->options.n_runs; round++)
                for (int i = 0; r >= 0 && i < _SIDE_MAX; i++) {
                        Side side = (Side) (round % 2 == 0 ? i : _SIDE_MAX - 1 - i);

                        r = measure(exposed, side, sql, &hash, usec[side]);
                }
        if (r >= 0)
                report_query(report, name, usec);
        for (Side side = 0; side < _SIDE_MAX; side++)
                g_array_unref(usec[side]);
        return r;
}

static int run(Exposed *exposed) {
        __attribute__((cleanup(report_freep))) Report *report = report_new("exposed");
        int r = baseline_open(exposed->options.file, &exposed->baseline);

        if (r >= 0)
                r = service_open(&exposed->options, &exposed->service);
        if (r < 0)
                return r;
        service_report(&exposed->service, &exposed->options, report);
        report_fact(report, "method", "warm cache: one run of each first, then %d rounds of all", exposed->options.n_runs);
        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(queries); i++)
                r = measure_query(exposed, queries[i].name, queries[i].sql ?: exposed->options.sql, report);
        if (r >= 0)
                r = report_print(report, exposed->options.json);
        service_close(&exposed->service);
        return r;
}

int workload_exposed(int argc, char **argv) {
        Exposed exposed = { .options.n_runs = 5 };
        const GOptionEntry entries[] = {
                { "exposed", 0, 0, G_OPTION_ARG_STRING, &exposed.exposed, "The same file's name with Expose=study", "NAME" },
                { "pairs", 0, 0, G_OPTION_ARG_INT, &exposed.options.n_runs, "Rounds that are measured, 5", "N" },
                {},
        };
        int r = service_options_parse(&exposed.options, entries, "Measures what Expose= costs.", argc, argv);

        if (r >= 0 && (exposed.options.n_runs < 1 || !exposed.exposed)) {
                fprintf(stderr, "sqlipc-bench: --exposed=NAME is needed, and --pairs is at least 1.\n");
                r = -EINVAL;
        }
        if (r >= 0)
                r = run(&exposed) < 0 ? BENCH_FAILED : BENCH_OK;
        else
                r = BENCH_USAGE;
        baseline_close(exposed.baseline);
        service_options_done(&exposed.options);
        g_free(exposed.exposed);
        return r;
}
