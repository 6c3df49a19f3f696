/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * small: point queries in each way to ask for a row, from one client and from eight concurrent ones, with free placement and
 * with client and server on one CPU. The same run measures the bare round trips that are their yardsticks.
 *
 * Every client is a process (clients.h). A separate table shows the goals of sqlipc: bound, measured, held.
 */
#include <errno.h>
#include <stdio.h>

#include "tools/bench/core/library.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/point.h"
#include "tools/bench/workloads/workload.h"

typedef enum Way {
        WAY_IN_PROCESS,
        WAY_CHANNEL,
        WAY_PIPELINED,
        WAY_BUS_FETCH,
        WAY_BUS_QUERY,
        WAY_MESSAGES,
        WAY_SERVERS, /* as many as the command line names */
        WAY_SOCKET_PAIR = WAY_SERVERS + DATABASE_SERVERS_MAX,
        WAY_WAKE_UP,
        WAY_FD_CALL,
        _WAY_MAX
} Way;

static const struct Setting {
        const char *id, *title, *suffix;
        unsigned n_clients;
        Placement placement;
} settings[] = {
        { "small-one", "Point queries, one client, placed by the kernel", "", 1, PLACEMENT_FREE },
        { "small-one-cpu", "Point queries, one client, it and its server on one CPU", ", one CPU", 1, PLACEMENT_ONE_CPU },
        { "small-eight", "Point queries, eight clients at once", ", 8 clients", 8, PLACEMENT_FREE },
};
enum { ONE, ONE_CPU, EIGHT, N_SETTINGS };

/* The results of a way in a setting; one element per round unless noted. */
typedef struct WayFindings {
        GArray *per_second, *p50, *p99;
        GArray *client_cpu, *server_cpu, *switches; /* per answer */
        GArray *usec;                               /* each answer of all rounds */
} WayFindings;

typedef struct Small {
        const BenchOptions *options;
        Service service;
        int64_t n_keys;
        Point point, server_points[DATABASE_SERVERS_MAX];
        ClientKind kinds[_WAY_MAX]; /* without a name: not available */
        WayFindings found[N_SETTINGS][_WAY_MAX];
        bool has_channels;
} Small;

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

/* Returns the number of answers, such that all ways take about the same time. */
static unsigned answers_of(const Small *small, Way way, unsigned n_clients) {
        bool is_slow = way == WAY_BUS_FETCH || way == WAY_BUS_QUERY || way == WAY_MESSAGES || way == WAY_FD_CALL;
        int64_t n = is_slow ? bench_amount(small->options, 40, 1000, 20000)
                            : bench_amount(small->options, 200, 8000, 160000);

        return (unsigned) n / n_clients;
}

static bool is_measured(const Small *small, Way way, unsigned setting) {
        bool alone = way == WAY_WAKE_UP || way == WAY_FD_CALL; /* yardsticks of one client */

        return small->kinds[way].name && !(alone && settings[setting].n_clients > 1);
}

static void append(GArray *values, double value) {
        g_array_append_val(values, value);
}

static void keep(WayFindings *found, const ClientsFindings *findings) {
        double n = findings->usec->len;

        append(found->per_second, findings->per_second);
        append(found->p50, report_quantile(findings->usec, 0.5));
        append(found->p99, report_quantile(findings->usec, 0.99));
        append(found->client_cpu, findings->client_cpu_usec / n);
        append(found->server_cpu, findings->server_cpu_usec / n);
        append(found->switches, findings->client_switches / n);
        g_array_append_vals(found->usec, findings->usec->data, findings->usec->len);
}

/* `expected`: the check of SQLite in process, which runs first, for the same keys; 0 before that. */
static int measure_way(Small *small, Way way, unsigned setting, uint64_t *expected) {
        unsigned n_clients = settings[setting].n_clients;
        const ClientKind *kind = &small->kinds[way];
        ClientsFindings findings;
        int r;

        r = clients_run(kind, n_clients, answers_of(small, way, n_clients), small->n_keys, settings[setting].placement,
                        &findings);
        if (r < 0)
                return r;
        if (way == WAY_IN_PROCESS && *expected == 0)
                *expected = findings.check;
        if (kind->answers_rows && findings.check != *expected) {
                fprintf(stderr, "sqlipc-bench: %s answers something else than in process. Is it the same file?\n",
                        kind->name);
                r = -EBADMSG;
        } else
                keep(&small->found[setting][way], &findings);
        clients_findings_done(&findings);
        return r;
}

