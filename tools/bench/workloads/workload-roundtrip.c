/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * roundtrip: round trips per second for 1 byte to 4 MiB in powers of two, on one CPU and on two, as in a comparison of kdbus
 * and pipes of 2014. In a run, each way makes trips for a fixed time; the bytes that came back last are compared.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/core/repeat.h"
#include "tools/bench/workloads/echo.h"
#include "tools/bench/workloads/workload.h"

enum { N_ECHOS = 6, N_SIZES = 23 }; /* 1 << 0 to 1 << 22 */

static const EchoKind *const kinds[N_ECHOS] = {
        &echo_pipe, &echo_socket_pair, &echo_memfd, &echo_direct, &echo_bus, &echo_channel
};

/* Sizes for which the costs of a trip are shown in detail: a small message, and one whose copying takes time. */
static const size_t cost_sizes[] = { 64, 64 * 1024 };

/* One way, at the current size. */
typedef struct Trips {
        Echo echo;
        bool is_open;
        size_t size;
        Repeat repeat;
} Trips;

typedef struct Roundtrip {
        const BenchOptions *options;
        Report *report;
        EchoBytes bytes;
        Trips trips[N_ECHOS];
} Roundtrip;

/* The rounds on one CPU or on two, and where their figures go. */
typedef struct Round {
        Placement placement;
        const char *id, *title;
        ReportTable *table, *costs;
        ReportChart *chart;
        unsigned columns[N_ECHOS], series[N_ECHOS];
        unsigned published; /* the first of three columns, and of three series */
} Round;

/* ---- What was published ------------------------------------------------------------------------------------------- */

static const char *const published_names[] = { "kdbus COPY, 2014", "kdbus MEMFD, 2014", "pipe, 2014" };

/* The start of the table "single cpu performance" of S. Westerfeld, from 1 byte up by powers of two. */
static const double published[][G_N_ELEMENTS(published_names)] = {
        { 32580, 16390, 192007 }, { 40870, 16960, 191730 }, { 40750, 16870, 190938 },
        { 40930, 16950, 191234 }, { 40290, 17150, 192041 }, { 40220, 18050, 191963 },
        { 40280, 16930, 192183 }, { 40530, 17440, 191649 }, { 40610, 17610, 190405 },
};

static void note_published(Report *report) {
        report_note(report,
                    "Published: S. Westerfeld, \"kdbus vs. pipe based ipc performance\", systemd-devel, 3 March 2014 "
                    "(lists.freedesktop.org/archives/systemd-devel/2014-March/017563.html), AMD Phenom 9850, one CPU, "
                    "\"IBENCH\" as pipe. Only the rows up to 256 bytes were found, not the rest, nor the table of two "
                    "CPUs.");
        report_note(report,
                    "COPY and MEMFD are systemd's test-bus-kernel-benchmark, whose bytes go there only and whose reply is "
                    "empty; in ours they come back, copied to memory on both sides.");
}

static void fill_published(const Round *round, unsigned i) {
        if (round->placement != PLACEMENT_ONE_CPU || i >= G_N_ELEMENTS(published))
                return;
        for (unsigned k = 0; k < G_N_ELEMENTS(published_names); k++) {
                report_table_value(round->table, round->published + k, published[i][k]);
                report_chart_value(round->chart, round->published + k, (double) ((size_t) 1 << i), published[i][k]);
        }
}

/* ---- A run -------------------------------------------------------------------------------------------------------- */

static int make_trip(void *userdata) {
        Trips *trips = userdata;

        return trips->echo.kind->trip(&trips->echo, trips->size);
}

static int run_trips(void *userdata) {
        Trips *trips = userdata;

        memset(trips->echo.back, 0, trips->size); /* clears the bytes of an earlier run */
        return repeat_run(&trips->repeat);
}

static uint64_t check_trips(void *userdata) {
        const Trips *trips = userdata;

        return crc32_z(0, trips->echo.back, trips->size);
}

/* A bus has a size limit, and may disconnect a client that exceeds it. */
static bool bus_takes(Roundtrip *roundtrip, Trips *trips, size_t size) {
        int r;

        if (trips->echo.kind != &echo_bus)
                return true;
        r = trips->echo.kind->trip(&trips->echo, size);
        if (r >= 0)
                return true;
        report_note(roundtrip->report, "%s: left out from %zu bytes on, which this bus refuses: %s.",
                    trips->echo.kind->name, size, g_strerror(-r));
        trips->is_open = false;
        return false;
}

/* ---- What it cost ------------------------------------------------------------------------------------------------- */

