/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bulk: copies every value of a whole result into this process's memory: through libsqlipc, in process in the usual way,
 * in process in the fastest way, and from database servers; on two CPUs and on one. Then measures the effect of sizes
 * (bulk-sizes.c), and checks that time grows in proportion to the rows and memory does not grow (bulk-growth.c).
 *
 * All sides must copy the same bytes, or the measurement fails. Hashes are computed after the clock has stopped.
 */
#include <errno.h>
#include <inttypes.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/database-server.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/bulk.h"
#include "tools/bench/workloads/workload.h"

#define TABLE "study"

/* The servers' sides follow, as many as the command line names. */
enum { SIDE_SQLIPC, SIDE_USUAL, SIDE_FASTEST, SIDE_SERVERS, N_SIDES_MAX = SIDE_SERVERS + DATABASE_SERVERS_MAX };

/* A database server with a copy of the table. */
typedef struct Rival {
        const DatabaseServer *server;
        ServerConnection *connection; /* kept, because the process of a connection must outlive its measurement */
        pid_t pid, behind; /* as in Side */
        Copy *copy; /* of the current run */
} Rival;

typedef struct Bulk {
        const BenchOptions *options;
        Service service;
        DatabaseServerChoice servers[DATABASE_SERVERS_MAX];
        Rival rivals[DATABASE_SERVERS_MAX];
        size_t n_rivals;
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

static int run_rival(void *userdata) {
        const Rival *rival = userdata;
        g_autofree char *table = database_server_table(TABLE);

        return rival->server->copy_table(rival->connection, table, rival->copy);
}

static uint64_t check(void *userdata) {
        Bulk *bulk = userdata;
        uint64_t hash = copy_hash(&bulk->copy);

        bulk->n_rows = bulk->copy.n_rows;
        bulk->n_bytes = bulk->copy.n_bytes;
        copy_done(&bulk->copy);
        return hash;
}

static uint64_t check_rival(void *userdata) {
        const Rival *rival = userdata;
        uint64_t hash = copy_hash(rival->copy);

        copy_done(rival->copy);
        return hash;
}

/* ---- Database servers --------------------------------------------------------------------------------------------- */

static int open_rival(Bulk *bulk, const DatabaseServerChoice *choice, Report *report) {
        Rival *rival = &bulk->rivals[bulk->n_rivals];
        int r;

        measure_progress(choice->server->name, 0, 1); /* loading takes a while */
        r = database_server_load(choice, bulk->options->file, TABLE);
        measure_progress(choice->server->name, 1, 1);
        if (r >= 0)
                r = choice->server->connect(choice, &rival->connection);
        if (r < 0)
                return r;
        rival->server = choice->server;
        rival->pid = choice->server->get_pid(rival->connection);
        if (choice->server->by_service) {
                rival->behind = rival[-1].pid;
                rival->pid = bulk->service.pid;
        }
        rival->copy = &bulk->copy;
        bulk->n_rivals++;
        report_note(report, "%s: %s.", rival->server->name, rival->server->table_way);
        return 0;
}

static int open_rivals(Bulk *bulk, int n_servers, Report *report) {
        int r = 0;

        for (int i = 0; r >= 0 && i < n_servers; i++)
                r = open_rival(bulk, &bulk->servers[i], report);
        return r;
}

/* Drops the table, also where open_rival() failed. */
static void close_rivals(Bulk *bulk, int n_servers) {
        for (size_t i = 0; i < bulk->n_rivals; i++)
                bulk->rivals[i].server->close(bulk->rivals[i].connection);
        for (int i = 0; i < n_servers; i++)
                database_server_drop(&bulk->servers[i], TABLE);
}

/* Places this process and those that serve it. */
static int place_all(const Bulk *bulk, Placement placement) {
        int r = measure_place(placement, bulk->service.pid);

        for (size_t i = 0; r >= 0 && i < bulk->n_rivals; i++)
                r = measure_place(placement, bulk->rivals[i].pid);
        return r;
}

/* ---- Beside SQLite in process ------------------------------------------------------------------------------------- */

/* Compares the processor time of client and server together with that of SQLite in process. */
static void report_cpu(const Findings *findings, const char *where, Report *report) {
        g_autofree char *name = g_strdup_printf("CPU of both sides / fastest, %s", where);
        g_autoptr(GArray) both = measure_sums(findings[SIDE_SQLIPC].client_cpu_usec, findings[SIDE_SQLIPC].server_cpu_usec);
        g_autoptr(GArray) ratios = measure_ratios(both, findings[SIDE_FASTEST].client_cpu_usec);

        report_figure(report, name, "", ratios);
}

/* Adds the processor time of each side per megabyte of values. */
static void report_cpu_table(const Bulk *bulk, const Side *sides, const Findings *findings, const char *id,
                             const char *where, Report *report) {
        g_autofree char *table_id = g_strdup_printf("%s-cpu", id);
        g_autofree char *title = g_strdup_printf("Processor time for each MB of values, %s", where);
        ReportTable *table = report_table(report, table_id, title, "side");
        double factor = 1e6 / (double) MAX(bulk->n_bytes, 1);
        g_autoptr(GArray) reference = measure_scaled(findings[SIDE_USUAL].client_cpu_usec, factor);

        (void) comparison_cpu_columns(table, "us/MB", sides[SIDE_USUAL].name);
        for (size_t i = 0; i < SIDE_SERVERS + bulk->n_rivals; i++) {
                g_autoptr(GArray) client = measure_scaled(findings[i].client_cpu_usec, factor);
                g_autoptr(GArray) server = measure_scaled(findings[i].server_cpu_usec, factor);
                bool is_in_process = i == SIDE_USUAL || i == SIDE_FASTEST;

                report_table_row(table, sides[i].name, false);
                if (is_in_process || sides[i].server > 0)
                        comparison_cpu_values(table, 0, client, is_in_process ? NULL : server, reference);
                else /* what serves it is unknown */
                        report_table_values(table, 0, client);
        }
}

static void report_verdicts(const Bulk *bulk, const Findings *findings, const char *where, Report *report) {
        g_autofree char *task = g_strdup_printf("Whole table, %s", where);

        for (size_t i = 0; i < bulk->n_rivals; i++) {
                g_autoptr(GArray) ratios = measure_ratios(findings[SIDE_SQLIPC].usec, findings[SIDE_SERVERS + i].usec);

                report_verdict(report, task, bulk->rivals[i].server->name, ratios);
                if (bulk->rivals[i].server->by_service) { /* beside a connection to the same server */
                        g_autofree char *name = g_strdup_printf("PostgreSQL by sqlipc, time / PostgreSQL, %s", where);
                        g_autoptr(GArray) beside = measure_ratios(findings[SIDE_SERVERS + i].usec,
                                                                  findings[SIDE_SERVERS + i - 1].usec);

                        report_figure(report, name, "", beside);
                }
        }
}

static int measure_placed(Bulk *bulk, const char *id, const char *where, Report *report) {
        static const size_t references[] = { SIDE_USUAL, SIDE_FASTEST };
        g_autofree char *title = g_strdup_printf("The whole result, every value copied, %s", where);
        Side sides[N_SIDES_MAX] = {
                [SIDE_SQLIPC] = { "libsqlipc", run_sqlipc, check, bulk, bulk->service.pid },
                [SIDE_USUAL] = { "in process, usual", run_usual, check, bulk, 0 },
                [SIDE_FASTEST] = { "in process, fastest", run_fastest, check, bulk, 0 },
        };
        size_t n_sides = SIDE_SERVERS + bulk->n_rivals;
        Findings findings[N_SIDES_MAX];
        int r;

        for (size_t i = 0; i < bulk->n_rivals; i++) {
                Rival *rival = &bulk->rivals[i];

                sides[SIDE_SERVERS + i] = (Side) { rival->server->name, run_rival, check_rival, rival,
                                                   rival->pid, 0, rival->behind };
        }
        r = measure_sides(sides, n_sides, bench_rounds(bulk->options), where, findings);
        if (r < 0)
                return r;
        (void) comparison_table(report, id, title, sides, findings, n_sides, references, G_N_ELEMENTS(references));
        report_cpu_table(bulk, sides, findings, id, where, report);
        report_cpu(findings, where, report);
        report_verdicts(bulk, findings, where, report);
        for (size_t i = 0; i < n_sides; i++)
                findings_done(&findings[i]);
        return 0;
}

static int measure_at(Bulk *bulk, Placement placement, const char *id, const char *where, Report *report) {
        int r = place_all(bulk, placement);

        if (r == -ENODEV || r == -EPERM) {
                report_note(report, "Not measured %s: %s.", where,
                            r == -EPERM ? "a server belongs to another user" : "there are not so many CPUs");
                r = 0;
        } else if (r >= 0)
                r = measure_placed(bulk, id, where, report);
        (void) place_all(bulk, PLACEMENT_FREE);
        return r;
}

/* Measures all sides in turn, with the table in the servers. */
static int measure_beside(Bulk *bulk, Report *report) {
        int n_servers = database_servers_get(bulk->options, bulk->servers), r;

        if (n_servers < 0)
                return n_servers;
        r = open_rivals(bulk, n_servers, report);
        if (r >= 0)
                r = measure_at(bulk, PLACEMENT_TWO_CPUS, "bulk-two-cpus", "on two CPUs", report);
        if (r >= 0)
                r = measure_at(bulk, PLACEMENT_ONE_CPU, "bulk-one-cpu", "on one CPU", report);
        close_rivals(bulk, n_servers);
        return r;
}

/* ---- All together ------------------------------------------------------------------------------------------------- */

static int measure_opened(Bulk *bulk, Report *report) {
        int r;

        service_facts_add(report, &bulk->service, bulk->options);
        r = measure_beside(bulk, report);
        if (r < 0)
                return r;
        report_fact(report, "result", "%" PRIu64 " rows, %.1f MB of values, the same on all sides", bulk->n_rows,
                    (double) bulk->n_bytes / 1e6);
        report_note(report, "Server CPU is that of the service with its workers, or of all processes and threads of a"
                            " database server. The peak of a server with several processes counts shared memory for each.");
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
                   "as fast as it goes; and beside PostgreSQL and MariaDB if --postgres or --mariadb names one, which get "
                   "a copy of the table. Shows what sizes of pages, pipes and writes are worth, on pipes of its own; and, "
                   "if --folder has the dataset 'narrow', time and memory by the number of rows.",
        .database = TABLE,
        .sql = "SELECT * FROM " TABLE,
        .servers = true,
        .measure = measure,
        .in_report = true,
};
