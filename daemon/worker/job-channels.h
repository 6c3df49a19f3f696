/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The channels of the queue (job.h): they come from the supervisor, have turns as long as there is something
 * to do, and go back to it with their state, or are closed.
 */
#ifndef JOB_CHANNELS_H
#define JOB_CHANNELS_H

#include "job.h"

/* CHANNEL: takes over the message. One that cannot be taken up is reported closed. -errno of the control socket or epoll. */
int channels_add(JobQueue *q, ReceivedMessage *m);

/* CHANNEL_CLOSE. At once; where it is inside its own step, at the end of its turn; to be drained: when it is. */
int channels_close(JobQueue *q, const ChannelClose *m);

/* What its state asks for after a turn; it is not in the queue and goes back there, rests in the epoll, or is closed. */
int channels_settle(JobQueue *q, Channel *c);

/* epoll says `events` of it: it may be due for a turn. Frees nothing. */
void channels_on_events(JobQueue *q, Channel *c, uint32_t events);

/* From inside a step: those that something waits on go back to the supervisor, somebody else may have time for them. */
void channels_give_away(JobQueue *q);

/* Those that were quiet for long go back, those with half a request, or a last answer that nobody reads, are closed.
 * Returns when to look again. */
uint64_t channels_expire(JobQueue *q, uint64_t now_coarse_usec);

/* Since when nothing has been under way, on channels or else; UINT64_MAX: something is. */
uint64_t channels_idle_since(const JobQueue *q);

/* EXIT or GIVE_WAY, and the queue is leaving. Those that have answered all that they began go back to the supervisor, and on
 * elsewhere; where they cannot they are closed. Others follow in channels_settle(). */
void channels_leave(JobQueue *q);

/* The supervisor hears on which of them something has been under way for a while. */
void channels_report_progress(JobQueue *q);

/* The worker ends now: what is still under way is cut off, else as before. */
void channels_end(JobQueue *q);

/* Without a word. The queue is empty. */
void channels_free(JobQueue *q);

#endif
