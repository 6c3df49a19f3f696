/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite in a rival's server, a child process: opens the file, steps, and reads values as text in the fastest way. */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_TRANSPORT_SOURCE_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_TRANSPORT_SOURCE_H

#include <stdint.h>

#include "tools/bench/core/study-page.h"

typedef struct Source {
        struct sqlite3 *db;
        struct sqlite3_stmt *statement;
        StudyText *values;    /* of the current row, valid until the next source_next() */
        uint32_t n_values;
} Source;

/** Opens `file` read-only. On error, reports on stderr and returns -EIO. Close it with source_close(). */
int source_open(const char *file, Source *ret);
void source_close(Source *source);

/** Compiles `sql`, which replaces the previous statement. Returns SQLite's primary result code. */
int source_prepare(Source *source, const char *sql);

/** Steps to the next row. Returns SQLite's primary result code: SQLITE_ROW, SQLITE_DONE or an error. A NULL value becomes an
 * empty text, as in a program that does not check for a NULL pointer from sqlite3_column_text(). */
int source_next(Source *source);

#endif
