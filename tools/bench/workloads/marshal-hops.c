/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sends one KiB from process to process, see marshal-hops.h. */
#include "tools/bench/workloads/marshal-hops.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/core/repeat.h"
#include "tools/bench/workloads/echo.h"

enum { SOCKET, DIRECT, BUS, N_HOPS, HOP_SIZE = 1024 };

typedef struct Hop {
        Echo *socket;
        BusPeer *peer;   /* instead of it */
        EchoBytes *bytes;
        Repeat repeat;
} Hop;

static int make_trip(void *userdata) {
        Hop *hop = userdata;

        return hop->peer ? bus_peer_echo(hop->peer, hop->bytes->payload, HOP_SIZE, hop->bytes->back)
                         : hop->socket->kind->trip(hop->socket, HOP_SIZE);
}

static int run_hop(void *userdata) {
        Hop *hop = userdata;

        memset(hop->bytes->back, 0, HOP_SIZE); /* contains the bytes of an earlier run */
        return repeat_run(&hop->repeat);
}

static uint64_t check_hop(void *userdata) {
        const Hop *hop = userdata;

        return crc32_z(0, hop->bytes->back, HOP_SIZE);
}

static void fill(Report *report, const Hop *hops, const size_t n) {
        ReportTable *table = report_table(report, "hops", "1 KiB from process to process, beside 2009", "way");

        (void) report_table_column(table, "time", "us");
        for (size_t i = 0; i < n; i++) {
                g_autoptr(GArray) usec = measure_scaled(hops[i].repeat.usec, i == SOCKET ? 0.5 : 1);

                report_table_row(table, hops[i].repeat.name, false);
                report_table_values(table, 0, usec);
        }
        report_table_row(table, "one way over a UNIX socket, QNX 6.4 on a Beagle Board", true);
        report_table_value(table, 0, 324);
        report_table_row(table, "one way by QNX's own messages, Beagle Board", true);
        report_table_value(table, 0, 177);
        report_table_row(table, "call there and back through the bus, QtDBus, Core 2 Duo 1.6 GHz", true);
        report_table_value(table, 0, 701);
        report_note(report, "Published: G. Schmottlach, \"DBus-Daemon Optimizations\", dbus list, 27 February 2009 "
                            "(lists.freedesktop.org/archives/dbus/2009-February/011009.html), and T. Macieira's answer "
                            "(2009-March/011016.html). The first one's figures of GetInteger were not found.");
}

static int measure_hops(const BenchOptions *options, Hop *hops, size_t n, double loop_usec) {
        static const char *const names[N_HOPS] = {
                "one way over a socket pair (half a round trip)", "call there and back, peer to peer",
                "call there and back through the bus",
        };
        Findings findings[N_HOPS];
        Side sides[N_HOPS];
        int r;

        for (size_t i = 0; i < n; i++) {
                repeat_init(&hops[i].repeat, names[i], make_trip, &hops[i], loop_usec);
                sides[i] = (Side) { .name = names[i], .run = run_hop, .check = check_hop, .userdata = &hops[i] };
        }
        r = measure_sides(sides, n, bench_rounds(options), "1 KiB", findings);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                repeat_drop_warm_up(&hops[i].repeat);
                findings_done(&findings[i]);
        }
        return r;
}

int marshal_hops(const BenchOptions *options, BusPeer *direct, BusPeer *bus, double loop_usec, Report *report) {
        EchoBytes bytes;
        Echo echo;
        Hop hops[N_HOPS] = {
                [SOCKET] = { .socket = &echo, .bytes = &bytes },
                [DIRECT] = { .peer = direct, .bytes = &bytes },
                [BUS] = { .peer = bus, .bytes = &bytes },
        };
        size_t n = bus ? N_HOPS : BUS;
        int r, q;

        echo_bytes_init(&bytes);
        r = echo_open(&echo, &echo_socket_pair, &bytes, options); /* on the CPU of this process, as everything else here */
        if (r >= 0)
                r = measure_hops(options, hops, n, loop_usec);
        if (r >= 0)
                fill(report, hops, n);
        for (size_t i = 0; i < n; i++)
                repeat_done(&hops[i].repeat);
        q = echo_close(&echo);
        echo_bytes_done(&bytes);
        return r < 0 ? r : MIN(q, 0);
}
