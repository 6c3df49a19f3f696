/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The datasets, each a database of one table that is called as the dataset is; one has a view as well. The same rows and
 * seed give the same values on every machine.
 */
#ifndef BENCH_DATASET_H
#define BENCH_DATASET_H

#include <glib.h>
#include <stdbool.h>

#include "options.h"
#include "random.h"

typedef struct sqlite3_stmt sqlite3_stmt;

typedef struct DatasetKind {
        const char *name;
        const char *columns;    /* of CREATE TABLE */
        unsigned n_columns;
        gint64 n_rows[3];       /* by BenchSize */
        /** Binds one row to a statement of n_columns parameters; what it binds lasts until the next row. An SQLite code. */
        int (*bind)(sqlite3_stmt *insert, gint64 row, Random *random);
        const char *view;       /* CREATE VIEW, NULL: the table is all there is */
} DatasetKind;

typedef struct Dataset {
        const DatasetKind *kind;
        gint64 n_rows, seed;
        bool force, wal; /* replace a file; leave it in WAL mode, otherwise it has a rollback journal */
        const char *path;
} Dataset;

/* All kinds, the last without a name. */
extern const DatasetKind dataset_kinds[];

/** Makes the file. It is made beside its name and renamed into place when it is whole: a run that fails or is killed leaves
 * what was there before. Says on stderr what fails. -EEXIST: there is one, and `force` is not set. */
int dataset_make(const Dataset *dataset);

#endif
