/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop that takes units (a statement, a dot-command) from a script or from the prompt, and runs them. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_LOOP_H
#define SQLIPC_TOOLS_CLI_SHELL_LOOP_H

#include "tools/cli/shell/script.h"
#include "tools/cli/shell/shell.h"

/** Runs all units of `script`. Returns 0 or a failure: with `.bail` the first one, at once. Takes ownership of the script
 * and frees it. */
int loop_run_script(Shell *shell, Script *script);

/** Runs one statement or dot-command as if it were typed. */
int loop_run_unit(Shell *shell, const Unit *unit);

#endif
