/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ctrl-C. A thread of its own waits for SIGINT, so nothing runs in a signal handler, and the main thread may block in
 * the library or in a write as long as it likes.
 *
 *      no cursor yet       leave at once: the daemon ends what a vanished client asked for
 *      cursor, first time  cancel the run; the rows that are on their way still come, then the main thread leaves
 *      second time         leave at once
 *
 * Leaving is exit code EXIT_INTERRUPTED.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

#include "sqlipc.h"

enum { EXIT_INTERRUPTED = 130 };

/** Starts to watch; before any other thread exists. Does nothing where SIGINT is ignored, as under nohup. */
int interrupt_begin(void);
/** The cursor to cancel, borrowed until this is called with NULL. */
void interrupt_set_cursor(sqlipc_cursor *cursor);
/** Whether there was one. */
bool interrupt_happened(void);

#endif
