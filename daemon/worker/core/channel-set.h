/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The channels of the queue (job-queue.h): they come from the supervisor, get turns while there is something
 * to do, and go back to the supervisor with their state, or are closed.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_SET_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_SET_H

#include "daemon/worker/core/job-queue.h"

/* Handles CHANNEL: takes over the message. A channel that cannot be set up is reported as closed. -errno of the control
 * socket or epoll. */
int channel_set_add(JobQueue *q, ReceivedMessage *m);

/* Handles CHANNEL_CLOSE. The channel closes at once; if it is inside its own step, at the end of its turn; with `drain`, as
 * soon as it is drained. */
int channel_set_close(JobQueue *q, const ChannelClose *m);

/* Acts on the channel's state after a turn. The channel is not in the queue: it is put there again, waits in the epoll, or
 * goes to the supervisor. */
int channel_set_settle(JobQueue *q, ServedChannel *c);

/* Handles `events` of epoll for a channel, which may be due for a turn then. Frees nothing. */
void channel_set_on_events(JobQueue *q, ServedChannel *c, uint32_t events);

/* Called from inside a step: gives waiting channels back to the supervisor, because another worker may have time for
 * them. */
void channel_set_give_away(JobQueue *q);

/* Gives channels back that have been quiet for long. Closes those that have only a part of a request, or a last answer that
 * the client does not read. Returns when to check again. */
uint64_t channel_set_expire(JobQueue *q, uint64_t now_coarse_usec);

/* Since when nothing has been under way, on channels or otherwise; UINT64_MAX: something is under way. */
uint64_t channel_set_idle_since(const JobQueue *q);

/* EXIT or GIVE_WAY came, and the queue is leaving. Channels that have answered all requests that they began go back to the
 * supervisor, and from there to another worker; those that cannot move are closed. The other channels follow in
 * channel_set_settle(). */
void channel_set_leave(JobQueue *q);

/* Reports the channels on which a request is under way to the supervisor. */
void channel_set_report_progress(JobQueue *q);

/* The worker ends now: cuts off requests under way, then does the same as channel_set_leave(). */
void channel_set_end(JobQueue *q);

/* Frees all channels without reporting them. The queue is empty. */
void channel_set_free(JobQueue *q);

#endif
