/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The channels of a worker: they come from the supervisor, get turns while there is something to do, and
 * go back to the supervisor with their state, or are closed.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_SET_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_SET_H

#include "daemon/worker/core/channel-round.h"
#include "daemon/worker/core/served-channel.h"
#include "daemon/worker/core/task-queue.h"

struct ChannelSet {
        ServedChannel *first;
        ServedChannel *awake; /* those with memory that are awake (served-channel.h) */
        ChannelRound round;  /* the one that is under way */
        GuestDatabase *guests; /* databases of channels beside the worker's own */
        TaskQueue *tasks;    /* borrowed; has those that are not idle */
        JobContext *context; /* borrowed */
};

/* Handles CHANNEL: takes over the message. A channel that cannot be set up is reported as closed. -errno of the control
 * socket or epoll. */
int channel_set_add(ChannelSet *s, ReceivedMessage *m);

/* Handles CHANNEL_CLOSE. The channel closes at once; if it is inside its own step, at the end of its turn; with `drain`, as
 * soon as it is drained. -errno of epoll. */
int channel_set_close(ChannelSet *s, const ChannelClose *m);

/* Looks at the channels that are awake. Those with requests get turns. True: there is one. */
bool channel_set_look(ChannelSet *s);

/* The same, and the others fall asleep: an event wakes the worker when they need a turn. */
bool channel_set_fall_asleep(ChannelSet *s);

/* Called from inside a step: gives waiting channels back to the supervisor, because another worker may have time for
 * them. */
void channel_set_give_away(ChannelSet *s);

/* Gives channels back that have been quiet for long. Closes those that have only a part of a request, or a last answer that
 * the client does not read. Returns when to check again, UINT64_MAX: no need to. */
uint64_t channel_set_expire(ChannelSet *s, uint64_t now_usec);

/* Since when nothing has been under way, on channels or otherwise; UINT64_MAX: something is under way. */
uint64_t channel_set_idle_since(const ChannelSet *s);

/* EXIT or GIVE_WAY came, and context->leaving is set. Channels that have answered all requests that they began go back to
 * the supervisor, and from there to another worker; those that cannot move are closed. The other channels follow after
 * their turns. */
void channel_set_leave(ChannelSet *s);

/* Reports the channels on which a request is under way to the supervisor. */
void channel_set_report_progress(ChannelSet *s);

/* The worker ends now: cuts off requests under way, then does the same as channel_set_leave(). */
void channel_set_end(ChannelSet *s);

/* Frees all channels without reporting them. */
void channel_set_free(ChannelSet *s);

#endif
