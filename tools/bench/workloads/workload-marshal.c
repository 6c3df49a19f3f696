/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marshal: GetInteger(N) -> ai, as D-Bus was measured on an embedded board in 2009: through the bus, peer to peer, and with
 * the integers in a pipe that is passed. The parts that need no sending are also measured alone, to show where the time
 * goes. All run on one CPU, as that board had only one, and a wake-up across CPUs costs as much as the differences here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/core/repeat.h"
#include "tools/bench/workloads/bus-peer.h"
#include "tools/bench/workloads/marshal-hops.h"
#include "tools/bench/workloads/marshal-parts.h"
#include "tools/bench/workloads/workload.h"

static const int32_t numbers[] = { 1, 10, 100, 1000, 10000, 100000 };

enum { N_NUMBERS = G_N_ELEMENTS(numbers) };

typedef struct Marshal {
        const BenchOptions *options;
        Report *report;
        BusPeer bus, direct;
        int32_t *integers, *copied;
        int32_t n;
        MarshalParts parts;
} Marshal;

/* ---- Ways --------------------------------------------------------------------------------------------------------- */

static int call_through_bus(void *userdata) {
        Marshal *marshal = userdata;

        return bus_peer_get_integers(&marshal->bus, marshal->n, false, marshal->copied);
}

static int call_direct(void *userdata) {
        Marshal *marshal = userdata;

        return bus_peer_get_integers(&marshal->direct, marshal->n, false, marshal->copied);
}

static int pipe_through_bus(void *userdata) {
        Marshal *marshal = userdata;

        return bus_peer_get_integers(&marshal->bus, marshal->n, true, marshal->copied);
}

static int pipe_direct(void *userdata) {
        Marshal *marshal = userdata;

        return bus_peer_get_integers(&marshal->direct, marshal->n, true, marshal->copied);
}

static int text_through_bus(void *userdata) {
        Marshal *marshal = userdata;

        return bus_peer_get_text(&marshal->bus, marshal->n, marshal->copied);
}

static int text_direct(void *userdata) {
        Marshal *marshal = userdata;

        return bus_peer_get_text(&marshal->direct, marshal->n, marshal->copied);
}

enum {
        BY_BUS, DIRECT, PIPE_BY_BUS, PIPE_DIRECT, TEXT_BY_BUS, TEXT_DIRECT, /* calls */
        N_CALLS,
        MAKE = N_CALLS, MAKE_EACH, TAKE, TAKE_EACH, MAKE_GDBUS, TAKE_GDBUS, /* parts */
        N_WAYS,
};

typedef struct Kind {
        const char *name;
        int (*once)(void *userdata);
        /* A part: works on MarshalParts. `take`, after the clock: copies what was made. */
        bool is_part, needs_bus, is_text;
        int (*take)(void *userdata);
} Kind;

static const Kind kinds[N_WAYS] = {
        [BY_BUS] = { .name = "through the bus", .once = call_through_bus, .needs_bus = true },
        [DIRECT] = { .name = "peer to peer", .once = call_direct },
        [PIPE_BY_BUS] = { .name = "pipe passed through the bus", .once = pipe_through_bus, .needs_bus = true },
        [PIPE_DIRECT] = { .name = "pipe passed peer to peer", .once = pipe_direct },
        [TEXT_BY_BUS] = { .name = "as much text, through the bus", .once = text_through_bus, .needs_bus = true,
                          .is_text = true },
        [TEXT_DIRECT] = { .name = "as much text, peer to peer", .once = text_direct, .is_text = true },
        [MAKE] = { .name = "marshal", .once = marshal_array, .is_part = true, .take = unmarshal_array },
        [MAKE_EACH] = { .name = "marshal one by one", .once = marshal_each, .is_part = true, .take = unmarshal_array },
        [TAKE] = { .name = "unmarshal", .once = unmarshal_array, .is_part = true },
        [TAKE_EACH] = { .name = "unmarshal one by one", .once = unmarshal_each, .is_part = true },
        [MAKE_GDBUS] = { .name = "marshal, GDBus", .once = marshal_gdbus, .is_part = true, .take = unmarshal_gdbus },
        [TAKE_GDBUS] = { .name = "unmarshal, GDBus", .once = unmarshal_gdbus, .is_part = true },
};

typedef struct Way {
        Marshal *marshal;
        const Kind *kind;
        Repeat repeat;
} Way;

static int run_way(void *userdata) {
        Way *way = userdata;

        memset(way->marshal->copied, 0, (size_t) way->marshal->n * sizeof(int32_t)); /* of an earlier run */
        return repeat_run(&way->repeat);
}

