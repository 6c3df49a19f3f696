/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of the workload `bulk`; each writes its own tables. They report errors on stderr and return a negative value. */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_BULK_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_BULK_H

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/report/report.h"

/** Measures how the sizes of pages, pipes and writes affect the data plane alone (page-pipe.h). It runs the query of the
 * options on the file of the options. */
int bulk_sizes_measure(const BenchOptions *options, Report *report);

/** Measures time and memory by the number of rows of the dataset `narrow`. Adds a note if --folder does not contain it. */
int bulk_growth_measure(const BenchOptions *options, Service *service, Report *report);

#endif