/* Measures all ways in turn, every other round backwards. */
static int measure_setting(Small *small, unsigned setting) {
        unsigned n_rounds = (unsigned) bench_rounds(small->options);
        uint64_t expected = 0;
        int r = 0;

        for (unsigned round = 0; r >= 0 && round < n_rounds; round++)
                for (unsigned i = 0; r >= 0 && i < _WAY_MAX; i++) {
                        Way way = (Way) (round % 2 == 0 ? i : _WAY_MAX - 1 - i);

                        measure_progress(settings[setting].id, round * _WAY_MAX + i, n_rounds * _WAY_MAX);
                        if (is_measured(small, way, setting))
                                r = measure_way(small, way, setting, &expected);
                }
        measure_progress(settings[setting].id, 1, 1);
        return r;
}

/* ---- What ours is held to ----------------------------------------------------------------------------------------- */

/* Returns the median of a figure; 0 if it was not measured. */
static double middle(const GArray *values) {
        return values->len > 0 ? report_median(values) : 0;
}

static double p50(const Small *small, unsigned setting, Way way) {
        return middle(small->found[setting][way].p50);
}

static double rate(const Small *small, unsigned setting, Way way) {
        return middle(small->found[setting][way].per_second);
}

/* Adds a row for a goal, unless it was not measured. */
static void bound_row(ReportTable *table, const char *name, double bound, double measured, bool is_most) {
        if (bound <= 0 || measured <= 0)
                return;
        report_table_row(table, name, false);
        report_table_text(table, 0, "%s", is_most ? "at most" : "at least");
        report_table_value(table, 1, bound);
        report_table_value(table, 2, measured);
        report_table_text(table, 3, "%s", (is_most ? measured <= bound : measured >= bound) ? "yes" : "no");
}

/* Returns the sum; 0 (not known) if one of the parts is not known. */
static double sum_of_known(double a, double b) {
        return a > 0 && b > 0 ? a + b : 0;
}

static void report_relative_bounds(const Small *small, ReportTable *table) {
        for (unsigned setting = ONE; setting <= ONE_CPU; setting++) {
                const char *where = settings[setting].suffix;
                g_autofree char *trips = g_strdup_printf("channel%s, p50, us: 3 bare round trips + in process", where);
                g_autofree char *bus = g_strdup_printf("channel%s, queries/s: 5 times over the bus", where);
                g_autofree char *call = g_strdup_printf("Query over the bus%s, p50, us: empty call with a descriptor"
                                                        " + 2 wake-ups + 30", where);
                double wake_ups = 2 * p50(small, setting, WAY_WAKE_UP) + 30;

                bound_row(table, trips, sum_of_known(3 * p50(small, setting, WAY_SOCKET_PAIR),
                                                     p50(small, setting, WAY_IN_PROCESS)),
                          p50(small, setting, WAY_CHANNEL), true);
                bound_row(table, bus, 5 * rate(small, setting, WAY_BUS_FETCH), rate(small, setting, WAY_CHANNEL), false);
                bound_row(table, call, sum_of_known(p50(small, setting, WAY_FD_CALL), wake_ups),
                          p50(small, setting, WAY_BUS_QUERY), true);
        }
        for (unsigned setting = 0; setting < N_SETTINGS; setting++)
                for (unsigned i = 0; i < DATABASE_SERVERS_MAX; i++) {
                        const char *server = small->kinds[WAY_SERVERS + i].name;
                        bool by_service = server && small->server_points[i].server.server->by_service;
                        Way ours = by_service ? (Way) (WAY_SERVERS + i) : WAY_CHANNEL;
                        Way theirs = (Way) (by_service ? WAY_SERVERS + i - 1 : WAY_SERVERS + i);
                        g_autofree char *name = g_strdup_printf("%s%s, queries/s: %s", small->kinds[ours].name ?: "",
                                                                settings[setting].suffix, small->kinds[theirs].name ?: "");

                        bound_row(table, name, rate(small, setting, theirs), rate(small, setting, ours), false);
                }
}

