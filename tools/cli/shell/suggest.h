/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guesses what the user meant by a statement that the service refused. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_SUGGEST_H
#define SQLIPC_TOOLS_CLI_SHELL_SUGGEST_H

#include "tools/cli/shell/shell.h"

/** Returns a hint for the error `message` of `sql`: "did you mean Genre?"; the caller frees it. NULL: none. If `*offset` is
 * -1, sets it to the position of the name. May ask the service for names, which replaces the connection's last error. */
char *suggest(Shell *shell, const char *message, const char *sql, int *offset);

#endif
