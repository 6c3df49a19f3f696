/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bulk loads: many rows into an empty table, in one transaction that reaches the disk. There is a kind of loader for each
 * way that is compared. All load the same rows, those of the dataset `study`, which are in memory before the clock starts.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_LOAD_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_LOAD_H

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/copy.h"
#include "tools/bench/core/dataset.h"

/* The dataset that is loaded into, and its table. */
#define LOAD_TABLE "write_study"
/* Its parameters: the identifier and the texts of a row. */
#define LOAD_INSERT                                                                                               \
        "INSERT INTO " LOAD_TABLE " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?," \
        " ?, ?, ?, ?, ?, ?, ?, ?)"
/* The rows are deleted in parts, because the service keeps the pages that a statement changes in temporary space
 * (TempSizeMax=) until the statement has ended. This one deletes the rows up to its parameter. */
#define LOAD_DELETE "DELETE FROM " LOAD_TABLE " WHERE id <= ?"
enum { LOAD_DELETE_ROWS = 20000 };

typedef struct LoadRows {
        int64_t n;
        char *letters; /* of all texts */
} LoadRows;

/** Makes the first `n` rows of `study`, which the caller frees with load_rows_done(). */
void load_rows_init(LoadRows *rows, int64_t n);
void load_rows_done(LoadRows *rows);
/** Adds all rows to `copy`, as a query for them does. */
void load_rows_copy(const LoadRows *rows, Copy *copy);

/** Returns a text of a row, both counted from 0. */
static inline const char *load_rows_text(const LoadRows *rows, int64_t row, int column) {
        return rows->letters + (row * DATASET_STUDY_COLUMNS + column) * DATASET_STUDY_LENGTH;
}

/* The rows and their destination. It must outlive the loaders. */
typedef struct LoadTask {
        const BenchOptions *options;
        const LoadRows *rows;
        const char *file; /* for load_direct() */
} LoadTask;

/* How a kind of loader works. Functions report errors on stderr and return a negative value. */
typedef struct LoaderKind {
        const char *name;
        /** Connects. */
        int (*open)(const LoadTask *task, void **ret_loader);
        /** Empties the table. */
        int (*clear)(void *loader);
        /** Loads all rows, and waits until they are durable. */
        int (*load)(void *loader);
        /** Reads the table. */
        int (*copy)(void *loader, Copy *copy);
        void (*close)(void *loader);
} LoaderKind;

extern const LoaderKind load_library, /* libsqlipc: sqlipc_load_row() */
        load_direct;                  /* a prepared INSERT in process, in WAL mode with synchronous FULL */

#endif
