/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What sqlipc-bench can do: a workload is a verb, in its own file, with one row in main.c's table.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

enum {
        BENCH_OK = 0,
        BENCH_FAILED = 1, /* it could not be measured, or the two sides do not agree */
        BENCH_USAGE = 2,
};

/* Each takes the command line from its verb on (argv[0]), and returns the program's exit code. */
int workload_dataset(int argc, char **argv);
int workload_exposed(int argc, char **argv);
int workload_fetch(int argc, char **argv);
int workload_first_row(int argc, char **argv);

#endif
