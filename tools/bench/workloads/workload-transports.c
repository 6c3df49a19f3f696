/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * transports: repeats the 2010 study with its transports and newer ones: its table, 300,000 rows of 31 columns, goes from a
 * server into the client's memory (transport.h). All sides must copy the same bytes, or the measurement fails.
 *
 * Time and memory of each at the full number of rows; time by number of rows (is it linear?), by the size of the buffers,
 * and on one CPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/library.h"
#include "tools/bench/core/line-fit.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/transport-field.h"
#include "tools/bench/workloads/transport-source.h"
#include "tools/bench/workloads/workload.h"

enum {
        USUAL, /* the first ones of `kinds` */
        FASTEST,
        SQLIPC = 3,
        FIRST_RIVAL = 6,
};
enum { POINTS = 5 }; /* of the chart by number of rows */

static const TransportKind *const kinds[] = {
        [USUAL] = &transport_usual,
        [FASTEST] = &transport_fastest,
        &transport_function,
        [SQLIPC] = &transport_sqlipc,
        &transport_sqlipc_blocks,
        &transport_channel,
        [FIRST_RIVAL] = &transport_socket,
        &transport_pipe,
        &transport_vmsplice,
        &transport_ring,
        &transport_message,
        &transport_peer,
};

/* The kinds that are measured by the size of their buffers. */
static const TransportKind *const buffered[] = {
        &transport_sqlipc_pages, &transport_socket, &transport_pipe, &transport_vmsplice, &transport_ring,
};

G_STATIC_ASSERT(G_N_ELEMENTS(kinds) <= FIELD_MAX && G_N_ELEMENTS(buffered) <= FIELD_MAX);

typedef struct Study {
        const BenchOptions *options;
        Report *report;
        Service service;
        TransportSetup setup;
        int64_t n_rows;
        double rows[POINTS], msec[FIELD_MAX][POINTS]; /* medians, of each of the field */
} Study;

/* Returns the number of rounds for a point of a chart: few, because a chart has many points. */
static int rounds_of_point(const Study *study) {
        return MIN(bench_rounds(study->options), 3);
}

/* ---- The table ---------------------------------------------------------------------------------------------------- */

static void add_published(ReportTable *table) {
        static const struct {
                const char *name;
                double msec;
        } published[] = {
                { "2010: direct", 2910 },
                { "2010: UNIX socket", 3470 },
                { "2010: D-Bus messages", 12300 },
                { "2010: D-Bus and a pipe", 3329 },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(published); i++) {
                report_table_row(table, published[i].name, true);
                report_table_value(table, COMPARISON_TIME, published[i].msec);
                report_table_value(table, COMPARISON_RATIO, published[i].msec / published[0].msec);
        }
}

static ReportTable *add_table(Report *report, const Field *field, const char *id, const char *title) {
        static const size_t references[] = { USUAL, FASTEST };

        return comparison_table(report, id, title, field->sides, field->findings, field->n, references,
                                G_N_ELEMENTS(references));
}

/* Beside each rival between processes; SQLite in process is beside it in "fetch". */
static void report_verdicts(const Study *study, const Field *field) {
        size_t n_rivals = G_N_ELEMENTS(kinds) - FIRST_RIVAL; /* at the end, also if there is no channel */

        for (size_t i = field->n - n_rivals; i < field->n; i++) {
                g_autoptr(GArray) ratios = measure_ratios(field->findings[SQLIPC].usec, field->findings[i].usec);

                report_verdict(study->report, "Whole table", field->sides[i].name, ratios);
        }
}

/* What went from process to process, and what the bus, which belongs to neither side, did for it: in one more run each. */
static int measure_carried(Study *study, Field *field) {
        pid_t bus = library_bus_pid(&study->service);
        ReportTable *table = report_table(study->report, "carried", "What was carried", "side");
        unsigned bytes = report_table_column(table, "bytes between processes", "MB");
        unsigned cpu = report_table_column(table, "CPU of the bus", "ms");

        for (size_t i = 0; i < field->n; i++) {
                Usage before, after;
                int r;

                if (field->sides[i].server == 0)
                        continue;
                sampler_read_tree(bus, &before);
                r = field_run_once(field, i);
                sampler_read_tree(bus, &after);
                if (r < 0)
                        return r;
                report_table_row(table, field->sides[i].name, false);
                report_table_value(table, bytes, (double) field->runners[i].transport.bytes_moved / 1e6);
                if (bus > 0)
                        report_table_value(table, cpu, (after.cpu_usec - before.cpu_usec) / 1e3);
        }
        return 0;
}

