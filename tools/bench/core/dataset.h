/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The datasets. Each is a database with one table of the same name; one also has a view, and two have an index. The same
 * number of rows and the same seed give the same values on every machine.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_DATASET_H
#define SQLIPC_TOOLS_BENCH_CORE_DATASET_H

#include <glib.h>
#include <stdbool.h>

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/random.h"

/* Each row of `study` has an identifier, counted from 1, and this many texts of this many letters. */
#define DATASET_STUDY_COLUMNS 30
#define DATASET_STUDY_LENGTH 20

typedef struct sqlite3_stmt sqlite3_stmt;

typedef struct DatasetKind {
        const char *name;
        const char *columns;    /* of CREATE TABLE */
        unsigned n_columns;
        gint64 n_rows[3];       /* by BenchSize */
        /** Binds one row to a statement of n_columns parameters. Bound memory is valid until the next row. SQLite result. */
        int (*bind)(sqlite3_stmt *insert, gint64 row, Random *random);
        const char *also;       /* CREATE VIEW or CREATE INDEX; NULL: nothing more */
        bool wal;               /* always in WAL mode */
} DatasetKind;

typedef struct Dataset {
        const DatasetKind *kind;
        gint64 n_rows, seed;
        bool force, wal; /* replace an existing file; use WAL mode instead of a rollback journal */
        const char *path;
} Dataset;

/* All kinds; the last element has no name. */
extern const DatasetKind dataset_kinds[];

/** Creates the file. It is written under a temporary name and renamed when it is complete, so that a run that fails or is
 * killed does not change an existing file. Reports errors on stderr. -EEXIST: the file exists and `force` is not set. */
int dataset_make(const Dataset *dataset);

#endif
