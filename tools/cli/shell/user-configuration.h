/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The user's own configuration: ~/.config/ipcq/config holds settings by name, ~/.config/ipcq/init.sql statements and
 * commands. Only interactive shells read them, so that the output of a script does not depend on the user. --no-init skips
 * both.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_USER_CONFIGURATION_H
#define SQLIPC_TOOLS_CLI_SHELL_USER_CONFIGURATION_H

#include "tools/cli/shell/shell.h"

/** Applies the settings of the file, which need not exist. Reports each wrong key, and skips it. */
void user_configuration_read(Shell *shell);

/** Runs init.sql, if it exists. Must be called after the database was opened. */
void user_configuration_run_init(Shell *shell);

/** The path of `name` in the configuration folder, ~/.config/ipcq (XDG_CONFIG_HOME). The caller frees it. */
char *user_configuration_path(const char *name);

/** ~/.local/state/ipcq/history (XDG_STATE_HOME); creates the folder. The caller frees it; NULL if the folder cannot be
 * created. */
char *user_configuration_history_path(void);

#endif
