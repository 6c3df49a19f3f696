/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chooses the worker for a channel that has something to read. Supervisor.
 *
 * The choice is the worker with the fewest channels among those that are not known to be occupied. A worker whose settings
 * no longer hold is chosen only if there is no other. Workers give idle channels back, so a channel at a worker was used a
 * moment ago. Therefore, if all workers have a channel and there are CPUs for more, a sibling is started. If all workers are
 * occupied, it is started even without a free CPU, because a request must not wait for another's run. If a bound forbids a
 * sibling, the least occupied worker gets the channel. If all are stuck, the channel waits.
 *
 * If a worker of the group wrote a moment ago, it is chosen: channels that write share commits in one worker, and in two
 * workers they would only take turns. A channel that only reads would wait there for each commit. The worker notices that,
 * and gives it back (`reads`); it then gets another worker, if there may be one.
 *
 * If the group has no worker, and a bound forbids one or the user has a worker for each CPU, the channel becomes a *guest*
 * of another worker of the same user, its *host*. Both must only read, whole databases, with the same limits. So a user's
 * channels to many databases do not take places from each other, and most need no start of a process. For some seconds after
 * a worker of the user died, no channel becomes a guest: a database that kills its workers must not kill those of other
 * databases again and again.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_PLACEMENT_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_PLACEMENT_H

#include "daemon/supervisor/workers/group.h"

typedef struct Channel Channel;

/* True if the group's workers may have guests, and its channels may be guests. */
bool placement_allows_guests(const Group *g);

/* Hands a channel that rests to a worker, if there is one that has time for it and no other needs to be started, so that its
 * first request needs no step of the supervisor. Does nothing if the group may write, because then the choice depends on the
 * channel's requests. May free the channel. */
void placement_hurry(Channel *c);

/* Hands the waiting channels of the group to workers, as far as there are workers for them. */
void placement_run(Group *g);

#endif
