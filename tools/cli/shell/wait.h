/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits for the library during a call that is not a query: query.c has a loop of its own. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_WAIT_H
#define SQLIPC_TOOLS_CLI_SHELL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/sqlipc.h"

/** Waits for the connection, which does not block, and processes what has come. `cancels`: or waits for Ctrl-C. `until`: but
 * not longer; microseconds of CLOCK_MONOTONIC. Returns 0; -ECANCELED after Ctrl-C; or the error of waiting. */
int wait_for_library(sqlipc_connection *connection, bool cancels, uint64_t until);

/** Returns -ECANCELED after Ctrl-C, which is taken, else 0. */
int wait_check_cancelled(void);

#endif
