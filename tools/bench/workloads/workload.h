/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The workloads of sqlipc-bench. A workload is a verb; it has its own file and one row in the table of workloads.c.
 *
 * A workload writes its results into a report and does not depend on the output format: tables for people, JSON, CSV,
 * charts, or a part of the page that `report` writes. All workloads have the command line of options.h, so that `report` can
 * run all of them.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_WORKLOAD_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_WORKLOAD_H

#include "tools/bench/core/options.h"
#include "tools/bench/report/report.h"

enum {
        BENCH_OK = 0,
        BENCH_FAILED = 1, /* the measurement failed, or the results of the sides differ */
        BENCH_USAGE = 2,
};

typedef struct Workload {
        const char *verb;
        const char *help;     /* one line, for the list of verbs */
        const char *summary;  /* for its --help: what is measured, how, and what the sides are */
        const char *database; /* the dataset that it queries (options.h) by default; NULL: none */
        const char *sql;      /* its default query; NULL: it has fixed queries and no --sql */
        /** Measures and writes the results into `report`; reports errors on stderr. Returns a negative value if it could not
         * measure, BENCH_FAILED if it measured but the result is a failure. */
        int (*measure)(const BenchOptions *options, Report *report);
        bool bus;             /* it uses the bus; implied by `database` */
        bool servers;         /* it also measures other database servers if --postgres or --mariadb is given */
        bool in_report;       /* `report` runs it */
} Workload;

extern const Workload workload_bulk, workload_exposed, workload_fetch, workload_first_row, workload_marshal,
        workload_readers, workload_reference, workload_relay, workload_roundtrip, workload_small, workload_soak,
        workload_transports, workload_waiting, workload_wide;

/** Creates a report of `workload` with the facts that are known before it runs. The caller frees it. */
Report *workload_report(const Workload *workload, const BenchOptions *options);

/* Verbs that measure nothing. argv[0] is the verb; they return the exit code. */
int verb_ask(int argc, char **argv);
int verb_dataset(int argc, char **argv);
int verb_report(int argc, char **argv);
/** Runs a workload and writes its report to stdout and --plot. Common to the verbs of all workloads. */
int workload_main(const Workload *workload, int argc, char **argv);

/* All workloads, sorted by name, NULL-terminated. */
extern const Workload *const workloads[];

#endif
