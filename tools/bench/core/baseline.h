/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The yardstick: the same query on the same file, with SQLite in this process and without the service. */
#ifndef SQLIPC_TOOLS_BENCH_CORE_BASELINE_H
#define SQLIPC_TOOLS_BENCH_CORE_BASELINE_H

#include "tools/bench/core/copy.h"

typedef struct Baseline Baseline;

/** How the values of a row are read. */
typedef enum BaselineMethod {
        BASELINE_USUAL,   /* the usual way: sqlite3_column_type(), then _int64(), _double(), _text() or _blob(), _bytes() */
        BASELINE_FASTEST, /* one sqlite3_column_value() per value, sqlite3_value_*() on it; with SQLITE_OPEN_NOMUTEX */
} BaselineMethod;

/** Opens `path` read-only. This function and those below report errors on stderr. */
int baseline_open(const char *path, Baseline **ret);
Baseline *baseline_close(Baseline *baseline);
void baseline_closep(Baseline **baseline);
/** Prepares, steps through all rows and copies every value. */
int baseline_copy(Baseline *baseline, const char *sql, BaselineMethod method, Copy *copy);
/** Prepares and steps to the first row. */
int baseline_first_row(Baseline *baseline, const char *sql);
const char *baseline_version(void);

#endif
