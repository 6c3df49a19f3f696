/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of workloads, and their common code: options, measuring, writing. */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_H

#include "tools/bench/workloads/workload.h"

/** Creates a report of `workload` with the facts that are known before it runs. The caller frees it. */
Report *workloads_report(const Workload *workload, const BenchOptions *options);

/** Runs a workload and writes its report to stdout and --plot. Common to the verbs of all workloads. */
int workloads_main(const Workload *workload, int argc, char **argv);

/* All workloads, sorted by name, NULL-terminated. */
extern const Workload *const workloads[];

#endif
