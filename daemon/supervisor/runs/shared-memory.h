/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of a channel, which client and worker map (channel-memory.h). Supervisor.
 *
 * A user's channels get memory up to MEMORY_OF_USER_MAX; further channels go without. While no worker has the channel, the
 * supervisor takes the worker's part: it writes answers that are left, and sees that requests wake it. It maps the memory
 * only for that long. The client may write anything into it, and punch holes: the channel ends if the kernel cannot fill
 * one, and the supervisor goes on.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_SHARED_MEMORY_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_SHARED_MEMORY_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/user.h"

typedef struct SharedMemory SharedMemory;

/* NULL: there is none for the user, or no descriptor for it. */
SharedMemory *shared_memory_new(User *u);

/* NULL is allowed. Returns NULL. */
SharedMemory *shared_memory_free(SharedMemory *m);

int shared_memory_fd(const SharedMemory *m);

/* True if the memory has requests that no worker has read. */
bool shared_memory_has_requests(const SharedMemory *m);

/* Writes as many bytes of an answer as there is room for, and wakes the client through `socket_fd`. Returns their number; if
 * these are not all, the client sends a byte when there is room. -EPIPE: the client is gone; -EBADMSG: it broke the rules;
 * -EFAULT: no memory for it; -errno of mmap(). */
ssize_t shared_memory_write(const SharedMemory *m, Bytes bytes, int socket_fd);

/* From now on, the client sends a byte with its next request. True: a request waits already. Also if the memory cannot be
 * mapped: then a worker looks. */
bool shared_memory_rest(const SharedMemory *m, int socket_fd);

#endif
