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

/* From here on allows only the system calls of a worker, which reads and may write: no socket, no exec, no fork, no
 * executable memory, no signal to other processes. All other calls fail with EPERM. `observes`: also the calls of an
 * observer, which uses inotify. -errno. */
int sandbox_filter(bool observes);

#endif
