/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The workloads of sqlipc-bench. A workload is a verb; it has its own file and one row in the table of
 * tools/bench/workloads.c.
 *
 * A workload writes its results into a report and does not depend on the output format: tables for people, JSON, CSV,
 * charts, or a part of the page that `report` writes. All workloads have the command line of workload-options.h, so that
 * `report` can run all of them.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_WORKLOAD_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_WORKLOAD_H

#include "tools/bench/core/bench-options.h"
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
        const char *database; /* the dataset that it queries (bench-options.h) by default; NULL: none */
        const char *sql;      /* its default query; NULL: it has fixed queries and no --sql */
        /** Measures and writes the results into `report`; reports errors on stderr. Returns a negative value if it could not
         * measure, BENCH_FAILED if it measured but the result is a failure. */
        int (*measure)(const BenchOptions *options, Report *report);
        bool bus;             /* it uses the bus; implied by `database` */
        bool folder;          /* it needs the folder of the datasets; implied by `database` */
        bool servers;         /* it also measures other database servers if --postgres or --mariadb is given */
        bool in_report;       /* `report` runs it */
} Workload;

extern const Workload workload_bulk, workload_exposed, workload_fetch, workload_first_row, workload_languages, workload_load,
        workload_many, workload_marshal, workload_model, workload_readers, workload_reference, workload_relay,
        workload_roundtrip, workload_small, workload_soak, workload_transports, workload_waiting, workload_watch,
        workload_wide, workload_write;

#endif
