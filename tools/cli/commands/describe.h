/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a table or view for people: columns, indexes, keys, triggers; or lists all tables and views. */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_DESCRIBE_H
#define SQLIPC_TOOLS_CLI_COMMANDS_DESCRIBE_H

#include "tools/cli/shell/shell.h"

/** Writes the parts of `name`, a table or view, and the tables that refer to it. In a mode for programs it writes only the
 * columns, as it does for PostgreSQL. Returns 0; -ENOENT, which has been reported; else as query_run() does. */
int describe_relation(Shell *shell, const char *name);

/** Writes a list of tables and views, with their kinds, as a result. Returns as query_print() does. */
int describe_all(Shell *shell);

#endif
