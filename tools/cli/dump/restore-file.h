/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads an SQLite file for .restore: one statement at a time, all in one read transaction. */
#ifndef SQLIPC_TOOLS_CLI_DUMP_RESTORE_FILE_H
#define SQLIPC_TOOLS_CLI_DUMP_RESTORE_FILE_H

#include <glib.h>
#include <stdbool.h>

#include "tools/terminal/value.h"

typedef struct RestoreFile {
        struct sqlite3 *db;        /* owned */
        struct sqlite3_stmt *stmt; /* owned; the running statement, NULL: none */
        GArray *row;               /* of Value: the last row, until the next call; texts end with NUL */
} RestoreFile;

/** Opens a file for reading, which must be closed also after an error. Returns 0; -ENODATA: it is empty, which is no
 * database; or -EIO. */
int restore_file_open(RestoreFile *file, const char *path);
void restore_file_close(RestoreFile *file);

/** The error of the last call that failed. */
const char *restore_file_message(const RestoreFile *file);

/** Starts a statement; `argument` is its parameter, NULL: it has none. Returns 0 or -EIO. */
int restore_file_query(RestoreFile *file, const char *sql, const char *argument);
/** Returns 1: `file->row` has the next row; 0: the end; -EIO. */
int restore_file_next(RestoreFile *file);

#endif
