/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A round: all channels with requests have short turns, one after the other, on one connection of the engine
 * and in one read transaction, because its locks cost more than a point query. The answers wait in the pages of the channels
 * until the transaction has ended.
 *
 * 1. The transaction begins with the first request. Other requests run in it only if they had begun to arrive before: the
 *    worker has read them, or epoll has reported them. Any other request ends the transaction and begins another.
 * 2. It ends before any answer is sent, also if a page is full. The channels after that one share another transaction.
 * 3. A round takes a millisecond, as the turn of one channel does. Channels without a turn by then keep their place in the
 *    queue.
 * 4. A slow request delays no answer: before a request whose statement is not known to be quick, the answers that wait are
 *    sent. If a request lasts longer than expected, they are sent from inside its step.
 * 5. A channel with a request under way, or with a long last turn, has its turn alone.
 * 6. All channels of a round have the same database: those of guests (guest-database.h) have rounds of their own.
 * 7. The socket of a channel is read in its turn, so that the supervisor sees which channels wait if the worker is stuck.
 *
 * A channel can leave the worker while another one of its round is inside a step.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_ROUND_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_ROUND_H

#include "daemon/worker/core/served-channel.h"
#include "daemon/worker/core/task-queue.h"

/* Channels in the order in which they came. */
typedef struct ChannelList {
        ServedChannel *first, *last;
} ChannelList;

typedef struct ChannelRound {
        ChannelList waiting; /* they have had no turn yet; their tasks are in the queue */
        ChannelList ran;     /* their answers wait to be sent */
        uint64_t until_usec; /* when it ends; UINT64_MAX: not known yet */
        bool sent;           /* the answers of `ran` were sent from inside a step */
        unsigned n_turns;
} ChannelRound;

/* Gives turns to the channel, which is READY and in the queue, and to those that can share its round. -errno of epoll or the
 * control socket. */
int channel_round(ChannelRound *round, TaskQueue *tasks, ServedChannel *first);

/* Sends the answers that wait, after the end of the transaction. */
void channel_round_send(ChannelRound *round);

/* Called from inside a step: sends the answers that wait if the round should have ended. */
void channel_round_on_progress(ChannelRound *round, uint64_t now_usec);

/* The channel is about to be freed. */
void channel_round_forget(ChannelRound *round, ServedChannel *c);

#endif
