/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that want to know of commits: how soon they know (watch-latency.c), and their cost for writers (watch-loss.c).
 * Both insert the rows of write.h into the dataset WATCH_TABLE, which the service publishes for writing.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_WATCH_COMMITS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_WATCH_COMMITS_H

#include "tools/bench/core/bench-service.h"
#include "tools/bench/report/report.h"
#include "tools/bench/workloads/write.h"

#define WATCH_TABLE "write_wal"

/** Stores the descriptor of a new watch of the table, which the caller closes. The watch ends with `bus`. Reports errors on
 * stderr. */
int watch_open(sd_bus *bus, int *ret_fd);

/** Measures and reports the time from a commit to the moment when a program knows of it: by a watch, for commits through the
 * service and past it; by inotify alone; by the notices of the database servers. */
int watch_latency(const BenchOptions *options, const Service *service, Report *report);

/** Measures and reports how many rows writers insert without watches and beside many, and the service's memory. Nothing may
 * have watched the table in the last half minute. */
int watch_loss(const BenchOptions *options, const Service *service, Report *report);

#endif
