/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces the contents of the open database by those of an SQLite file, for .restore, in one transaction.
 *
 *      drop views and tables, create tables and unique indexes, load rows, create the rest, commit
 *
 * Tables are dropped children first, and loaded parents first, so that foreign keys hold all the time. If they do not, as in
 * circles of tables, their check is deferred to the commit. Unique indexes come before the rows, because foreign keys may
 * need them; the other ones after them, because that is faster.
 */
#ifndef SQLIPC_TOOLS_CLI_DUMP_RESTORE_H
#define SQLIPC_TOOLS_CLI_DUMP_RESTORE_H

#include "tools/cli/shell/shell.h"

/** `force`: also if the database is not empty. Returns 0, or a negative code that has been reported; then nothing was
 * changed. */
int restore_run(Shell *shell, const char *path, bool force);

#endif
