/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches tables of the open database, for .watch and --wait. Nothing is reported here. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_TABLE_WATCH_H
#define SQLIPC_TOOLS_CLI_SHELL_TABLE_WATCH_H

#include "tools/cli/shell/shell.h"

/** Begins to watch the tables that `sql` reads. Waits for that, or for Ctrl-C (-ECANCELED). The caller closes the
 * watch. -ENODATA: no database is open. */
int table_watch_open_sql(Shell *shell, const char *sql, sqlipc_watch **ret);

/** The same for tables by name (an empty array: all), and since a change; 0: from now on. -ETIMEDOUT: it has not begun by
 * `until`. */
int table_watch_open(Shell *shell, const char *const *tables, uint64_t since, uint64_t until, sqlipc_watch **ret);

/** Waits for a change, Ctrl-C (-ECANCELED), or `until`, microseconds of CLOCK_MONOTONIC. Returns 1; 0: it is `until`; or the
 * error. */
int table_watch_wait(Shell *shell, sqlipc_watch *watch, uint64_t until);

#endif
