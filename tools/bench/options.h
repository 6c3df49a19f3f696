/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line that all workloads share: where the service and the data are, how much to measure, what to write.
 *
 * Datasets lie in one folder, NAME.sqlite each, and are published under the same names (tools/bench.sh does both):
 *
 *      study    the table of the 2010 study: 300,000 x 31 short strings
 *      narrow   30,000,000 x 4: an INTEGER key, an INTEGER, a REAL, a short TEXT
 *      relay    256 x 16 strings of 32 bytes
 *      point    100,000 rows by INTEGER PRIMARY KEY: an INTEGER, a REAL, a TEXT of 32 bytes
 *      wide     BLOBs of 1 MiB, 2 GiB in all
 *
 * (numbers of --size=full; less of the same otherwise, see dataset.h).
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* How much is measured: enough that it is shown to work; what tells, in a minute or less; the published sizes. */
typedef enum BenchSize { BENCH_TINY, BENCH_NORMAL, BENCH_FULL } BenchSize;

typedef struct BenchOptions {
        /* the service */
        gboolean system, user;
        char *address;
        char *folder;       /* of the datasets */
        char *database;     /* as the service calls it; NULL where the workload needs no service */
        char *file;         /* the same, for SQLite in process; the same */
        char *sql;          /* NULL: the workload's own */
        char *exposed;      /* workload_exposed: the same database by Expose= */
        gboolean cold;      /* workload_first_row: with a worker that is yet to start */
        char *postgres;     /* conninfo of a PostgreSQL server, NULL: none */
        char *mariadb;      /* user@socket/database of a MariaDB server, NULL: none */
        int n_clients;      /* workload_soak; 0: by the size */
        char *uids;         /* workload_soak: whose clients, numbers with commas; NULL: this user's */
        double seconds;     /* workload_soak: of load; 0: by the size */
        gint64 seed;        /* workload_soak */
        /* how much */
        BenchSize size;
        int n_rounds;       /* 0: as the workload likes; at least 5 where it tells */
        /* the result */
        gboolean json, csv;
        char *plot_folder;  /* charts as SVG and PNG, NULL: none */
        gboolean quiet;     /* no progress, even on a terminal */
} BenchOptions;

typedef struct Workload Workload;

/** Reads the options of argv (argv[0] is the verb); says on stderr what is wrong. -EINVAL where something is; free it with
 * bench_options_done() then, too. */
int bench_options_parse(BenchOptions *options, const Workload *workload, int argc, char **argv);
/** The command line of `report`: no database of its own, and one word, which it owns. Otherwise as bench_options_parse(). */
int bench_options_parse_report(BenchOptions *options, int argc, char **argv, char **ret_folder);
/** The options of one workload of `report`: a copy of `common` with its database, file and query. */
void bench_options_for(const BenchOptions *common, const Workload *workload, BenchOptions *ret);
void bench_options_done(BenchOptions *options);

/** The one of three that options->size says. */
static inline int64_t bench_amount(const BenchOptions *options, int64_t tiny, int64_t normal, int64_t full) {
        return options->size == BENCH_TINY ? tiny : options->size == BENCH_NORMAL ? normal : full;
}

/** How many rounds: --rounds, or 5 at the published sizes and below, 1 for tiny. */
int bench_rounds(const BenchOptions *options);
/** The file of a dataset in --folder, which the service publishes as `name`; NULL without --folder. The caller frees it. */
char *bench_dataset_file(const BenchOptions *options, const char *name);
/** The size that a word names. -EINVAL: none. */
int bench_size_from_name(const char *name, BenchSize *ret);

#endif
