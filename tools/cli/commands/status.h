/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* .status and .limit: versions, bus and user of the shell, the tables that it may read, its running work, and its limits. */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_STATUS_H
#define SQLIPC_TOOLS_CLI_COMMANDS_STATUS_H

#include "tools/cli/shell/shell.h"

/** Writes versions, bus, user, database and our statements, runs and channels. Lines that the service does not answer are
 * left out. Returns 0, or an error, which has been reported. */
int status_print(Shell *shell);

/** Writes our limits on the open database, a line each. Returns 0, or an error, which has been reported. */
int status_print_limits(Shell *shell);

#endif