static void report_bounds(const Small *small, Report *report) {
        ReportTable *table = report_table(report, "small-bounds", "What the small-query path is held to", "figure: bound");

        report_table_column(table, "is to be", "");
        report_table_column(table, "bound", "");
        report_table_column(table, "measured", "");
        report_table_column(table, "held", "");
        report_relative_bounds(small, table);
        bound_row(table, "channel, one CPU, p50, us: aim", 12, p50(small, ONE_CPU, WAY_CHANNEL), true);
        bound_row(table, "channel, one CPU, queries/s: aim", 80000, rate(small, ONE_CPU, WAY_CHANNEL), false);
        bound_row(table, "channel, p50, us: aim", 15, p50(small, ONE, WAY_CHANNEL), true);
        bound_row(table, "channel, 8 clients, queries/s: aim", 85000, rate(small, EIGHT, WAY_CHANNEL), false);
        bound_row(table, "channel, 8 clients, queries/s: stretch", 110000, rate(small, EIGHT, WAY_CHANNEL), false);
        bound_row(table, "channel, 32 in flight, queries/s: aim", 150000, rate(small, ONE, WAY_PIPELINED), false);
        report_note(report, "Bounds and measured figures are medians of the rounds, and relative ones from this very run."
                            " Aims are for a virtual machine of two CPUs.");
}

/* The time for a query is the inverse of the rate, so the rival's rate is on top. */
static void verdict_of(const Small *small, unsigned setting, Way rival, Report *report) {
        const GArray *ours = small->found[setting][WAY_CHANNEL].per_second;
        const GArray *theirs = small->found[setting][rival].per_second;
        g_autofree char *task = g_strdup_printf("Point queries%s", settings[setting].suffix);
        g_autoptr(GArray) ratios = NULL;

        if (!small->has_channels || !is_measured(small, rival, setting))
                return;
        ratios = measure_ratios(theirs, ours);
        report_verdict(report, task, small->kinds[rival].name, ratios);
}

