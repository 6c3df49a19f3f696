/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One kibibyte from process to process, as it was measured in 2009: over a bare socket, and as a call there and back. */
#ifndef BENCH_MARSHAL_HOPS_H
#define BENCH_MARSHAL_HOPS_H

#include "bus-peer.h"
#include "report.h"

/** Measures into a table of its own, published figures beside. `bus` may be NULL. Says on stderr what fails. */
int marshal_hops(const BenchOptions *options, BusPeer *direct, BusPeer *bus, double loop_usec, Report *report);

#endif