/* What is copied, or 0. Text that is as it should be counts as the integers, so that all are equal. */
static uint64_t check_way(void *userdata) {
        Way *way = userdata;
        Marshal *marshal = way->marshal;
        size_t size = (size_t) marshal->n * sizeof *marshal->copied;
        const int32_t *integers = way->kind->is_text ? marshal->integers : marshal->copied;

        if (way->kind->take && way->kind->take(&marshal->parts) < 0)
                return 0;
        for (size_t i = 0; way->kind->is_text && i < size; i++)
                if (((const char *) marshal->copied)[i] != BUS_PEER_LETTER)
                        return 0;
        return crc32_z(0, (const void *) integers, size) + UINT64_C(1);
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

typedef struct Forms {
        ReportTable *calls, *parts, *where;
        ReportChart *chart;
        unsigned columns[N_WAYS], series[N_CALLS];
        double fixed_routing; /* the cost that the bus adds to a call for one integer */
} Forms;

static bool is_there(const Marshal *marshal, const Kind *kind) {
        return !kind->needs_bus || marshal->bus.bus;
}

static ReportTable *table_of(const Forms *forms, unsigned way) {
        return way < N_CALLS ? forms->calls : forms->parts;
}

static void add_forms(const Marshal *marshal, Forms *forms) {
        static const char *const shares[] = {
                "call", "marshalling", "unmarshalling", "each of two hops", "bus: routing, each way", "bus: the integers",
                "bus: checking, were it text"
        };

        forms->calls = report_table(marshal->report, "calls", "GetInteger(N), both ends and the bus on one CPU", "N");
        forms->parts = report_table(marshal->report, "parts", "The message alone, without sending it", "N");
        forms->chart = report_chart(marshal->report, "calls", "GetInteger(N)", "integers", "microseconds a call",
                                    REPORT_LOG_X | REPORT_LOG_Y);
        for (unsigned i = 0; i < N_WAYS; i++)
                if (is_there(marshal, &kinds[i]))
                        forms->columns[i] = report_table_column(table_of(forms, i), kinds[i].name, "us");
        for (unsigned i = 0; i < N_CALLS; i++)
                if (is_there(marshal, &kinds[i]))
                        forms->series[i] = report_chart_series(forms->chart, kinds[i].name, false);
        if (!marshal->bus.bus)
                return;
        forms->where = report_table(marshal->report, "where", "Where the time of a call through the bus goes", "N");
        for (unsigned i = 0; i < G_N_ELEMENTS(shares); i++)
                (void) report_table_column(forms->where, shares[i], "us");
}

/* Differences of medians; the notes say which. */
static void fill_where(Forms *forms, const Way ways[N_WAYS], const char *name, bool is_first) {
        double by_bus = report_median(ways[BY_BUS].repeat.usec), direct = report_median(ways[DIRECT].repeat.usec);
        double make = report_median(ways[MAKE].repeat.usec), take = report_median(ways[TAKE].repeat.usec);
        double text = report_median(ways[TEXT_BY_BUS].repeat.usec) - report_median(ways[TEXT_DIRECT].repeat.usec);

        if (is_first)
                forms->fixed_routing = by_bus - direct;
        report_table_row(forms->where, name, false);
        report_table_value(forms->where, 0, by_bus);
        report_table_value(forms->where, 1, make);
        report_table_value(forms->where, 2, take);
        report_table_value(forms->where, 3, (direct - make - take) / 2);
        report_table_value(forms->where, 4, forms->fixed_routing / 2);
        report_table_value(forms->where, 5, by_bus - direct - forms->fixed_routing);
        report_table_value(forms->where, 6, text - (by_bus - direct));
}

static void fill_row(const Marshal *marshal, Forms *forms, const Way ways[N_WAYS], bool is_first) {
        g_autofree char *name = g_strdup_printf("%d", marshal->n);

        report_table_row(forms->calls, name, false);
        report_table_row(forms->parts, name, false);
        for (unsigned i = 0; i < N_WAYS; i++)
                if (is_there(marshal, &kinds[i]))
                        report_table_values(table_of(forms, i), forms->columns[i], ways[i].repeat.usec);
        for (unsigned i = 0; i < N_CALLS; i++)
                if (is_there(marshal, &kinds[i]))
                        report_chart_point(forms->chart, forms->series[i], marshal->n, ways[i].repeat.usec);
        if (forms->where)
                fill_where(forms, ways, name, is_first);
}

static void add_notes(Report *report) {
        report_note(report, "marshal and unmarshal: sd_bus_message_append_array() and sd_bus_message_seal(), "
                            "sd_bus_message_read_array() and a copy; one by one: a call for each integer. GDBus: an array "
                            "at once, g_dbus_message_to_blob(); g_dbus_message_new_from_blob(), which checks all it reads.");
        report_note(report, "Each of two hops: (peer to peer - marshalling - unmarshalling) / 2, that is system calls, both "
                            "copies through the socket, the switch of processes, and sd-bus's work on a message's head.");
        report_note(report, "Bus, routing: (through the bus - peer to peer) / 2 for one integer. Bus, the integers: what "
                            "that difference grows by with N: the bus's copies; of integers there is nothing to check. "
                            "Bus, checking: that difference for a text of as many bytes, minus the one for integers.");
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

static double loop_usec(const Marshal *marshal) {
        return (double) bench_amount(marshal->options, 1000, 25000, 100000);
}

static int measure_ways(Marshal *marshal, Way ways[N_WAYS], const char *what) {
        Findings findings[N_WAYS];
        Side sides[N_WAYS];
        size_t n = 0;
        int r;

        for (unsigned i = 0; i < N_WAYS; i++) {
                ways[i] = (Way) { .marshal = marshal, .kind = &kinds[i] };
                repeat_init(&ways[i].repeat, kinds[i].name, kinds[i].once,
                            kinds[i].is_part ? (void *) &marshal->parts : (void *) marshal, loop_usec(marshal));
                if (is_there(marshal, &kinds[i]))
                        sides[n++] = (Side) {
                                .name = kinds[i].name, .run = run_way, .check = check_way, .userdata = &ways[i]
                        };
        }
        r = measure_sides(sides, n, bench_rounds(marshal->options), what, findings);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                repeat_drop_warm_up(&((Way *) sides[i].userdata)->repeat);
                findings_done(&findings[i]);
        }
        return r;
}

static int measure_number(Marshal *marshal, Forms *forms, unsigned i) {
        g_autofree char *what = g_strdup_printf("GetInteger(%d)", numbers[i]);
        Way ways[N_WAYS] = {};
        int r;

        marshal->n = numbers[i];
        r = marshal_parts_init(&marshal->parts, marshal->direct.bus, marshal->integers, marshal->n, marshal->copied);
        if (r >= 0)
                r = measure_ways(marshal, ways, what);
        if (r >= 0)
                fill_row(marshal, forms, ways, i == 0);
        for (unsigned k = 0; k < N_WAYS; k++)
                repeat_done(&ways[k].repeat);
        marshal_parts_done(&marshal->parts);
        return r;
}

/* ---- Setting up --------------------------------------------------------------------------------------------------- */

static int start_peers(Marshal *marshal) {
        int32_t first;
        int r;

        r = bus_peer_start_direct(&marshal->direct);
        if (r >= 0)
                r = bus_peer_start_on_bus(marshal->options, &marshal->bus);
        if (r >= 0)
                r = bus_peer_get_integers(&marshal->bus, 1, false, &first);
        if (r == -EACCES || r == -EPERM) {
                report_note(marshal->report, "The bus is left out: its policy forbids calls between programs that it does "
                                             "not know.");
                r = bus_peer_stop(&marshal->bus);
        }
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: cannot start what answers: %s\n", g_strerror(-r));
        return r;
}

static int place(const Marshal *marshal, Placement placement) {
        const pid_t others[] = { marshal->direct.child.pid, marshal->bus.child.pid, marshal->bus.bus_daemon };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(others); i++)
                if (others[i] > 0)
                        r = measure_place(placement, others[i]);
        return r;
}

