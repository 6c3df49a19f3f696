/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The channels that a worker has, and whether it still looks at its sockets. Supervisor.
 *
 * A worker with channels reports nothing about their requests, so no deadline of ours runs for them. It is asked (PING)
 * every second instead, and answers from its loop as well as from inside a step. What it owes an answer for is one of
 * SQLite's that cannot be interrupted:
 *
 *      deaf for 100 ms                it is given no channel while others can have it
 *      for a second                   channels whose requests lie unread are given up: their clients open others
 *      for as long as any run may     it is killed
 *      take, and a second
 *
 * The last two not as long as it had no CPU to answer with, which has an end (grace.h).
 */
#ifndef SQLIPC_WORKER_CHANNELS_H
#define SQLIPC_WORKER_CHANNELS_H

#include "channel.h"
#include "worker.h"

/* The channel is its own from now on, or no longer. */
void worker_add_channel(Worker *w, Channel *c);
void worker_remove_channel(Worker *w, Channel *c);

/* It is dead: its channels go with it. */
void worker_lose_channels(Worker *w);

/* They close, each after its run. */
void worker_doom_channels(Worker *w);

/* Asks whether it is there; where that is asked already, once more as soon as it answers. Returns the question's number:
 * once it is answered, all that was said before has been read. */
uint64_t worker_ping(Worker *w);
bool worker_has_answered(const Worker *w, uint64_t ping);

/* It has owed an answer for longer than that. */
bool worker_is_deaf(const Worker *w, uint64_t usec);

/* It gave a channel back because it sits in another's step: nothing is placed there for a while, unless it does something
 * else first. */
void worker_is_stuck_now(Worker *w);
void worker_is_not_stuck(Worker *w);

/* New channels do better elsewhere. */
bool worker_is_stuck(const Worker *w);

/* Something that is not `c` may run there: what lasts is known, and of the rest that it may be any channel's. */
bool worker_is_held_up_by_others(const Worker *w, const Channel *c);

/* Something runs on a channel there, as far as we know; or waits for its reader. */
bool worker_has_busy_channels(const Worker *w);

/* Channels are all that it has, and none is known to run: it may go, and they to others. */
bool worker_may_give_way(const Worker *w);

/* When it was last asked for something, as far as we know. */
uint64_t worker_used_usec(const Worker *w);

/* A message about the channel of that number, or PONG. -EBADMSG: it may not say that. */
int worker_channels_dispatch(Worker *w, const Message *m, uint64_t number);

#endif
