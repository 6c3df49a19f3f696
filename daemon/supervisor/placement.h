/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which worker gets a channel that has something to read. Supervisor.
 *
 * The one with fewest channels, of those that nothing is known to occupy. A channel that is at a worker was used a moment
 * ago, so where all workers have one, and there are CPUs for more, a sibling starts; where all are occupied, it starts
 * whatever the CPUs do, for a request must not wait for another's run. Where a bound forbids that, the least occupied
 * worker gets it; if all are stuck, it waits.
 */
#ifndef SQLIPC_PLACEMENT_H
#define SQLIPC_PLACEMENT_H

#include "group.h"

/* Hands the channels of the group that wait to workers, as far as there are any. */
void placement_run(Group *g);

#endif
