/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* .status and .limit: who talks to whom, what it may read, what it has under way, and how much of it. */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include "shell.h"

/** Writes versions, bus, user, database and what we have under way there. What the service does not say is left out. 0, or a
 * failure that was told. */
int status_print(Shell *shell);

/** Writes the limits that hold for us on the open database, as a result of three columns. 0, or a failure that was told. */
int status_print_limits(Shell *shell);

#endif
