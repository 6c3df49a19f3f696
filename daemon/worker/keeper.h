/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The parent of an engine's worker process, which does for the supervisor what the kernel does for a child of
 * the supervisor: it kills the worker when it is told to, or when the supervisor is gone, and tells how the worker ended.
 *
 * It needs this process because the worker may be inside a call that ends only when a server answers, if at all, and because
 * the supervisor may not signal a process of another user. It reads nothing that a server or client has sent.
 */
#ifndef SQLIPC_DAEMON_WORKER_KEEPER_H
#define SQLIPC_DAEMON_WORKER_KEEPER_H

#define KEEPER_IN_WORKER 1

/* Waits for the supervisor's first message on the connection, and makes the worker process. Returns KEEPER_IN_WORKER there,
 * with the descriptors in their places (protocol.h), and STARTED sent. In the keeper itself it returns 0 after the worker
 * has ended and that was told, or if the supervisor has left before. -EBADMSG: the first message is invalid; other
 * -errno. */
int keeper_run(int connection_fd);

#endif
