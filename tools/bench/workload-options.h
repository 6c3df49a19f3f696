/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses the command line that all workloads share (bench-options.h). */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOAD_OPTIONS_H
#define SQLIPC_TOOLS_BENCH_WORKLOAD_OPTIONS_H

#include "tools/bench/core/bench-options.h"
#include "tools/bench/workloads/workload.h"

/** Reads the options of argv (argv[0] is the verb). On error, reports on stderr and returns -EINVAL; the caller must call
 * bench_options_done() in this case, too. */
int workload_options_parse(BenchOptions *options, const Workload *workload, int argc, char **argv);
/** As workload_options_parse(), for `report`: without options of one database, with one operand, which the caller frees. */
int workload_options_parse_report(BenchOptions *options, int argc, char **argv, char **ret_folder);
/** Makes the options of one workload of `report`: a copy of `common` with the workload's database, file and query. */
void workload_options_for(const BenchOptions *common, const Workload *workload, BenchOptions *ret);

#endif
