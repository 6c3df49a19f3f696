/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The user's own taste: ~/.config/ipcq/config, settings by name, and ~/.config/ipcq/init.sql, statements and commands. For
 * interactive shells only: what a script prints does not depend on who runs it. --no-init passes both over.
 */
#ifndef CLI_CONFIGURATION_H
#define CLI_CONFIGURATION_H

#include "shell.h"

/** Takes the settings of the file, which need not be there. What is wrong in it is said, with its key, and passed over. */
void configuration_read(Shell *shell);

/** Runs init.sql, if it is there; after the database was opened. */
void configuration_run_init(Shell *shell);

/** Where files of ours are: ~/.config/ipcq (XDG_CONFIG_HOME), with `name` below it. To be freed. */
char *configuration_path(const char *name);

/** ~/.local/state/ipcq/history (XDG_STATE_HOME), whose folder is made. To be freed; NULL where there is no place for it. */
char *configuration_history_path(void);

#endif
