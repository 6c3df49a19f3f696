/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The channels of a worker, and checks that the worker still reads its sockets. Supervisor.
 *
 * A worker with channels does not report each request, so the supervisor has no deadline for them. Instead it sends a PING
 * every second, which the worker answers from its loop as well as from inside a step. A worker that owes an answer is in a
 * call of SQLite that cannot be interrupted:
 *
 *      for 100 ms                     it is given no more channels (placement.h)
 *      for a second                   channels with unread requests are closed: their clients open others
 *      for as long as any run may     it is killed
 *      take, and a second
 *
 * The last two are delayed while the worker had no CPU to answer with; that delay is bounded (grace.h).
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_WORKER_CHANNELS_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_WORKER_CHANNELS_H

#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/workers/worker.h"

/* worker_add_channel(): the worker has the channel from now on. worker_remove_channel(): it no longer has it. */
void worker_add_channel(Worker *w, Channel *c);
void worker_remove_channel(Worker *w, Channel *c);

/* The worker is dead: ends its channels. */
void worker_lose_channels(Worker *w);

/* True if the worker has a channel to a published database with limits that are no longer the worker's. */
bool worker_has_outdated_channels(const Worker *w);

/* The worker's settings no longer hold: its channels close after their runs, except those of guests whose database is
 * published as before, with the same limits. */
void worker_end_channels(Worker *w);

/* Sends a PING. If one is under way, another is sent when that is answered. Returns the number of the PING: once it is
 * answered (worker_has_answered()), the worker has read all messages that were sent before it. */
uint64_t worker_ping(Worker *w);
bool worker_has_answered(const Worker *w, uint64_t ping);

/* True if the worker has owed an answer for at least `usec`. */
bool worker_is_deaf(const Worker *w, uint64_t usec);

/* worker_is_stuck_now(): the worker gave a channel back because it is inside the step of another run, or it takes no channel
 * because its socket is full. It is given no channel for a while, unless it shows before that it does something else
 * (worker_is_not_stuck()). */
void worker_is_stuck_now(Worker *w);
void worker_is_not_stuck(Worker *w);

/* True if new channels are better placed at another worker. */
bool worker_is_stuck(const Worker *w);

/* True if something other than `c` may run in the worker. A run that lasts is known; a shorter one may belong to any of its
 * channels. */
bool worker_is_held_up_by_others(const Worker *w, const Channel *c);

/* True if a channel there has a run under way, or answers that its client has not read, as far as the supervisor knows. */
bool worker_has_busy_channels(const Worker *w);

/* When a channel there was last used, as far as the supervisor knows; 0: it has none. */
uint64_t worker_channels_used_usec(const Worker *w);

/* The number of known runs there that want a CPU. */
unsigned worker_channels_n_runnable(const Worker *w);

/* Handles a message about a channel, or PONG. -EBADMSG: the worker may not send this. */
int worker_channels_dispatch(Worker *w, const Message *m);

#endif
