/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The target of output_redirect(): standard output, a file, or a command whose input we write. */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_OUTPUT_TARGET_H
#define SQLIPC_TOOLS_CLI_OUTPUT_OUTPUT_TARGET_H

#include <glib.h>
#include <stdbool.h>

#include "tools/cli/output/feed.h"

typedef struct Target {
        char *name; /* owned; NULL: no target */
        int fd;     /* owned; -1: a command that is not running yet */
        Feed feed;  /* of a command */
        bool is_terminal;
        bool tells_end; /* a pipe: poll() reports that its reader has closed it */
} Target;

#define TARGET_NONE ((Target) { .fd = -1, .feed = FEED_NONE })

void target_open_stdout(Target *ret);
/** Opens a file; only notes a command, which target_start() starts. Returns -errno. */
int target_open(Target *ret, const char *name);
/** Must be called before writing: starts the command, if it is not running. Returns -errno. */
int target_start(Target *target);
/** Closes the target, waits for its command, and reports a failure of the command. Returns -errno of writing the rest;
 * -ECANCELED if Ctrl-C ended the command; -ECHILD if it failed. */
int target_close(Target *target);

/** Writes "ipcq-cli: " and the sentence to stderr, with control characters escaped. */
void output_say(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
