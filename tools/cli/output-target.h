/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a name of output_redirect() leads to: standard output, a file, a command that reads what we write. */
#ifndef CLI_OUTPUT_TARGET_H
#define CLI_OUTPUT_TARGET_H

#include <glib.h>
#include <stdbool.h>

#include "feed.h"

typedef struct Target {
        char *name; /* owned; NULL: there is no such target */
        int fd;     /* owned; -1: a command that was not started yet */
        Feed feed;  /* of a command */
        bool is_terminal;
        bool tells_end; /* a pipe: poll() says when its reader left */
} Target;

#define TARGET_NONE ((Target) { .fd = -1, .feed = FEED_NONE })

void target_open_stdout(Target *ret);
/** A file is opened, a command is not started yet. -errno. */
int target_open(Target *ret, const char *name);
/** Before it is written to: a command is started, where it was not. -errno. */
int target_start(Target *target);
/** Closes it, waits for its command, and says how that ended if it failed. -errno of what was still to be
 * written; -ECANCELED where Ctrl-C ended the command; -ECHILD where it failed. */
int target_close(Target *target);

/** "ipcq-cli: " and the sentence, made harmless, to stderr. */
void output_say(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
