/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells a worker that is stuck from one that got no CPU, when it does not obey an order. Supervisor.
 *
 * A worker looks at its orders every few milliseconds of its own CPU time (I7). If it is silent for a second, there are two
 * possible causes: it is in a call that nothing can interrupt, or the machine is so busy that the worker got only a few
 * milliseconds of CPU in that second. In the second case killing it would lose all its runs for nothing. Its CPU time tells
 * the two apart. A worker that is stopped, or waits for a disk, uses no CPU either, so the time that is granted has an end.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_GRACE_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_GRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How long a worker has between an order to end something and SIGKILL. */
#define GRACE_USEC UINT64_C(1000000)

typedef struct Grace {
        uint64_t cpu_usec;   /* a worker that has used this much CPU time in all is stuck */
        unsigned n_spared;
} Grace;

/* The worker (its process) is given an order now, and has `usec` to obey it. */
void grace_begin(Grace *g, pid_t worker, uint64_t usec);

/* True if the worker has not yet got the CPU time that it needs to obey. */
bool grace_is_starved(const Grace *g, pid_t worker);

/* Call when the time of grace_begin() has passed and the worker has not obeyed. True: the worker did not get the CPU time
 * that it needed, and has one second more. This is granted four times at most. */
bool grace_goes_on(Grace *g, pid_t worker);

#endif
