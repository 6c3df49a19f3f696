/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ctrl-C and what else reaches the shell as a signal, as a descriptor that can be polled. Nothing runs in a handler but the
 * note that it came, so that whoever waits decides what it means:
 *
 *      at the prompt         the line is dropped; a second one at an empty prompt leaves (editor.c, shell.c)
 *      while a query runs    it is cancelled on the server (query.c); not interactive: and the program leaves
 *      twice in a query      the rows that are still on their way are not waited for
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

enum { EXIT_INTERRUPTED = 130 };

/** Starts to watch SIGINT (not where it is ignored, as under nohup), SIGTERM, SIGHUP and SIGWINCH. 0 or -errno. */
int interrupt_begin(void);
/** Readable once one of the first three came that was not taken yet. */
int interrupt_fd(void);
/** How many SIGINT came since the last call; empties the descriptor. */
unsigned interrupt_take(void);
/** Whether there was one that nobody took. */
bool interrupt_pending(void);
/** SIGTERM or SIGHUP came: end what runs and leave. The signal's number, else 0. */
int interrupt_leave(void);

/** Readable once the window has another size, until that is taken: for who draws on it. Nobody else is woken. */
int resized_fd(void);
void resized_take(void);

#endif
