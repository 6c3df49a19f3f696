/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The other side of a rival: a child process that serves on one end of a socket pair. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <sys/types.h>

typedef struct Child {
        pid_t pid;
        int fd; /* our end */
} Child;

#define CHILD_INIT ((Child) { .fd = -1 })

/** Starts a child that runs serve(fd, userdata) on its end of a new socket pair of `type` (SOCK_STREAM, SOCK_DGRAM,
 * SOCK_SEQPACKET); it ended well where that returns 0 or more, and dies with us. Only what it says to stderr is seen: no
 * exit handler runs in it. Negative errno. */
int child_start(int type, int (*serve)(int fd, void *userdata), void *userdata, Child *ret);

/** Closes our end, waits for the child, for a second at most, then kills it; `*child` is CHILD_INIT then, for which this
 * does nothing. -EIO: it did not end well. */
int child_stop(Child *child);

#endif
