/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cost of each system call that the ways of reference-ways.h use, and of their work without system calls. */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_REFERENCE_CALLS_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_REFERENCE_CALLS_H

#include "tools/bench/report/report.h"

/** Runs `n_rounds` rounds of `n` calls of each kind in this process, and adds a table. Reports errors on stderr. */
int reference_calls(const char *folder, unsigned n, int n_rounds, Report *report);

#endif
