/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands whose name is the setting that they change. */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_COMMAND_SETTING_H
#define SQLIPC_TOOLS_CLI_COMMANDS_COMMAND_SETTING_H

#include "tools/cli/shell/command.h"

/** Command.run: sets the setting that has the command's name. Without arguments it shows the current value; the backslash
 * form of an on/off setting toggles it instead. */
int command_setting(Shell *shell, const Command *command, char **arguments);

/** Sets one setting as settings_set() does, and applies it to the shell. Reports a refused value. */
int command_set(Shell *shell, const char *name, const char *value);

#endif
