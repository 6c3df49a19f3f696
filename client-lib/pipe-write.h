/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes to the pipe of a service that may be hostile. Library.
 *
 * As in pipe-read.h, the service can change O_NONBLOCK at any time, and fill the pipe between a poll() and the write(). A
 * write must not wait even then, and must not raise SIGPIPE when the service closes its end:
 *
 *      pwritev2(RWF_NOWAIT)      never waits; since Linux 6.5, unless the service has used splice(2) on the pipe
 *      poll(), then write()      the last resort, at most PIPE_BUF bytes, for which there is room after a poll(): a service
 *                                that fills the pipe in between can make it wait
 *
 * There is no MSG_NOSIGNAL for pipes. SIGPIPE is therefore blocked in this thread during the write, and consumed if the
 * write has caused it. vmsplice() would lend the pages instead of copying them.
 */
#ifndef SQLIPC_CLIENT_LIB_PIPE_WRITE_H
#define SQLIPC_CLIENT_LIB_PIPE_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Duplicates `fd`, which is borrowed, if it is the write end of a pipe; else returns -EBADMSG. The caller closes it. */
int pipe_write_copy(int fd);

/* Writes like write(), without waiting. -EAGAIN: the pipe is full; -EPIPE: the other end is closed; other -errno. */
ssize_t pipe_write(int fd, const uint8_t *bytes, size_t size);

#endif