static void report_verdicts(const Small *small, Report *report) {
        static const unsigned chosen[] = { ONE, EIGHT };

        for (size_t i = 0; i < G_N_ELEMENTS(chosen); i++) {
                verdict_of(small, chosen[i], WAY_IN_PROCESS, report);
                verdict_of(small, chosen[i], WAY_MESSAGES, report);
                for (Way way = WAY_SERVERS; way < WAY_SERVERS + DATABASE_SERVERS_MAX; way++)
                        verdict_of(small, chosen[i], way, report);
        }
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

enum { COLUMN_RATE, COLUMN_P50, COLUMN_P99, COLUMN_P999, COLUMN_CPU, COLUMN_SWITCHES = COLUMN_CPU + 4 };

static void add_columns(ReportTable *table) {
        report_table_column(table, "queries/s", "");
        report_table_column(table, "p50", "us");
        report_table_column(table, "p99", "us");
        report_table_column(table, "p99.9", "us");
        (void) comparison_cpu_columns(table, "us/query", "in process");
        report_table_column(table, "client switches", "per query");
}

static void report_way(const Small *small, Way way, unsigned setting, ReportTable *table) {
        const WayFindings *found = &small->found[setting][way];

        report_table_row(table, small->kinds[way].name, false);
        report_table_values(table, COLUMN_RATE, found->per_second);
        report_table_values(table, COLUMN_P50, found->p50);
        report_table_values(table, COLUMN_P99, found->p99);
        report_table_value(table, COLUMN_P999, report_quantile(found->usec, 0.999));
        if (way == WAY_IN_PROCESS || small->kinds[way].servers[0] != 0)
                comparison_cpu_values(table, COLUMN_CPU, found->client_cpu, way == WAY_IN_PROCESS ? NULL : found->server_cpu,
                                      small->found[setting][WAY_IN_PROCESS].client_cpu);
        else /* what serves it is unknown */
                report_table_values(table, COLUMN_CPU, found->client_cpu);
        report_table_values(table, COLUMN_SWITCHES, found->switches);
}

/* Adds figures that others measured, or earlier ones, on a machine of this class. */
static void report_published(unsigned setting, ReportTable *table) {
        static const struct {
                unsigned setting;
                const char *name;
                double per_second, p50; /* 0: not told */
        } published[] = {
                { ONE, "PostgreSQL, prepared, a machine of this class", 0, 94 },
                { ONE_CPU, "PostgreSQL, prepared, a machine of this class", 0, 13 },
                { ONE_CPU, "prototype of a channel, a machine of this class", 87000, 11 },
                { EIGHT, "in process, a machine of this class", 288000, 0 },
                { EIGHT, "PostgreSQL, prepared, a machine of this class", 89000, 0 },
                { EIGHT, "MariaDB, a machine of this class", 70000, 0 },
                { EIGHT, "D-Bus messages, a machine of this class", 37000, 0 },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(published); i++) {
                if (published[i].setting != setting)
                        continue;
                report_table_row(table, published[i].name, true);
                if (published[i].per_second > 0)
                        report_table_value(table, COLUMN_RATE, published[i].per_second);
                if (published[i].p50 > 0)
                        report_table_value(table, COLUMN_P50, published[i].p50);
        }
}

static void report_setting(const Small *small, unsigned setting, Report *report) {
        ReportTable *table = report_table(report, settings[setting].id, settings[setting].title, "way");

        add_columns(table);
        for (Way way = 0; way < _WAY_MAX; way++)
                if (is_measured(small, way, setting))
                        report_way(small, way, setting, table);
        report_published(setting, table);
}

static void report_rates(const Small *small, Report *report) {
        ReportChart *chart = report_chart(report, "small-rates", "Point queries", "", "queries/s", REPORT_BARS);

        for (unsigned setting = 0; setting < N_SETTINGS; setting++) {
                unsigned series = report_chart_series(chart, settings[setting].title, false);

                for (Way way = 0; way < WAY_SOCKET_PAIR; way++)
                        if (is_measured(small, way, setting))
                                report_chart_bar(chart, series, small->kinds[way].name, rate(small, setting, way));
        }
}

static void report_all(const Small *small, Report *report) {
        service_facts_add(report, &small->service, small->options);
        report_fact(report, "rows", "%" G_GINT64_FORMAT ", asked for by INTEGER PRIMARY KEY, all columns copied; warm cache",
                    small->n_keys);
        report_fact(report, "method", "each client a process, connected and warmed up before the clock; %d rounds of all"
                                      " ways, every other backwards", bench_rounds(small->options));
        report_verdicts(small, report);
        for (unsigned setting = 0; setting < N_SETTINGS; setting++)
                report_setting(small, setting, report);
        report_bounds(small, report);
        report_rates(small, report);
        report_note(report, "A bare socket pair moves %d bytes there and %d back between two processes, as a point query on"
                            " a channel does; a wake-up is half a round trip of one byte. Times with 32 in flight count"
                            " from the request, which waits for those before it.", POINT_REQUEST_SIZE, POINT_ANSWER_SIZE);
        report_note(report, "Server CPU is that of the service with its workers, or of the database server with its"
                            " processes; over the bus, the bus daemon's is in it, too.");
        if (!small->has_channels)
                report_note(report, "The service offers no channels: what asks through one is left out.");
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static void name_ways(Small *small) {
        small->point = (Point) { .options = small->options };
        small->kinds[WAY_IN_PROCESS] = point_in_process(&small->point);
        small->kinds[WAY_BUS_FETCH] = point_bus_fetch(&small->point);
        small->kinds[WAY_BUS_QUERY] = point_bus_query(&small->point);
        small->kinds[WAY_MESSAGES] = point_messages(&small->point);
        small->kinds[WAY_SOCKET_PAIR] = yardstick_socket_pair(&small->point);
        small->kinds[WAY_WAKE_UP] = yardstick_wake_up(&small->point);
        small->kinds[WAY_FD_CALL] = yardstick_fd_call(&small->point);
        for (Way way = WAY_BUS_FETCH; way <= WAY_MESSAGES; way++) {
                small->kinds[way].servers[0] = small->service.pid;
                small->kinds[way].servers[1] = library_bus_pid(&small->service);
        }
        small->kinds[WAY_FD_CALL].servers[0] = library_bus_pid(&small->service);

        small->has_channels = library_service_has_channels(&small->service);
        if (!small->has_channels)
                return;
        small->kinds[WAY_CHANNEL] = point_channel(&small->point);
        small->kinds[WAY_PIPELINED] = point_pipelined(&small->point);
        small->kinds[WAY_CHANNEL].servers[0] = small->kinds[WAY_PIPELINED].servers[0] = small->service.pid;
}

static int name_server(Small *small, unsigned i, const DatabaseServerChoice *choice) {
        Point *point = &small->server_points[i];
        ServerConnection *connection;
        int r;

        *point = (Point) { .options = small->options, .server = *choice };
        r = database_server_load(choice, small->options->file, POINT_TABLE);
        if (r < 0)
                return r;
        small->kinds[WAY_SERVERS + i] = point_server(point);
        r = choice->server->connect(choice, &connection);
        if (r < 0)
                return r;
        small->kinds[WAY_SERVERS + i].servers[0] = choice->server->get_pid(connection);
        if (choice->server->by_service) {
                small->kinds[WAY_SERVERS + i].servers[0] = small->service.pid;
                small->kinds[WAY_SERVERS + i].servers[1] = small->kinds[WAY_SERVERS + i - 1].servers[0];
        }
        choice->server->close(connection);
        return 0;
}

static int measure_all(Small *small, Report *report) {
        DatabaseServerChoice servers[DATABASE_SERVERS_MAX];
        int n_servers, r;

        r = n_servers = database_servers_get(small->options, servers);
        if (r >= 0)
                name_ways(small);
        for (int i = 0; r >= 0 && i < n_servers; i++)
                r = name_server(small, (unsigned) i, &servers[i]);
        for (unsigned setting = 0; r >= 0 && setting < N_SETTINGS; setting++)
                r = measure_setting(small, setting);
        if (r >= 0)
                report_all(small, report);
        for (int i = 0; i < n_servers; i++)
                database_server_drop(&servers[i], POINT_TABLE);
        return r;
}

static void way_findings_init(WayFindings *found) {
        GArray **arrays[] = { &found->per_second, &found->p50, &found->p99, &found->client_cpu, &found->server_cpu,
                              &found->switches, &found->usec };

        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                *arrays[i] = g_array_new(FALSE, FALSE, sizeof(double));
}

static void way_findings_done(WayFindings *found) {
        GArray *arrays[] = { found->per_second, found->p50, found->p99, found->client_cpu, found->server_cpu,
                             found->switches, found->usec };

        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                g_array_unref(arrays[i]);
}

static int measure(const BenchOptions *options, Report *report) {
        g_autofree Small *small = g_new0(Small, 1);
        int r;

        small->options = options;
        r = point_count_keys(options->file, &small->n_keys);
        if (r >= 0)
                r = bench_service_open(options, &small->service);
        if (r < 0)
                return r;
        for (unsigned setting = 0; setting < N_SETTINGS; setting++)
                for (Way way = 0; way < _WAY_MAX; way++)
                        way_findings_init(&small->found[setting][way]);
        r = measure_all(small, report);
        for (unsigned setting = 0; setting < N_SETTINGS; setting++)
                for (Way way = 0; way < _WAY_MAX; way++)
                        way_findings_done(&small->found[setting][way]);
        bench_service_close(&small->service);
        return r;
}

const Workload workload_small = {
        .verb = "small",
        .help = "point queries, from one client and from eight at once",
        .summary = "Point queries by INTEGER PRIMARY KEY, all columns copied: in process, over the bus (prepared, and in\n"
                   "one call), on a channel (waiting for each answer, and with 32 in flight), as values in D-Bus\n"
                   "messages, and of PostgreSQL and MariaDB where --postgres or --mariadb name one. Beside them bare\n"
                   "round trips.",
        .database = POINT_TABLE,
        .servers = true,
        .measure = measure,
        .in_report = true,
};
