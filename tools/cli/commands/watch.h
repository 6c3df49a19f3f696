/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a statement again whenever its result may have changed, or by the clock. On a terminal each result replaces the
 * previous one on the screen, with the changes marked, and Ctrl-C or q ends it; the earlier contents of the screen scroll
 * up, and the last result stays. Elsewhere the results are written one after the other, with an empty line between them, in
 * the shell's mode, and Ctrl-C ends it.
 */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_WATCH_H
#define SQLIPC_TOOLS_CLI_COMMANDS_WATCH_H

#include "tools/cli/shell/shell.h"

typedef struct WatchOptions {
        const char *sql;
        uint64_t interval_usec; /* from the end of a run to the start of the next; 0: after each change */
        uint64_t n_rounds;      /* 0: no limit */
} WatchOptions;

/** Returns 0 if the user ends it on a terminal; -ECANCELED elsewhere. A failure of the statement, which has been reported,
 * ends it as well, unless the service or the bus is gone: then the next round tries again. */
int watch_run(Shell *shell, const WatchOptions *options);

#endif
