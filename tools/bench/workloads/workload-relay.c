/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * relay: queries per second by queries per connection, including connect and disconnect, as SQL Relay's sqlr-bench showed
 * them in 2016: the cost for a program that sends a few queries and disconnects. The result has 256 rows of 16 strings of 32
 * bytes, and every value is copied.
 *
 * In a run, a side opens and closes connections until it has sent about as many queries as in every other run. Each query is
 * compiled again, as by a program that has just started.
 *
 * Another side is a bare bus connection, whose calls are answered at once and with nothing.
 * No service on that bus can be faster.
 */
#include <errno.h>
#include <stdio.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/database-server.h"
#include "tools/bench/core/library.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/bus-peer.h"
#include "tools/bench/workloads/workload.h"

#define RELAY_TABLE "relay"

enum { DIRECT, BY_ITSELF }; /* the first sides */
enum {
        ROUNDS = 10, /* samples, as in the original */
        SIDES_MAX = 5 + DATABASE_SERVERS_MAX,
        STEPS_MAX = 8,
};

static const unsigned queries_per_connection[STEPS_MAX] = { 1, 2, 3, 5, 10, 15, 20, 30 };

typedef struct RelaySide RelaySide;

/* Connects, asks `n_queries` times, copies each result over the previous one, and disconnects. */
typedef int (*RelayAsk)(RelaySide *side, unsigned n_queries);

struct RelaySide {
        const char *name;
        RelayAsk ask;
        const BenchOptions *options;
        sqlipc_transport transport;  /* of ours */
        DatabaseServerChoice server; /* of others */
        const BusPeer *peer;         /* answers the bare calls; not owned */
        char *sql;
        pid_t server_pid;
        /* of the run under way */
        unsigned n_connections, n_queries;
        Copy copy;          /* of the last result */
        uint64_t n_rows;    /* of all results */
};

typedef struct Relay {
        const BenchOptions *options;
        Service service;
        BusPeer peer;                /* zeroed: the bus lets no program call another one */
        RelaySide sides[SIDES_MAX];
        size_t n_sides;
        Findings found[STEPS_MAX][SIDES_MAX];
        size_t n_steps; /* that are measured */
} Relay;

/* ---- Sides -------------------------------------------------------------------------------------------------------- */

/* Empties the arena, so that the next result reuses its memory. */
static void forget_rows(RelaySide *side) {
        side->n_rows += side->copy.n_rows;
        if (side->copy.last)
                side->copy.last->used = sizeof(CopyChunk);
        side->copy.n_rows = side->copy.n_bytes = 0;
}

static int ask_in_process(RelaySide *side, unsigned n_queries) {
        __attribute__((cleanup(baseline_closep))) Baseline *baseline = NULL;
        int r = baseline_open(side->options->file, &baseline);

        for (unsigned i = 0; r >= 0 && i < n_queries; i++) {
                forget_rows(side);
                r = baseline_copy(baseline, side->sql, BASELINE_USUAL, &side->copy);
        }
        return r;
}

static int ask_ours(RelaySide *side, unsigned n_queries) {
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        int r = library_open(side->options, side->transport, &connection);

        for (unsigned i = 0; r >= 0 && i < n_queries; i++) {
                __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;

                forget_rows(side);
                r = sqlipc_query(connection, side->options->database, side->sql, &cursor, NULL);
                if (r >= 0)
                        r = library_copy_rows(cursor, &side->copy);
                if (r < 0)
                        library_failed(connection, r, side->sql);
        }
        return r;
}

static int ask_server(RelaySide *side, unsigned n_queries) {
        const DatabaseServer *server = side->server.server;
        ServerConnection *connection = NULL;
        int r = server->connect(&side->server, &connection);

        for (unsigned i = 0; r >= 0 && i < n_queries; i++) {
                forget_rows(side);
                r = server->copy(connection, side->sql, &side->copy);
        }
        server->close(connection);
        return r;
}

