/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. How long a request of a channel may compile, and how far past the time limit that its client gave it one
 * function of SQLite may compute. SQLite calls no progress handler meanwhile, and the supervisor, which kills a worker that
 * exceeds either with a job of its own, does not know of these. So an alarm is set, whose signal ends the process: what a
 * killed worker is to a job. Where SQLite compiles again inside sqlite3_step(), because another program changed the schema,
 * no alarm of its own is set: a run's deadline is seen behind that, or the worker is missed.
 *
 * The worker ends a second past such a limit. Where it had no CPU in that second, because it was stopped or the machine has
 * too much to do, it has up to four more: what else it has would be lost for nothing.
 */
#ifndef COMPILE_LIMIT_H
#define COMPILE_LIMIT_H

#include <stdint.h>

/* From now on, for whatever is compiled: jobs have the same limit. 0: none, as at first. */
void compile_limit_set(uint64_t usec);

/* Around one compile. */
void compile_limit_begin(void);
void compile_limit_end(void);

/* Around a slice of a run whose client gave it a time limit of its own, which the supervisor does not know either. It is two
 * calls of the kernel; a run without one costs nothing. */
void compile_limit_run_begin(uint64_t deadline_usec);
void compile_limit_run_end(void);

#endif
