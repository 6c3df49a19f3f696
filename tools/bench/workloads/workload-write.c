/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * write: rows per second of writers that insert one row after the other, each in a transaction of its own: 1, 8 and 32 of
 * them, in WAL mode and with a rollback journal. Each way must bring each row to the disk before it acknowledges it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/workload.h"
#include "tools/bench/workloads/write-readers.h"
#include "tools/bench/workloads/write.h"

enum { PROBES = 50, PROBE_SIZE = 4096 }; /* how often the disk is asked how long it takes, and for how many bytes */

typedef enum Way { WAY_LIBRARY, WAY_DIRECT, WAY_SERVERS, _WAY_MAX = WAY_SERVERS + DATABASE_SERVERS_MAX } Way;
typedef enum Journal { JOURNAL_WAL, JOURNAL_ROLLBACK, _JOURNAL_MAX } Journal;

static const char *const tables[_JOURNAL_MAX] = { "write_wal", "write_rollback" };

static const struct Setting {
        const char *id, *title;
        Journal journal;
        unsigned n_writers;
} settings[] = {
        { "write-wal-1", "WAL, 1 writer", JOURNAL_WAL, 1 },
        { "write-wal-8", "WAL, 8 writers", JOURNAL_WAL, 8 },
        { "write-wal-32", "WAL, 32 writers", JOURNAL_WAL, 32 },
        { "write-rollback-1", "Rollback journal, 1 writer", JOURNAL_ROLLBACK, 1 },
        { "write-rollback-8", "Rollback journal, 8 writers", JOURNAL_ROLLBACK, 8 },
        { "write-rollback-32", "Rollback journal, 32 writers", JOURNAL_ROLLBACK, 32 },
};

/* The results of a way in a setting: an element for each round, unless noted. */
typedef struct WayFindings {
        GArray *per_second, *p50, *p99;
        GArray *client_cpu, *server_cpu; /* for each row */
        GArray *usec;                    /* each write of all rounds */
        uint64_t n_failed;
} WayFindings;

typedef struct Write {
        const BenchOptions *options;
        Service service;
        char *files[_JOURNAL_MAX]; /* of the processes that open the file themselves */
        WriteTarget targets[_JOURNAL_MAX][_WAY_MAX];
        WriterKind kinds[_JOURNAL_MAX][_WAY_MAX]; /* without a name: not available */
        WayFindings found[G_N_ELEMENTS(settings)][_WAY_MAX];
        double usec;               /* of a run */
} Write;

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

static void append(GArray *values, double value) {
        g_array_append_val(values, value);
}

static void keep(WayFindings *found, const WriteFindings *findings, const char *name, Report *report) {
        if (findings->failure && found->n_failed == 0)
                report_note(report, "A write that failed, of %s: %s", name, findings->failure);
        found->n_failed += findings->n_failed;
        append(found->per_second, findings->per_second);
        append(found->p50, report_quantile(findings->usec, 0.5) / 1e3);
        append(found->p99, report_quantile(findings->usec, 0.99) / 1e3);
        append(found->client_cpu, findings->client_cpu_usec);
        append(found->server_cpu, findings->server_cpu_usec);
        g_array_append_vals(found->usec, findings->usec->data, findings->usec->len);
}

static int measure_way(Write *w, unsigned setting, Way way, Report *report) {
        const WriterKind *kind = &w->kinds[settings[setting].journal][way];
        WriteFindings findings;
        int r;

        if (!kind->name)
                return 0;
        r = write_run(kind, settings[setting].n_writers, w->usec, &findings);
        if (r < 0)
                return r;
        keep(&w->found[setting][way], &findings, kind->name, report);
        write_findings_done(&findings);
        return 0;
}

/* Measures all ways in turn, every other round backwards. */
static int measure_setting(Write *w, unsigned setting, Report *report) {
        unsigned n_rounds = (unsigned) bench_rounds(w->options);
        int r = 0;

        for (unsigned round = 0; r >= 0 && round < n_rounds; round++)
                for (unsigned i = 0; r >= 0 && i < _WAY_MAX; i++) {
                        measure_progress(settings[setting].title, round * _WAY_MAX + i, n_rounds * _WAY_MAX);
                        r = measure_way(w, setting, (Way) (round % 2 == 0 ? i : _WAY_MAX - 1 - i), report);
                }
        measure_progress(settings[setting].title, 1, 1);
        return r;
}

/* ---- The disk ----------------------------------------------------------------------------------------------------- */

/* Measures what a commit cannot be faster than: one write that reaches the disk. */
static int probe_disk(int fd, GArray *msec) {
        static const char bytes[PROBE_SIZE];

        for (unsigned i = 0; i < PROBES; i++) {
                double start = sampler_now_usec();

                if (pwrite(fd, bytes, sizeof bytes, (off_t) i * PROBE_SIZE) != PROBE_SIZE || fdatasync(fd) < 0)
                        return -errno;
                append(msec, (sampler_now_usec() - start) / 1e3);
        }
        return 0;
}

