/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ipcq-cli --wait: waits until tables change, for scripts. */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_WAIT_TABLES_H
#define SQLIPC_TOOLS_CLI_COMMANDS_WAIT_TABLES_H

#include "tools/cli/shell/shell.h"

/** Waits until one of `tables` (none: of all tables) of the open database may have changed, after the change `since` (0:
 * from now on), or for --timeout, and writes the number of the last change. Reports errors, and sets the exit code:
 * EXIT_UNCHANGED after the timeout. */
void wait_tables(Shell *shell, const char *const *tables, uint64_t since);

#endif
