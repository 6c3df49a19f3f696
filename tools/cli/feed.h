/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A command that reads what we write: of .output, or a pager. */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <sys/types.h>

/* What the shell ends with where it finds no such command, or may not run it. */
enum { FEED_NOT_EXECUTABLE = 126, FEED_NOT_FOUND = 127 };

typedef struct Feed {
        pid_t pid; /* 0: none */
        int fd;    /* to its standard input, non-blocking, ours alone; -1: closed */
} Feed;

#define FEED_NONE ((Feed) { .fd = -1 })

/** Starts `command` by the shell, on our standard output and error. 0 or -errno. */
int feed_start(const char *command, Feed *ret);
/** Ends its input. */
void feed_close(Feed *feed);
/** child_wait(). */
int feed_wait(Feed *feed, int timeout_msec);

#endif
