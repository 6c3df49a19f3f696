/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What sqlipc-bench can do: a workload is a verb, in its own file, with one row in workloads.c's table.
 *
 * A workload measures into a report, and knows nothing of its form: as a table for people, JSON, CSV, charts, or a part of
 * the page that `report` writes. Its whole command line is that of options.h, so that `report` can run all of them.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "options.h"
#include "report.h"

enum {
        BENCH_OK = 0,
        BENCH_FAILED = 1, /* it could not be measured, or the two sides do not agree */
        BENCH_USAGE = 2,
};

typedef struct Workload {
        const char *verb;
        const char *help;     /* a line of the list of verbs */
        const char *summary;  /* of its --help: what is measured, how, and what each side is */
        const char *database; /* which dataset it asks (options.h), unless --database and --file say otherwise; NULL: none */
        const char *sql;      /* what it asks there, unless --sql says otherwise; NULL: its own, there is no --sql */
        /** Measures into `report`, saying on stderr what fails. Negative where it could not be measured; BENCH_FAILED where
         * it was, and what was found is a failure. */
        int (*measure)(const BenchOptions *options, Report *report);
        bool bus;             /* it uses the bus; implied by `database` */
        bool servers;         /* it has other database servers beside, where --postgres or --mariadb give them */
        bool in_report;       /* `report` runs it */
} Workload;

extern const Workload workload_bulk, workload_exposed, workload_fetch, workload_first_row, workload_marshal,
        workload_readers, workload_reference, workload_relay, workload_roundtrip, workload_small, workload_soak,
        workload_transports, workload_waiting, workload_wide;

/** A report of `workload` with what is known before it is measured. The caller frees it. */
Report *workload_report(const Workload *workload, const BenchOptions *options);

/* Verbs that measure nothing: each takes the command line from its verb on (argv[0]), and returns the exit code. */
int verb_ask(int argc, char **argv);
int verb_dataset(int argc, char **argv);
int verb_report(int argc, char **argv);
/** Not a verb of its own: measures, and writes what was found to stdout and --plot. */
int workload_main(const Workload *workload, int argc, char **argv);

/* All workloads, NULL-terminated, in the order of their names. */
extern const Workload *const workloads[];

#endif