static void chart_memory(Study *study, const Field *field) {
        ReportChart *chart = report_chart(study->report, "memory", "Memory, resident at most", "", "MiB",
                                          REPORT_BARS | REPORT_LOG_Y);
        unsigned client = report_chart_series(chart, "client, which keeps all rows", false);
        unsigned server = report_chart_series(chart, "server", false);

        for (size_t i = 0; i < field->n; i++) {
                report_chart_bar(chart, client, field->sides[i].name, field->findings[i].client_peak_kib / 1024);
                if (field->sides[i].server > 0)
                        report_chart_bar(chart, server, field->sides[i].name, field->findings[i].server_peak_kib / 1024);
        }
}

/* ---- By number of rows -------------------------------------------------------------------------------------------- */

/* The last point is all rows, with all rounds, and leaves its findings in the field. */
static int measure_by_rows(Study *study, Field *field) {
        for (int point = 0; point < POINTS; point++) {
                int64_t n_rows = study->n_rows * (point + 1) / POINTS;
                int n_rounds = point == POINTS - 1 ? bench_rounds(study->options) : rounds_of_point(study);
                int r = field_measure(field, n_rows, n_rounds, "transports");

                if (r < 0)
                        return r;
                study->rows[point] = (double) n_rows;
                for (size_t i = 0; i < field->n; i++)
                        study->msec[i][point] = report_median(field->findings[i].usec) / 1e3;
        }
        return 0;
}

static void report_by_rows(Study *study, const Field *field) {
        ReportChart *chart = report_chart(study->report, "rows", "Time by number of rows", "rows", "ms", REPORT_LINEAR);
        ReportTable *table = report_table(study->report, "linear", "Time by number of rows, as a line", "side");
        unsigned slope = report_table_column(table, "for 1,000 rows", "ms");
        unsigned intercept = report_table_column(table, "at no row", "ms");
        unsigned r_squared = report_table_column(table, "R2", "");

        for (size_t i = 0; i < field->n; i++) {
                unsigned series = report_chart_series(chart, field->sides[i].name, false);
                LineFit fit = line_fit(study->rows, study->msec[i], POINTS);

                for (int point = 0; point < POINTS; point++)
                        report_chart_value(chart, series, study->rows[point], study->msec[i][point]);
                report_table_row(table, field->sides[i].name, false);
                report_table_value(table, slope, fit.slope * 1000);
                report_table_value(table, intercept, fit.intercept);
                report_table_value(table, r_squared, fit.r_squared);
        }
}

/* ---- By size of the buffers --------------------------------------------------------------------------------------- */

static int measure_buffer_size(Study *study, ReportChart *chart, const unsigned *series, size_t size) {
        Field field = {};
        unsigned which[FIELD_MAX];
        int r = 0;

        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(buffered); i++)
                if (size >= buffered[i]->buffer_size_min) {
                        which[field.n] = series[i];
                        r = field_add(&field, &study->setup, buffered[i], size);
                }
        if (r >= 0)
                r = field_measure(&field, study->n_rows, rounds_of_point(study), "transports, by buffers");
        for (size_t i = 0; r >= 0 && i < field.n; i++) {
                g_autoptr(GArray) values = measure_scaled(field.findings[i].usec, 1e-3);

                report_chart_point(chart, which[i], (double) size / 1024, values);
        }
        field_close(&field);
        return r;
}

static int measure_by_buffer_size(Study *study) {
        ReportChart *chart = report_chart(study->report, "buffers", "Time by size of the buffers", "KiB", "ms",
                                          REPORT_LOG_X);
        size_t factor = (size_t) bench_amount(study->options, 32, 4, 2);
        unsigned series[G_N_ELEMENTS(buffered)];
        int r = 0;

        for (size_t i = 0; i < G_N_ELEMENTS(buffered); i++)
                series[i] = report_chart_series(chart, buffered[i]->name, false);
        for (size_t size = 1024; r >= 0 && size <= 1024 * 1024; size *= factor)
                r = measure_buffer_size(study, chart, series, size);
        return r;
}

/* ---- On one CPU --------------------------------------------------------------------------------------------------- */

/* Us, all servers, and the bus, whose children the service's processes may be. */
static int place(Study *study, const Field *field, Placement placement) {
        pid_t bus = library_bus_pid(&study->service);
        int r = bus > 0 ? measure_place(placement, bus) : 0;

        for (size_t i = 0; r >= 0 && i < field->n; i++)
                r = measure_place(placement, transport_server(&field->runners[i].transport));
        return r;
}

