/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Restricts what the process can do, even if SQLite is subverted: resource limits of the kernel and a filter
 * of system calls.
 */
#ifndef SQLIPC_DAEMON_WORKER_SANDBOX_SANDBOX_H
#define SQLIPC_DAEMON_WORKER_SANDBOX_SANDBOX_H

#include "daemon/protocol/protocol.h"

/* Makes the process die with the supervisor, dump no core, gain no privileges, and take no more address space than the heap
 * and 512 MiB. -errno. */
int sandbox_limit(const Setup *setup);

/* Needs of a process beside the calls of a worker. */
typedef enum SandboxNeeds {
        SANDBOX_INOTIFY = 1 << 0, /* an observer */
        SANDBOX_NETWORK = 1 << 1, /* connections to servers, and the threads in which a library looks up their names */
        SANDBOX_TERMINAL = 1 << 2, /* the size and mode of its terminal, for the progress of a tool */
} SandboxNeeds;

/* From here on allows only the system calls of a worker, which reads and may write: no socket, no exec, no fork, no
 * executable memory, no signal to other processes; and those that it `needs`, a mask. All other calls fail with EPERM.
 * -errno. */
int sandbox_filter(SandboxNeeds needs);

/* From here on allows only the calls of the keeper, which waits for a process, and for the supervisor. -errno. */
int sandbox_filter_keeper(void);

#endif
