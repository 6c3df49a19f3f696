/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the pipe of a service that may be hostile. Library.
 *
 * The service can keep a copy of the read end. Flags such as O_NONBLOCK belong to the open file description, so the service
 * can change them at any time, and it can take bytes out of the pipe between a poll() and the read(). A read must not wait
 * even then:
 *
 *      preadv2(RWF_NOWAIT)           never waits; since Linux 6.5, unless the service has used splice(2) on the pipe
 *      vmsplice(SPLICE_F_NONBLOCK)   never waits; a seccomp filter may forbid it
 *      poll(), then read()           the last resort: a service that takes the bytes in between can make it wait
 *
 * Opening /proc/self/fd/N would give a separate file description, but fails if another user created the pipe.
 */
#ifndef SQLIPC_CLIENT_LIB_PIPE_READ_H
#define SQLIPC_CLIENT_LIB_PIPE_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Duplicates `fd`, which is borrowed, if it is the read end of a pipe; else returns -EBADMSG. The caller closes the copy. */
int pipe_read_copy(int fd);

/* Reads like read(), without waiting. 0: end-of-file; -EAGAIN: the pipe is empty; other -errno. */
ssize_t pipe_read(int fd, uint8_t *room, size_t size);

#endif
