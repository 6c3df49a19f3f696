/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A command whose standard input we write: of .output, or a pager. */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_FEED_H
#define SQLIPC_TOOLS_CLI_OUTPUT_FEED_H

#include <sys/types.h>

/* The exit codes of sh if the command does not exist, or cannot be executed. */
enum { FEED_NOT_EXECUTABLE = 126, FEED_NOT_FOUND = 127 };

typedef struct Feed {
        pid_t pid; /* 0: no process */
        int fd;    /* the command's standard input, non-blocking, not inherited by children; -1: closed */
} Feed;

#define FEED_NONE ((Feed) { .fd = -1 })

/** Starts `command` through sh, with our standard output and error. Returns 0 or -errno. */
int feed_start(const char *command, Feed *ret);
/** Closes its input. */
void feed_close(Feed *feed);
/** Waits as program_wait() does; except after -ETIMEDOUT, feed->pid is then 0. */
int feed_wait(Feed *feed, int timeout_msec);

#endif
