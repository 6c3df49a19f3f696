/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands that are named like the setting that they set. */
#ifndef CLI_COMMAND_SETTING_H
#define CLI_COMMAND_SETTING_H

#include "command.h"

/** Command.run: sets the setting of the command's name to the arguments. Without any it shows what holds; as a
 * backslash command, of what is on or off, it turns to the other. */
int command_setting(Shell *shell, const Command *command, char **arguments);

/** Sets one, as settings_set(), and has the shell follow. A refusal is told. */
int command_set(Shell *shell, const char *name, const char *value);

#endif
