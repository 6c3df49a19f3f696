/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Imports a file into a table, for .import: all of it or nothing.
 *
 *      import-file.h reads the file, and the check names all bad lines
 *      import-file.h reads it again, and bulk-load.h loads it in a transaction
 *
 * The transaction begins after the check, so other writers wait only while rows are written. If the service refuses a row,
 * the rows before it are loaded again, and the load goes on after it, so that the next bad lines are named, too; then all
 * is rolled back.
 */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_IMPORT_H
#define SQLIPC_TOOLS_CLI_IMPORT_IMPORT_H

#include "tools/cli/import/import-file.h"
#include "tools/cli/shell/shell.h"

typedef struct ImportOptions {
        ImportFormat format;
        const char *path;   /* "-": standard input */
        const char *table;  /* is made if it does not exist */
        uint64_t n_skipped; /* lines to skip at the beginning */
        bool no_header;     /* csv and tsv: the first line is a row */
} ImportOptions;

/** Returns 0, or a negative code that has been reported. */
int import_run(Shell *shell, const ImportOptions *options);

#endif
