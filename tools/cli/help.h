/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What .help shows, from the table of commands. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <glib.h>

/** All commands, a line each. To be freed. */
char *help_list(void);

/** All commands with everything about each. To be freed. */
char *help_everything(void);

/** Everything about the command of this name, with or without its "." or "\"; else a line for each that says the
 * word. NULL: none, `ret_message`, to be freed, says so. To be freed. */
char *help_topic(const char *topic, char **ret_message);

#endif
