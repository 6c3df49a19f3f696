/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A statement that runs over and over. On a terminal the screen is drawn anew each time, what changed stands out, and
 * Ctrl-C or q ends it; what was on the screen moves up, and the last picture stays. Elsewhere the results follow each
 * other with an empty line between, in the shell's mode, and Ctrl-C ends it.
 */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "shell.h"

#define WATCH_USEC_DEFAULT ((uint64_t) 2 * 1000 * 1000)

typedef struct WatchOptions {
        const char *sql;
        uint64_t interval_usec; /* from the end of a run to the start of the next */
        uint64_t n_rounds;      /* 0: without end */
} WatchOptions;

/** 0 once the user ends it on a terminal; -ECANCELED elsewhere; a failure of the statement, which was told, ends it
 * as well, but for a service or bus that went: then the next round tries again. */
int watch_run(Shell *shell, const WatchOptions *options);

#endif
