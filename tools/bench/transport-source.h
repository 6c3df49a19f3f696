/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A rival's server side of SQLite: opens the file, steps, takes texts out in the fastest way. In a child of its own. */
#ifndef BENCH_TRANSPORT_SOURCE_H
#define BENCH_TRANSPORT_SOURCE_H

#include <stdint.h>

#include "study-page.h"

typedef struct Source {
        struct sqlite3 *db;
        struct sqlite3_stmt *statement;
        StudyText *values;    /* of the current row, valid until the next source_next() */
        uint32_t n_values;
} Source;

/** Opens `file` read-only. Says on stderr what fails; -EIO. To be closed by source_close(). */
int source_open(const char *file, Source *ret);
void source_close(Source *source);

/** Compiles `sql` in place of what was compiled before. SQLite's primary result code. */
int source_prepare(Source *source, const char *sql);

/** Goes to the next row. SQLite's primary result code: SQLITE_ROW, SQLITE_DONE or an error. NULL is an empty text here, as
 * sqlite3_column_text() has it for a program that does not look. */
int source_next(Source *source);

#endif
