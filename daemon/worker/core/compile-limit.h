/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Limits how long a request of a channel may compile, and how far past the time limit that its client gave it
 * one SQL function may compute. SQLite calls no progress handler during either, for example. If this happens with a job, the
 * supervisor kills the worker; but it does not know of a channel's requests. So this module sets an alarm, whose signal ends
 * the process, which has the same effect. The engine calls it around each compile. When SQLite compiles again inside a step,
 * because another program changed the schema, no alarm is set for that. The run's deadline then acts after the compile, or
 * the worker misses a PING.
 *
 * The worker ends a second after such a limit. If it had no CPU in that second, because it was stopped or the machine is
 * overloaded, it gets up to four more: otherwise its other runs would be lost for nothing.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_COMPILE_LIMIT_H
#define SQLIPC_DAEMON_WORKER_CORE_COMPILE_LIMIT_H

#include <stdint.h>

/* Sets the limit, in usec, for all compiles from now on, those of jobs, too. 0: no limit, which is the initial state. */
void compile_limit_set(uint64_t usec);

/* Called before and after one compile. */
void compile_limit_begin(void);
void compile_limit_end(void);

/* Called before and after a slice of a run to which its client gave a time limit, which the supervisor does not know:
 * `deadline_usec` (CLOCK_MONOTONIC). Each costs a system call; a run without such a limit costs nothing. */
void compile_limit_run_begin(uint64_t deadline_usec);
void compile_limit_run_end(void);

#endif
