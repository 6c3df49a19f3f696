/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point queries of one client through libsqlipc beside 8 writers, and without them, in turns. */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_WRITE_READERS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_WRITE_READERS_H

#include "tools/bench/report/report.h"
#include "tools/bench/workloads/write.h"

/** Measures for `usec` in each round, and adds a table to the report. `writers`: those of write_library(). */
int write_readers(const WriterKind *writers, double usec, int n_rounds, Report *report);

#endif
