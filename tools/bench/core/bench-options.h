/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of a measurement: where the service and the data are, how much to measure, what to write.
 *
 * The datasets are in one folder, in files NAME.sqlite, and are published as NAME (tools/bench.sh creates and publishes
 * them):
 *
 *      study    the table of the 2010 study: 300,000 x 31 short strings
 *      narrow   30,000,000 x 4: an INTEGER key, an INTEGER, a REAL, a short TEXT
 *      relay    256 x 16 strings of 32 bytes
 *      point    100,000 rows by INTEGER PRIMARY KEY: an INTEGER, a REAL, a TEXT of 32 bytes
 *      wide     BLOBs of 1 MiB, 2 GiB in all
 *
 * These numbers are those of --size=full; for smaller sizes see dataset.h.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_BENCH_OPTIONS_H
#define SQLIPC_TOOLS_BENCH_CORE_BENCH_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* How much is measured: enough for a test; enough for useful figures, in at most a minute; the published sizes. */
typedef enum BenchSize { BENCH_TINY, BENCH_NORMAL, BENCH_FULL } BenchSize;

typedef struct BenchOptions {
        /* the service */
        gboolean system, user;
        char *address;
        char *folder;       /* of the datasets */
        char *database;     /* its name at the service; NULL if the workload needs no service */
        char *file;         /* the same database, for SQLite in process; NULL likewise */
        char *sql;          /* NULL: the workload's own */
        char *exposed;      /* workload_exposed: the name under which Expose= publishes the same database */
        char *tasks;        /* workload_languages: separated by commas, NULL: all */
        gboolean cold;      /* workload_first_row: a worker must be started first */
        char *postgres;     /* conninfo of a PostgreSQL server, NULL: none */
        char *engine;       /* the database by which the service publishes the server of `postgres`, NULL: none */
        char *mariadb;      /* user@socket/database of a MariaDB server, NULL: none */
        int n_clients;      /* workload_soak; 0: depends on `size` */
        char *uids;         /* workload_soak: the clients' uids, separated by commas; NULL: this user's */
        double seconds;     /* workload_soak: duration of the load; 0: depends on `size` */
        gint64 seed;        /* workload_soak */
        /* how much */
        BenchSize size;
        int n_rounds;       /* 0: the workload decides; at least 5 for useful figures */
        /* the result */
        gboolean json, csv;
        char *plot_folder;  /* charts as SVG and PNG, NULL: none */
        gboolean quiet;     /* no progress, even on a terminal */
} BenchOptions;

void bench_options_done(BenchOptions *options);

/** Returns the amount for options->size. */
static inline int64_t bench_amount(const BenchOptions *options, int64_t tiny, int64_t normal, int64_t full) {
        return options->size == BENCH_TINY ? tiny : options->size == BENCH_NORMAL ? normal : full;
}

/** Returns the number of rounds: --rounds; by default 1 for BENCH_TINY and 5 otherwise. */
int bench_rounds(const BenchOptions *options);
/** Returns the path of the dataset `name` in --folder; NULL without --folder. The caller frees it. */
char *bench_dataset_file(const BenchOptions *options, const char *name);
/** Converts the name of a size. -EINVAL: there is no such size. */
int bench_size_from_name(const char *name, BenchSize *ret);

#endif