static int report_disk(const Write *w, Report *report) {
        g_autofree char *path = g_build_filename(w->options->folder, "write-probe.XXXXXX", NULL);
        g_autoptr(GArray) msec = g_array_new(FALSE, FALSE, sizeof(double));
        struct statfs fs;
        int fd = g_mkstemp(path), r = fd < 0 ? -errno : 0;

        if (r >= 0) {
                r = probe_disk(fd, msec);
                if (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
                        report_note(report, "The folder is in memory: no row reached a disk, and the figures say nothing.");
                (void) unlink(path);
                close(fd);
        }
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %s: %s\n", path, g_strerror(-r));
        else
                report_figure(report, "4 KiB written, then fdatasync()", "ms", msec);
        return r;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

enum { COLUMN_RATE, COLUMN_P50, COLUMN_P99, COLUMN_WORST, COLUMN_FAILED, COLUMN_CLIENT_CPU, COLUMN_SERVER_CPU };

static void add_columns(ReportTable *table) {
        report_table_column(table, "rows/s", "");
        report_table_column(table, "p50", "ms");
        report_table_column(table, "p99", "ms");
        report_table_column(table, "worst", "ms");
        report_table_column(table, "failed", "");
        report_table_column(table, "client CPU", "us/row");
        report_table_column(table, "server CPU", "us/row");
}

static void report_way(const Write *w, unsigned setting, Way way, ReportTable *table) {
        const WriterKind *kind = &w->kinds[settings[setting].journal][way];
        const WayFindings *found = &w->found[setting][way];

        report_table_row(table, kind->name, false);
        report_table_values(table, COLUMN_RATE, found->per_second);
        report_table_values(table, COLUMN_P50, found->p50);
        report_table_values(table, COLUMN_P99, found->p99);
        report_table_value(table, COLUMN_WORST, report_quantile(found->usec, 1) / 1e3);
        report_table_value(table, COLUMN_FAILED, (double) found->n_failed);
        report_table_values(table, COLUMN_CLIENT_CPU, found->client_cpu);
        if (kind->server != 0)
                report_table_values(table, COLUMN_SERVER_CPU, found->server_cpu);
}

/* The time for a row is the inverse of the rate, so the rival's rate is on top. */
static void report_verdicts(const Write *w, unsigned setting, Report *report) {
        const WriterKind *kinds = w->kinds[settings[setting].journal];
        g_autofree char *task = g_strdup_printf("Rows written, %s", settings[setting].title);

        for (Way way = WAY_DIRECT; kinds[WAY_LIBRARY].name && way < _WAY_MAX; way++) {
                g_autoptr(GArray) ratios = NULL;

                if (!kinds[way].name)
                        continue;
                ratios = measure_ratios(w->found[setting][way].per_second, w->found[setting][WAY_LIBRARY].per_second);
                report_verdict(report, task, kinds[way].name, ratios);
        }
}

static void report_setting(const Write *w, unsigned setting, Report *report) {
        ReportTable *table = report_table(report, settings[setting].id, settings[setting].title, "way");

        add_columns(table);
        for (Way way = 0; way < _WAY_MAX; way++)
                if (w->kinds[settings[setting].journal][way].name)
                        report_way(w, setting, way, table);
        report_verdicts(w, setting, report);
}

static void report_rates(const Write *w, Report *report) {
        ReportChart *chart = report_chart(report, "write-rates", "Rows written, one in a transaction", "", "rows/s",
                                          REPORT_BARS);

        for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
                unsigned series = report_chart_series(chart, settings[i].title, false);

                for (Way way = 0; way < _WAY_MAX; way++)
                        if (w->kinds[settings[i].journal][way].name)
                                report_chart_bar(chart, series, w->kinds[settings[i].journal][way].name,
                                                 report_median(w->found[i][way].per_second));
        }
}

static void report_all(const Write *w, Report *report) {
        report_fact(report, "row", "an INTEGER PRIMARY KEY that the database counts, an INTEGER with an index, a REAL, 32"
                                   " letters");
        report_fact(report, "method", "each writer a process; %d rounds of all ways, %g s each, every other backwards",
                    bench_rounds(w->options), w->usec / 1e6);
        for (Way way = WAY_SERVERS; way < _WAY_MAX; way++) {
                const WriterKind *kind = &w->kinds[JOURNAL_WAL][way];
                g_autofree char *durability = kind->name ? write_server_durability(kind->target) : NULL;

                if (durability)
                        report_fact(report, kind->name, "%s", durability);
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++)
                report_setting(w, i, report);
        report_rates(w, report);
        report_note(report, "Every process that opens the file has a prepared INSERT, a busy timeout of 10 s and synchronous"
                            " FULL. Servers have no journal of SQLite, and are measured again beside each.");
        report_note(report, "After each run the table is counted: each row that was acknowledged exists, and none twice.");
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

/* Offers the service, if it lets this user write. */
static void name_library(Write *w, Journal journal, Report *report) {
        const WriteTarget *target = &w->targets[journal][WAY_LIBRARY];
        g_autofree char *obstacle = write_library_obstacle(target);

        if (obstacle) {
                report_note(report, "libsqlipc is left out, because the service does not write %s: %s", target->table,
                            obstacle);
                return;
        }
        w->kinds[journal][WAY_LIBRARY] = write_library(target);
        w->kinds[journal][WAY_LIBRARY].server = w->service.pid;
}

static int name_server(Write *w, Journal journal, Way way, const DatabaseServerChoice *choice) {
        WriteTarget *target = &w->targets[journal][way];
        ServerConnection *connection;
        int r = choice->server->connect(choice, &connection);

        if (r < 0)
                return r;
        target->server = *choice;
        w->kinds[journal][way] = write_server(target);
        w->kinds[journal][way].server = choice->server->get_pid(connection);
        choice->server->close(connection);
        return 0;
}

static int name_ways(Write *w, Journal journal, Report *report) {
        DatabaseServerChoice servers[DATABASE_SERVERS_MAX];
        int n_servers = database_servers_get(w->options, servers), r = n_servers;

        w->files[journal] = g_strdup_printf("%s/direct-%s.sqlite", w->options->folder, tables[journal]);
        for (Way way = 0; way < _WAY_MAX; way++)
                w->targets[journal][way] = (WriteTarget) {
                        .options = w->options, .table = tables[journal], .file = w->files[journal],
                };
        w->kinds[journal][WAY_DIRECT] = write_direct(&w->targets[journal][WAY_DIRECT]);
        name_library(w, journal, report);
        for (int i = 0; r >= 0 && i < n_servers; i++)
                r = name_server(w, journal, (Way) (WAY_SERVERS + i), &servers[i]);
        return r;
}

static int measure_all(Write *w, Report *report) {
        int r = report_disk(w, report);

        for (Journal journal = 0; r >= 0 && journal < _JOURNAL_MAX; journal++)
                r = name_ways(w, journal, report);
        for (unsigned setting = 0; r >= 0 && setting < G_N_ELEMENTS(settings); setting++)
                r = measure_setting(w, setting, report);
        if (r >= 0)
                report_all(w, report);
        if (r >= 0 && w->kinds[JOURNAL_WAL][WAY_LIBRARY].name)
                r = write_readers(&w->kinds[JOURNAL_WAL][WAY_LIBRARY], w->usec, bench_rounds(w->options), report);
        return r;
}

/* Leaves no file and no table of the rivals. */
static void leave_nothing(const Write *w) {
        for (Journal journal = 0; journal < _JOURNAL_MAX; journal++) {
                if (w->files[journal])
                        write_direct_remove(&w->targets[journal][WAY_DIRECT]);
                for (Way way = WAY_SERVERS; way < _WAY_MAX; way++)
                        if (w->kinds[journal][way].name)
                                write_server_drop(&w->targets[journal][way]);
                g_free(w->files[journal]);
        }
}

static void way_findings_init(WayFindings *found) {
        GArray **arrays[] = { &found->per_second, &found->p50, &found->p99, &found->client_cpu, &found->server_cpu,
                              &found->usec };

        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                *arrays[i] = g_array_new(FALSE, FALSE, sizeof(double));
}

static void way_findings_done(WayFindings *found) {
        GArray *arrays[] = { found->per_second, found->p50, found->p99, found->client_cpu, found->server_cpu, found->usec };

        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                g_array_unref(arrays[i]);
}

static int measure(const BenchOptions *options, Report *report) {
        g_autofree Write *w = g_new0(Write, 1);
        int r;

        w->options = options;
        w->usec = (double) bench_amount(options, 50, 1000, 5000) * 1e3;
        r = bench_service_open(options, &w->service);
        if (r < 0)
                return r;
        service_facts_add(report, &w->service, options);
        for (unsigned setting = 0; setting < G_N_ELEMENTS(settings); setting++)
                for (Way way = 0; way < _WAY_MAX; way++)
                        way_findings_init(&w->found[setting][way]);
        r = measure_all(w, report);
        leave_nothing(w);
        for (unsigned setting = 0; setting < G_N_ELEMENTS(settings); setting++)
                for (Way way = 0; way < _WAY_MAX; way++)
                        way_findings_done(&w->found[setting][way]);
        bench_service_close(&w->service);
        return r;
}

const Workload workload_write = {
        .verb = "write",
        .help = "1, 8 and 32 writers, one row in each transaction",
        .summary = "Processes that insert one row after the other, each in a transaction that reaches the disk: 1, 8 and\n"
                   "32 of them, through libsqlipc, beside as many that open the file themselves, and PostgreSQL and\n"
                   "MariaDB if --postgres or --mariadb name one. In WAL mode and with a rollback journal: the service\n"
                   "publishes the datasets write_wal and write_rollback with Mode=read-write.",
        .measure = measure,
        .bus = true,
        .folder = true,
        .servers = true,
        .in_report = true,
};
