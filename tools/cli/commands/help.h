/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the texts of .help from the table of commands. */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_HELP_H
#define SQLIPC_TOOLS_CLI_COMMANDS_HELP_H

#include <glib.h>

/** A line for each command. The caller frees it. */
char *help_list(void);

/** The full description of every command. The caller frees it. */
char *help_everything(void);

/** The full description of the command with this name, with or without its "." or "\"; else a line for each command whose
 * description contains the word. The caller frees it. NULL: no match, and `ret_message`, which the caller frees, says so. */
char *help_topic(const char *topic, char **ret_message);

#endif