/* With a connection of its own, as any program has. */
static int ask_nothing(RelaySide *side, unsigned n_queries) {
        BusPeer visitor = { .name = side->peer->name };
        int r = bench_service_open_bus(side->options, &visitor.bus);

        for (unsigned i = 0; r >= 0 && i < n_queries; i++) {
                uint8_t byte = 0;

                r = bus_peer_echo(&visitor, &byte, sizeof byte, &byte);
        }
        sd_bus_flush_close_unref(visitor.bus);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: a bare call over the bus failed: %s\n", g_strerror(-r));
        return r;
}

static int run_side(void *userdata) {
        RelaySide *side = userdata;
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < side->n_connections; i++)
                r = side->ask(side, side->n_queries);
        return r;
}

/* Returns a hash of the total number of rows and the values of the last result. */
static uint64_t check_side(void *userdata) {
        RelaySide *side = userdata;
        uint64_t check = copy_hash(&side->copy);

        forget_rows(side);
        check = check * 31 + side->n_rows;
        side->n_rows = 0;
        copy_done(&side->copy);
        return check;
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

/* Returns how often a run connects. */
static unsigned connections_of(const Relay *relay, unsigned n_queries) {
        return MAX((unsigned) bench_amount(relay->options, 4, 60, 600) / n_queries, 1);
}

static int measure_step(Relay *relay, size_t step, unsigned n_queries) {
        g_autofree char *what = g_strdup_printf("%u queries per connection", n_queries);
        int n_rounds = relay->options->n_rounds ?: (int) bench_amount(relay->options, 1, ROUNDS, ROUNDS);
        Side sides[SIDES_MAX];

        for (size_t i = 0; i < relay->n_sides; i++) {
                RelaySide *side = &relay->sides[i];

                side->n_queries = n_queries;
                side->n_connections = connections_of(relay, n_queries);
                sides[i] = (Side) {
                        .name = side->name, .run = run_side, .check = side->peer ? NULL : check_side, .userdata = side,
                        .server = side->server_pid,
                };
        }
        return measure_sides(sides, relay->n_sides, n_rounds, what, relay->found[step]);
}

static int measure_steps(Relay *relay) {
        int r = 0;

        while (r >= 0 && relay->n_steps < STEPS_MAX) {
                r = measure_step(relay, relay->n_steps, queries_per_connection[relay->n_steps]);
                if (r >= 0)
                        relay->n_steps++;
        }
        return r;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

/* The rate that each sample comes to. */
static GArray *rates_of(const Relay *relay, size_t step, size_t side) {
        const GArray *usec = relay->found[step][side].usec;
        double n_asked = connections_of(relay, queries_per_connection[step]) * queries_per_connection[step];
        GArray *rates = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint i = 0; i < usec->len; i++) {
                double rate = n_asked / g_array_index(usec, double, i) * 1e6;

                g_array_append_val(rates, rate);
        }
        return rates;
}

static void add_columns(ReportTable *table) {
        for (size_t step = 0; step < STEPS_MAX; step++) {
                g_autofree char *name = g_strdup_printf("%u", queries_per_connection[step]);

                report_table_column(table, name, "");
        }
}

static void report_rates(const Relay *relay, Report *report) {
        ReportTable *table = report_table(report, "relay-rates", "Queries/s by queries per connection", "side");
        ReportChart *chart = report_chart(report, "relay", "Connect, query, disconnect", "queries per connection",
                                          "queries/s", REPORT_LINEAR);

        add_columns(table);
        for (size_t i = 0; i < relay->n_sides; i++) {
                unsigned series = report_chart_series(chart, relay->sides[i].name, false);

                report_table_row(table, relay->sides[i].name, false);
                for (size_t step = 0; step < STEPS_MAX; step++) {
                        g_autoptr(GArray) rates = rates_of(relay, step, i);

                        report_table_values(table, (unsigned) step, rates);
                        report_chart_point(chart, series, queries_per_connection[step], rates);
                }
        }
}

static void report_published(ReportTable *table) {
        static const struct {
                const char *name;
                double ratios[STEPS_MAX]; /* 0: not told */
        } published[] = {
                { "PostgreSQL, a machine of this class", { [0] = 0.10, [3] = 0.23, [4] = 0.30, [7] = 0.38 } },
                { "MariaDB, a machine of this class", { [0] = 0.48, [3] = 0.51, [4] = 0.51, [7] = 0.51 } },
                { "SQL Relay, a machine of this class", { [0] = 0.18 } },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(published); i++) {
                report_table_row(table, published[i].name, true);
                for (unsigned step = 0; step < STEPS_MAX; step++)
                        if (published[i].ratios[step] > 0)
                                report_table_value(table, step, published[i].ratios[step]);
        }
}

static void report_ratios(const Relay *relay, Report *report) {
        ReportTable *table = report_table(report, "relay-ratios", "Queries/s as ratio to direct SQLite's, by queries per"
                                                                  " connection", "side");

        add_columns(table);
        for (size_t i = 1; i < relay->n_sides; i++) {
                report_table_row(table, relay->sides[i].name, false);
                for (size_t step = 0; step < STEPS_MAX; step++) {
                        g_autoptr(GArray) ratios = measure_ratios(relay->found[step][0].usec, relay->found[step][i].usec);

                        report_table_values(table, (unsigned) step, ratios);
                }
        }
        report_published(table);
}

static void verdict_of(const Relay *relay, size_t step, size_t rival, Report *report) {
        unsigned n = queries_per_connection[step];
        g_autofree char *task = g_strdup_printf("Connect, ask %u time%s, disconnect", n, n == 1 ? "" : "s");
        g_autoptr(GArray) ratios = measure_ratios(relay->found[step][BY_ITSELF].usec, relay->found[step][rival].usec);

        report_verdict(report, task, relay->sides[rival].name, ratios);
}

/* Beside direct SQLite and the database servers, for the fewest and the most queries of a connection. */
static void report_verdicts(const Relay *relay, Report *report) {
        static const size_t steps[] = { 0, STEPS_MAX - 1 };

        for (size_t i = 0; i < G_N_ELEMENTS(steps); i++)
                for (size_t side = 0; side < relay->n_sides; side++)
                        if (relay->sides[side].ask != ask_ours && !relay->sides[side].peer)
                                verdict_of(relay, steps[i], side, report);
}

/* Beside a connection to the same server. */
static void report_by_service(const Relay *relay, Report *report) {
        for (size_t i = 1; i < relay->n_sides; i++) {
                g_autoptr(GArray) ratios = NULL;

                if (!relay->sides[i].server.server || !relay->sides[i].server.server->by_service)
                        continue;
                ratios = measure_ratios(relay->found[0][i - 1].usec, relay->found[0][i].usec);
                report_figure(report, "PostgreSQL by sqlipc, queries/s / PostgreSQL, 1 query per connection", "", ratios);
        }
}

static void report_all(const Relay *relay, Report *report) {
        service_facts_add(report, &relay->service, relay->options);
        report_fact(report, "method", "warm cache; %u samples of about %u queries each, connect and disconnect in them",
                    relay->found[0][0].usec->len, connections_of(relay, 1));
        report_verdicts(relay, report);
        report_by_service(relay, report);
        report_rates(relay, report);
        report_ratios(relay, report);
        report_note(report, "Direct SQLite opens the file, compiles, runs and closes. Ours opens a bus connection each time."
                            " The original fetched 10 rows at a time: here rows of ours and of MariaDB come as they are"
                            " read, and those of PostgreSQL in one result, which is faster than one by one.");
        if (relay->peer.bus)
                report_note(report, "The bare bus connection calls a program that answers at once, through the same bus"
                                    " daemon: the limit of any service on that bus.");
        if (!library_service_has_channels((Service *) &relay->service))
                report_note(report, "The service offers no channels: what asks through one is left out.");
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static RelaySide *add_side(Relay *relay, const char *name, RelayAsk ask, const char *table) {
        RelaySide *side = &relay->sides[relay->n_sides++];

        *side = (RelaySide) { .name = name, .ask = ask, .options = relay->options };
        side->sql = g_strconcat("SELECT * FROM ", table, NULL);
        return side;
}

static void add_ours(Relay *relay, const char *name, sqlipc_transport transport) {
        RelaySide *side = add_side(relay, name, ask_ours, RELAY_TABLE);

        side->transport = transport;
        side->server_pid = relay->service.pid;
}

static int add_server(Relay *relay, const DatabaseServerChoice *choice) {
        g_autofree char *table = database_server_table(RELAY_TABLE);
        RelaySide *side = add_side(relay, choice->server->name, ask_server, table);

        side->server = *choice;
        return database_server_load(choice, relay->options->file, RELAY_TABLE);
}

static int measure_and_report(Relay *relay, const DatabaseServerChoice *servers, int n_servers, Report *report) {
        int r = 0;

        add_side(relay, "direct SQLite", ask_in_process, RELAY_TABLE);
        add_ours(relay, "ours, by itself", SQLIPC_TRANSPORT_AUTO);
        add_ours(relay, "ours over the bus", SQLIPC_TRANSPORT_PIPE);
        if (library_service_has_channels(&relay->service))
                add_ours(relay, "ours over a channel", SQLIPC_TRANSPORT_CHANNEL);
        if (relay->peer.bus)
                add_side(relay, "bare bus connection", ask_nothing, RELAY_TABLE)->peer = &relay->peer;
        for (int i = 0; r >= 0 && i < n_servers; i++)
                r = add_server(relay, &servers[i]);
        if (r >= 0)
                r = measure_steps(relay);
        if (r >= 0)
                report_all(relay, report);

        for (size_t step = 0; step < relay->n_steps; step++)
                for (size_t i = 0; i < relay->n_sides; i++)
                        findings_done(&relay->found[step][i]);
        for (size_t i = 0; i < relay->n_sides; i++)
                g_free(relay->sides[i].sql);
        return r;
}

/* The peer is left out if the bus does not let it be called, as the system bus does not. It is a process, so it starts
 * before there is a connection that it would inherit. */
static int start_peer(const BenchOptions *options, BusPeer *peer) {
        uint8_t byte = 0;
        int r = bus_peer_start_on_bus(options, peer);

        if (r < 0)
                return r;
        r = bus_peer_echo(peer, &byte, sizeof byte, &byte);
        if (r < 0)
                (void) bus_peer_stop(peer);
        return r == -EACCES || r == -EPERM ? 0 : r;
}

static int measure(const BenchOptions *options, Report *report) {
        Relay relay = { .options = options };
        DatabaseServerChoice servers[DATABASE_SERVERS_MAX];
        int n_servers = database_servers_get(options, servers);
        int r = n_servers;

        if (r >= 0) {
                r = start_peer(options, &relay.peer);
                if (r < 0)
                        fprintf(stderr, "sqlipc-bench: cannot call a program over the bus: %s\n", g_strerror(-r));
        }
        if (r >= 0)
                r = bench_service_open(options, &relay.service);
        if (r < 0) {
                (void) bus_peer_stop(&relay.peer);
                return r;
        }
        r = measure_and_report(&relay, servers, n_servers, report);
        for (int i = 0; i < n_servers; i++)
                database_server_drop(&servers[i], RELAY_TABLE);
        bench_service_close(&relay.service);
        return MIN(r, bus_peer_stop(&relay.peer));
}

const Workload workload_relay = {
        .verb = "relay",
        .help = "queries per second against queries per connection",
        .summary = "Connects, asks 1 to 30 times for 256 rows of 16 strings of 32 bytes, disconnects: direct SQLite (open,\n"
                   "prepare, run, close), ours over the bus and over a channel, PostgreSQL and MariaDB where\n"
                   "--postgres or --mariadb name one, and bare calls over the bus. All values are copied.",
        .database = RELAY_TABLE,
        .servers = true,
        .measure = measure,
        .in_report = true,
};
