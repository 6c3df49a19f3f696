/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The server of a rival: a child process that serves on one end of a socket pair. */
#ifndef SQLIPC_TOOLS_BENCH_CORE_CHILD_H
#define SQLIPC_TOOLS_BENCH_CORE_CHILD_H

#include <sys/types.h>

typedef struct Child {
        pid_t pid;
        int fd; /* our end */
} Child;

#define CHILD_INIT ((Child) { .fd = -1 })

/** Starts a child that runs serve(fd, userdata) on its end of a new socket pair of `type` (SOCK_STREAM, SOCK_DGRAM,
 * SOCK_SEQPACKET). The child succeeds if serve() returns 0 or more. The kernel kills it when this process dies. No exit
 * handler runs in the child, so that only its output to stderr appears. Returns a negative errno on error. */
int child_start(int type, int (*serve)(int fd, void *userdata), void *userdata, Child *ret);

/** Closes our end and waits at most one second for the child, then kills it. Sets `*child` to CHILD_INIT, for which this
 * function does nothing. Returns -EIO if the child failed. */
int child_stop(Child *child);

#endif
