/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports failed queries, and maps them to exit codes. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_QUERY_FAILURE_H
#define SQLIPC_TOOLS_CLI_SHELL_QUERY_FAILURE_H

#include "tools/cli/shell/query.h"

/** Reports on stderr the connection's message for `r`, with its D-Bus name if .verbose asks for it, and the position of the
 * error in `sql` (NULL: none). */
void query_complain(Shell *shell, int r, const char *sql);

/** Explains, after a database was not found, how to list the published ones; or how to publish one, if there is none. */
void query_suggest_database(Shell *shell);

/** Opens `name`, or reports why that failed. Returns as session_open() does. */
int query_open_database(Shell *shell, const char *name);

/** If the user chose one bus, asks the other one for the database, and mentions it if it has that. NULL: no database. */
void query_suggest_other_bus(const Shell *shell, const char *database);

/** Returns the exit code for `r`, as documented in options.h. */
int query_exit_code(Shell *shell, int r);

/** Reports the error `r` of query_execute(), and sets the exit code if `r` alone does not determine it. Returns `r`; 0 if
 * the user quit the pager, or a command of .output closed its input. */
int query_settle(Query *query, int r);

#endif
