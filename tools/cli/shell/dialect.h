/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which SQL the open database speaks: SQLite's (also rqlite's), or PostgreSQL's. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_DIALECT_H
#define SQLIPC_TOOLS_CLI_SHELL_DIALECT_H

#include "tools/cli/shell/shell.h"

/** Asks the database. Returns 1: SQLite's; 0: PostgreSQL's; or an error, as query_run() does, which reports it. */
int dialect_is_sqlite(Shell *shell);

#endif
