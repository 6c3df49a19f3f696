/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the user may have meant by a statement that the service refused. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include "shell.h"

/** What to add to the error `message` of `sql`: "did you mean Genre?"; to be freed, NULL: nothing. Sets `*offset`, if it is
 * -1, to where the name is. May ask the service for names, which replaces the connection's last error. */
char *suggest(Shell *shell, const char *message, const char *sql, int *offset);

#endif
