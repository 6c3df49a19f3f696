/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out which SQL the open database has: SQLite's (also rqlite's), or PostgreSQL's. session_dialect() has the result. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_DIALECT_H
#define SQLIPC_TOOLS_CLI_SHELL_DIALECT_H

#include "tools/cli/shell/shell.h"

/** Asks the service, unless the answer is known. Reports nothing: if it fails, dialect_require() says why. */
void dialect_look_up(Shell *shell);

/** Has the next call ask again. */
void dialect_forget(Shell *shell);

/** Does the same as dialect_look_up(), and if the service does not answer, asks the database. Must come before SQL runs that
 * was split or scanned. Returns 0, or an error, which it reports. */
int dialect_require(Shell *shell);

/** Returns 1: SQLite's; 0: PostgreSQL's; or an error as dialect_require(). */
int dialect_is_sqlite(Shell *shell);

#endif
