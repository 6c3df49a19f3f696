/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Repeats a measurement of 2009: one KiB between two processes, over a bare socket and as a D-Bus call and its reply. */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_MARSHAL_HOPS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_MARSHAL_HOPS_H

#include "tools/bench/report/report.h"
#include "tools/bench/workloads/bus-peer.h"

/** Adds a table with measured and published figures. `bus` may be NULL. Reports errors on stderr. */
int marshal_hops(const BenchOptions *options, BusPeer *direct, BusPeer *bus, double loop_usec, Report *report);

#endif