static int measure_on_one_cpu(Study *study, Field *field) {
        int r = place(study, field, PLACEMENT_ONE_CPU);

        if (r == -EPERM)
                report_note(study->report, "Nothing was measured on one CPU: service or bus are another user's to place.");
        else if (r < 0)
                fprintf(stderr, "sqlipc-bench: cannot place processes on one CPU: %s\n", g_strerror(-r));
        else {
                r = field_measure(field, study->n_rows, bench_rounds(study->options), "transports, on one CPU");
                if (r >= 0)
                        add_table(study->report, field, "one-cpu", "The same with all processes on one CPU");
        }
        (void) place(study, field, PLACEMENT_FREE);
        return r == -EPERM ? 0 : r;
}

/* ---- All of it ---------------------------------------------------------------------------------------------------- */

static int open_all(Study *study, Field *field) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(kinds); i++)
                if (kinds[i] != &transport_channel || library_service_has_channels(&study->service))
                        r = field_add(field, &study->setup, kinds[i], 0);
                else
                        report_note(study->report, "%s was left out: this service has no channels.", kinds[i]->name);
        return r;
}

static int measure_all(Study *study, Field *field) {
        int r = measure_by_rows(study, field);

        if (r < 0)
                return r;
        report_fact(study->report, "result", "%" PRIu64 " rows, %.1f MB of values, the same on all sides",
                    field->runners[0].n_rows, (double) field->runners[0].n_bytes / 1e6);
        add_published(add_table(study->report, field, "transports", "The whole result, every value copied to memory"));
        report_verdicts(study, field);
        chart_memory(study, field);
        report_by_rows(study, field);
        r = measure_carried(study, field);
        if (r >= 0)
                r = measure_by_buffer_size(study);
        return r < 0 ? r : measure_on_one_cpu(study, field);
}

/* The columns' types, and how many rows there are to ask for. */
static int look_at_table(Study *study, Source *source) {
        sqlipc_type *types;

        if (source_prepare(source, "SELECT count(*) FROM study") != SQLITE_OK || source_next(source) != SQLITE_ROW)
                return -EIO;
        study->n_rows = MIN(g_ascii_strtoll(source->values[0].text, NULL, 10),
                            bench_amount(study->options, 2000, 100000, INT64_MAX));
        if (source_prepare(source, "SELECT * FROM study") != SQLITE_OK)
                return -EIO;
        types = g_new(sqlipc_type, source->n_values);
        for (uint32_t i = 0; i < source->n_values; i++) {
                const char *declared = sqlite3_column_decltype(source->statement, (int) i);

                types[i] = g_strcmp0(declared, "INTEGER") == 0 ? SQLIPC_INTEGER
                         : g_strcmp0(declared, "REAL") == 0    ? SQLIPC_REAL
                                                               : SQLIPC_TEXT;
        }
        study->setup.n_columns = source->n_values;
        study->setup.types = types;
        return 0;
}

static int open_study(Study *study) {
        Source source;
        int r;

        r = source_open(study->options->file, &source);
        if (r < 0)
                return r;
        r = look_at_table(study, &source);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %s: %s\n", study->options->file, sqlite3_errmsg(source.db));
        source_close(&source);
        if (r >= 0)
                r = baseline_open(study->options->file, &study->setup.baseline);
        return r < 0 ? r : bench_service_open(study->options, &study->service);
}

static void report_how(const Study *study) {
        service_facts_add(study->report, &study->service, study->options);
        for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
                report_fact(study->report, kinds[i]->name, "%s", kinds[i]->how);
        report_fact(study->report, buffered[0]->name, "%s", buffered[0]->how);
        report_note(study->report, "Ours carry values by their types. Rivals carry all as text, which the client converts "
                                   "by the columns' declared types, so that all copies are equal, byte for byte.");
        report_note(study->report, "2010: the study's figures, on a machine of its time, for 300,000 rows of 31 columns and "
                                   "about 220 MB. Only their ratios compare.");
}

static int measure(const BenchOptions *options, Report *report) {
        Study study = { .options = options, .report = report };
        Field field = {};
        int r;

        study.setup.options = options;
        study.setup.service = &study.service;
        r = open_study(&study);
        if (r >= 0)
                r = open_all(&study, &field);
        if (r >= 0) {
                report_how(&study);
                r = measure_all(&study, &field);
        }
        field_close(&field);
        bench_service_close(&study.service);
        baseline_close(study.setup.baseline);
        g_free(study.setup.types);
        return r;
}

const Workload workload_transports = {
        .verb = "transports",
        .help = "the study of 2010 again: ways to get a whole result, beside ours",
        .summary = "Fetches the study's table in process, through libsqlipc, and by rivals: the study's UNIX socket, D-Bus "
                   "messages, D-Bus and a pipe, vmsplice(), a shared ring. Each does the whole job; all have to bring the "
                   "same.",
        .database = "study",
        .measure = measure,
        .in_report = true,
};
