/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes Ctrl-C and other signals available as a descriptor that can be polled. The handler only records the signal; the
 * code that waits decides what it means:
 *
 *      at the prompt         the line is dropped; a second one at an empty prompt leaves (editor.c, shell.c)
 *      while a query runs    it is cancelled on the server (query.c); not interactive: and the program exits
 *      twice in a query      the shell does not wait for the rows that are still on their way
 */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_INTERRUPT_H
#define SQLIPC_TOOLS_CLI_OUTPUT_INTERRUPT_H

#include <stdbool.h>

enum { EXIT_INTERRUPTED = 130 };

/** Installs handlers for SIGINT (unless it is ignored, as under nohup), SIGTERM, SIGHUP and SIGWINCH. Returns 0 or
 * -errno. */
int interrupt_begin(void);
/** Readable after SIGINT, SIGTERM or SIGHUP, until interrupt_take(). */
int interrupt_fd(void);
/** Returns the number of SIGINTs since the last call; empties the descriptor. */
unsigned interrupt_take(void);
/** Returns true if there was a SIGINT since the last interrupt_take(). */
bool interrupt_pending(void);
/** Returns the number of SIGTERM or SIGHUP if one came, else 0: the caller must then end its work, and the program exits. */
int interrupt_leave(void);

/** Readable after the window was resized, until resized_take(). Only code that draws on the screen polls it. */
int resized_fd(void);
void resized_take(void);

#endif
