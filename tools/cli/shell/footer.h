/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the lines below a result: number of rows, times, .stats. On a terminal they follow the rows. Otherwise they go to
 * stderr, the number of rows only at the prompt. Those of .changes always follow the rows, as in sqlite3. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_FOOTER_H
#define SQLIPC_TOOLS_CLI_SHELL_FOOTER_H

#include <stdio.h>

#include "tools/cli/shell/query.h"

/** `file`: the stream of the rows. `complete`: all rows were written. */
void footer_write(const Query *query, bool complete, FILE *file);

/** Writes what the last statement has changed, and all of them, for .changes. */
void footer_write_changes(const Session *session, FILE *file);

#endif