static void fill_costs(ReportTable *table, const Trips *trips, const Findings *findings, const char *size) {
        const GArray *const parts[] = {
                findings->usec, findings->client_cpu_usec, findings->server_cpu_usec, findings->client_switches,
                findings->server_switches,
        };
        g_autofree char *name = g_strdup_printf("%s, %s", trips->echo.kind->name, size);

        report_table_row(table, name, false);
        for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
                g_autoptr(GArray) values = measure_ratios(parts[i], trips->repeat.counts);

                report_table_values(table, i, values);
        }
        report_table_value(table, G_N_ELEMENTS(parts), findings->client_peak_kib);
        report_table_value(table, G_N_ELEMENTS(parts) + 1, findings->server_peak_kib);
}

static ReportTable *new_costs(Report *report, const Round *round) {
        g_autofree char *id = g_strdup_printf("%s-costs", round->id),
                        *title = g_strdup_printf("What a round trip costs, %s", round->title);
        ReportTable *table = report_table(report, id, title, "way, bytes");

        (void) report_table_column(table, "time", "us");
        (void) report_table_column(table, "client's CPU", "us");
        (void) report_table_column(table, "server's CPU", "us");
        (void) report_table_column(table, "client's switches", "");
        (void) report_table_column(table, "server's switches", "");
        (void) report_table_column(table, "client's peak", "KiB");
        (void) report_table_column(table, "server's peak", "KiB");
        return table;
}

/* ---- All sizes ---------------------------------------------------------------------------------------------------- */

static bool is_cost_size(size_t size) {
        for (size_t i = 0; i < G_N_ELEMENTS(cost_sizes); i++)
                if (cost_sizes[i] == size)
                        return true;
        return false;
}

static char *size_name(size_t size) {
        return size < 1024 ? g_strdup_printf("%zu B", size)
                           : size < 1024 * 1024 ? g_strdup_printf("%zu KiB", size / 1024)
                                                : g_strdup_printf("%zu MiB", size / 1024 / 1024);
}

static void fill_row(const Round *round, unsigned k, Trips *trips, const Findings *findings, const char *name) {
        g_autoptr(GArray) rates = g_array_new(FALSE, FALSE, sizeof(double));

        repeat_drop_warm_up(&trips->repeat);
        for (guint i = 0; i < trips->repeat.usec->len; i++) {
                double rate = 1e6 / g_array_index(trips->repeat.usec, double, i);

                g_array_append_val(rates, rate);
        }
        report_table_values(round->table, round->columns[k], rates);
        report_chart_point(round->chart, round->series[k], (double) trips->size, rates);
        if (is_cost_size(trips->size))
                fill_costs(round->costs, trips, findings, name);
}

static int measure_size(Roundtrip *roundtrip, const Round *round, unsigned i) {
        size_t size = (size_t) 1 << i, n = 0;
        g_autofree char *name = size_name(size), *what = g_strdup_printf("%s, %s", round->title, name);
        Findings findings[N_ECHOS];
        Side sides[N_ECHOS];
        unsigned which[N_ECHOS];
        int r;

        for (unsigned k = 0; k < N_ECHOS; k++) {
                Trips *trips = &roundtrip->trips[k];

                if (!trips->is_open || !bus_takes(roundtrip, trips, size))
                        continue;
                trips->size = size;
                repeat_clear(&trips->repeat);
                which[n] = k;
                sides[n++] = (Side) {
                        .name = trips->echo.kind->name, .run = run_trips, .check = check_trips, .userdata = trips,
                        .server = trips->echo.server,
                };
        }
        r = measure_sides(sides, n, bench_rounds(roundtrip->options), what, findings);
        if (r < 0)
                return r;
        report_table_row(round->table, name, false);
        for (size_t k = 0; k < n; k++) {
                fill_row(round, which[k], &roundtrip->trips[which[k]], &findings[k], name);
                findings_done(&findings[k]);
        }
        fill_published(round, i);
        return 0;
}

static void add_forms(Roundtrip *roundtrip, Round *round) {
        g_autofree char *title = g_strdup_printf("Round trips per second, %s", round->title);
        bool with_published = round->placement == PLACEMENT_ONE_CPU;

        round->table = report_table(roundtrip->report, round->id, title, "payload");
        round->chart = report_chart(roundtrip->report, round->id, title, "bytes", "round trips per second",
                                    REPORT_LOG_X | REPORT_LOG_Y);
        round->costs = new_costs(roundtrip->report, round);
        for (unsigned k = 0; k < N_ECHOS; k++)
                if (roundtrip->trips[k].is_open) {
                        round->columns[k] = report_table_column(round->table, kinds[k]->name, "/s");
                        round->series[k] = report_chart_series(round->chart, kinds[k]->name, false);
                }
        for (unsigned k = 0; with_published && k < G_N_ELEMENTS(published_names); k++) {
                unsigned column = report_table_column(round->table, published_names[k], "/s");

                (void) report_chart_series(round->chart, published_names[k], true);
                if (k == 0)
                        round->published = column; /* columns and series have the same numbers */
        }
}

