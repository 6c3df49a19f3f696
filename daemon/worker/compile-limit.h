/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. How long a request of a channel may compile. SQLite calls no progress handler meanwhile, and the supervisor,
 * which kills a worker that compiles a job of its own for too long, does not know of this one. So an alarm is set, whose
 * signal ends the process: what a killed worker is to a job. Where SQLite compiles again inside sqlite3_step(), because
 * another program changed the schema, no alarm is set: a run's deadline is seen behind that, or the worker is missed.
 */
#ifndef COMPILE_LIMIT_H
#define COMPILE_LIMIT_H

#include <stdint.h>

/* From now on, for whatever is compiled: jobs have the same limit. 0: none, as at first. */
void compile_limit_set(uint64_t usec);

/* Around one compile. */
void compile_limit_begin(void);
void compile_limit_end(void);

#endif