static int measure_placed(Marshal *marshal) {
        Forms forms = {};
        int r;

        r = place(marshal, PLACEMENT_ONE_CPU);
        if (r == -EPERM) {
                report_note(marshal->report, "The bus is where the kernel likes: it belongs to another user.");
                r = 0;
        }
        add_forms(marshal, &forms);
        for (unsigned i = 0; r >= 0 && i < N_NUMBERS; i++)
                r = measure_number(marshal, &forms, i);
        if (r < 0)
                return r;
        return marshal_hops(marshal->options, &marshal->direct, marshal->bus.bus ? &marshal->bus : NULL, loop_usec(marshal),
                            marshal->report);
}

static int measure(const BenchOptions *options, Report *report) {
        Marshal marshal = { .options = options, .report = report };
        int r;

        marshal.integers = g_new(int32_t, numbers[N_NUMBERS - 1]);
        marshal.copied = g_new(int32_t, numbers[N_NUMBERS - 1]);
        for (uint32_t i = 0; i < (uint32_t) numbers[N_NUMBERS - 1]; i++)
                marshal.integers[i] = bus_peer_integer(i);
        report_fact(report, "method", "each way goes on for %.0f ms, a run; %d runs, in turn", loop_usec(&marshal) / 1000,
                    bench_rounds(options));
        add_notes(report);
        r = start_peers(&marshal);
        if (r >= 0)
                r = measure_placed(&marshal);
        (void) place(&marshal, PLACEMENT_FREE); /* for the next workload in this process */
        r = MIN(r, MIN(bus_peer_stop(&marshal.bus), 0));
        r = MIN(r, MIN(bus_peer_stop(&marshal.direct), 0));
        g_free(marshal.integers);
        g_free(marshal.copied);
        return r;
}

const Workload workload_marshal = {
        .verb = "marshal",
        .help = "where the time of a D-Bus call goes: GetInteger(N) -> ai",
        .summary = "Measures GetInteger(N) -> ai through the bus, peer to peer, and with the integers down a pipe that is\n"
                   "passed; marshalling and unmarshalling alone beside it, by sd-bus and by GDBus.",
        .bus = true,
        .measure = measure,
        .in_report = true,
};