/* A bus is placed with its clients on one CPU, and free on two: it belongs to neither side. */
static int place(Roundtrip *roundtrip, Placement placement) {
        Placement bus_placement = placement == PLACEMENT_TWO_CPUS ? PLACEMENT_FREE : placement;
        int r = 0;

        for (unsigned k = 0; r >= 0 && k < N_ECHOS; k++) {
                const Echo *echo = &roundtrip->trips[k].echo;

                if (roundtrip->trips[k].is_open && echo->peer.bus_daemon > 0)
                        r = measure_place(bus_placement, echo->peer.bus_daemon);
        }
        for (unsigned k = 0; r >= 0 && k < N_ECHOS; k++)
                if (roundtrip->trips[k].is_open)
                        r = measure_place(placement, roundtrip->trips[k].echo.server);
        return r;
}

static int measure_placed(Roundtrip *roundtrip, Round *round) {
        int r;

        r = place(roundtrip, round->placement);
        if (r == -ENODEV || r == -EPERM) {
                report_note(roundtrip->report, "Not measured %s: %s.", round->title,
                            r == -ENODEV ? "there are not enough CPUs"
                                         : "bus or service belong to another user, who alone may place them");
                return 0;
        }
        if (r < 0)
                return r;
        add_forms(roundtrip, round);
        for (unsigned i = 0; r >= 0 && i < N_SIZES; i++)
                r = measure_size(roundtrip, round, i);
        return r;
}

/* ---- The ways ----------------------------------------------------------------------------------------------------- */

static int open_all(Roundtrip *roundtrip) {
        echo_bytes_init(&roundtrip->bytes);
        for (unsigned k = 0; k < N_ECHOS; k++) {
                Trips *trips = &roundtrip->trips[k];
                int r = echo_open(&trips->echo, kinds[k], &roundtrip->bytes, roundtrip->options);

                if (r < 0 && r != -EOPNOTSUPP) {
                        fprintf(stderr, "sqlipc-bench: %s: %s\n", kinds[k]->name, g_strerror(-r));
                        return r;
                }
                if (r < 0)
                        report_note(roundtrip->report, "%s: left out, %s.", kinds[k]->name, trips->echo.why);
                trips->is_open = r >= 0;
                repeat_init(&trips->repeat, kinds[k]->name, make_trip, trips,
                            (double) bench_amount(roundtrip->options, 1000, 15000, 100000));
        }
        return 0;
}

static int close_all(Roundtrip *roundtrip) {
        int result = 0;

        for (unsigned k = N_ECHOS; k-- > 0;) {
                Trips *trips = &roundtrip->trips[k];
                int r = echo_close(&trips->echo);

                if (r < 0) {
                        fprintf(stderr, "sqlipc-bench: the other side of %s did not end well.\n", kinds[k]->name);
                        result = r;
                }
                repeat_done(&trips->repeat);
        }
        echo_bytes_done(&roundtrip->bytes);
        return result;
}

static int measure(const BenchOptions *options, Report *report) {
        Roundtrip roundtrip = { .options = options, .report = report };
        Round rounds[] = {
                { .placement = PLACEMENT_ONE_CPU, .id = "one-cpu", .title = "both ends on one CPU" },
                { .placement = PLACEMENT_TWO_CPUS, .id = "two-cpus", .title = "each end on a CPU of its own" },
        };
        int r, q;

        r = open_all(&roundtrip);
        report_fact(report, "method", "each way makes trips for %.0f ms, a run; %d runs, in turn; blocking calls",
                    roundtrip.trips[0].repeat.loop_usec / 1000, bench_rounds(options));
        note_published(report);
        report_note(report, "The bus's own processor time is not in its server's. Peaks hold the payload, 4 MiB, and what "
                            "came back.");
        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(rounds); i++)
                r = measure_placed(&roundtrip, &rounds[i]);
        q = place(&roundtrip, PLACEMENT_FREE);
        if (q == -EPERM)
                q = 0; /* as it was said above */
        r = MIN(r, q);
        return MIN(close_all(&roundtrip), r);
}

const Workload workload_roundtrip = {
        .verb = "roundtrip",
        .help = "round trips per second by size: pipes, sockets, D-Bus, memfd, ours",
        .summary = "Measures round trips of 1 byte to 4 MiB to another process and back, on one CPU and on two: over\n"
                   "a pair of pipes, a socket pair, as sealed memory that is passed, as a D-Bus message straight and\n"
                   "through the bus, and as the parameter and only value of a query on a channel of the service.",
        .database = "point",
        .measure = measure,
        .in_report = true,
};
