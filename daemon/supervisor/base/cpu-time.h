/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU time of another process. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_CPU_TIME_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_CPU_TIME_H

#include <stdint.h>
#include <sys/types.h>

/* CPU time of the whole life of `pid`; 0: it is dead. */
uint64_t cpu_time_usec(pid_t pid);

#endif
