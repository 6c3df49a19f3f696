/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a channel: its states, the events between them, and the reasons for which it ends. Pure.
 *
 *         /-----------------------\
 *         |                       v
 *      RESTING --> WAITING --> AT_WORKER --> LEAVING --> CLOSING --> freed
 *         ^           ^            |            |
 *         |           \------------+            |
 *         +------------------------+            |
 *         \------- DRAINING <------+------------/
 *
 * These are all transitions; channel_life_move() makes no others. A channel is freed in any state: if it ends in a state
 * without a worker, if its worker says that it is closed, and if its worker is dead.
 *
 *      from       to         when
 *      RESTING    WAITING    its socket is readable
 *      RESTING    AT_WORKER  it was just opened, and a worker has time for it
 *      WAITING    AT_WORKER  a worker was chosen (placement.h)
 *      AT_WORKER  RESTING    CHANNEL_RESTED: the worker gave it back
 *      AT_WORKER  WAITING    CHANNEL_RESTED, and a request waits
 *      AT_WORKER  DRAINING   CHANNEL_RESTED or CHANNEL_CLOSED, with answers that its client has not read
 *      AT_WORKER  LEAVING    it ends gently: CHANNEL_CLOSE was sent, and its worker first answers the request under way
 *      AT_WORKER  CLOSING    it ends now: CHANNEL_CLOSE was sent
 *      LEAVING    DRAINING   CHANNEL_CLOSED, or a CHANNEL_RESTED that crossed CHANNEL_CLOSE, with unread answers
 *      LEAVING    CLOSING    it ends now, for instance because the request was not answered in time
 *      DRAINING   RESTING    the client has read the answers
 *      DRAINING   WAITING    the same, and a request waits
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_CHANNEL_LIFE_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_CHANNEL_LIFE_H

#include <stdbool.h>

typedef enum ChannelState {
        CHANNEL_RESTING,   /* no process reads its socket */
        CHANNEL_WAITING,   /* a request waits for a worker */
        CHANNEL_DRAINING,  /* the supervisor writes answers that the client has not read, and reads nothing */
        CHANNEL_AT_WORKER,
        CHANNEL_LEAVING,   /* as AT_WORKER, but its worker takes no more requests, and closes it once it has answered */
        CHANNEL_CLOSING,   /* its worker was told to close it */
        CHANNEL_STATE_MAX,
} ChannelState;

/* Why channel_end() is called. */
typedef enum ChannelEndReason {
        CHANNEL_END_NONE,
        CHANNEL_END_CLIENT_GONE,  /* the session has ended */
        CHANNEL_END_HANGUP,       /* the client closed its end */
        CHANNEL_END_NO_PLACE,     /* no worker had time for it: QueueTimeoutSec=. A call over the bus would report Busy */
        CHANNEL_END_UNREAD,       /* DRAINING took too long */
        CHANNEL_END_UNANSWERED,   /* LEAVING took too long */
        CHANNEL_END_UNHEARD,      /* its worker does not read its sockets, so the client should open another channel */
        CHANNEL_END_IDLE,         /* StatementIdleSec= has passed */
        CHANNEL_END_RELEASED,     /* its client allows that, and its user opened another one past a limit */
        CHANNEL_END_UNPUBLISHED,  /* its database is no longer published */
        CHANNEL_END_RIGHTS,       /* its client may have lost the right to the database, and must ask again */
        CHANNEL_END_OUTDATED,     /* its worker has settings that no longer hold */
        CHANNEL_END_BY_WORKER,    /* its worker closed it */
        CHANNEL_END_WORKER_LOST,  /* its worker is dead, or no worker can be started */
        CHANNEL_END_LOOP,         /* the loop ends */
        CHANNEL_END_MAX,
} ChannelEndReason;

/* How a channel at a worker ends for a reason. */
typedef enum ChannelEndManner {
        CHANNEL_ENDS_GENTLY,      /* when the run under way is over and its answer read */
        CHANNEL_ENDS_NOW,         /* the run under way is cancelled; a worker that does not react is killed */
        CHANNEL_ENDS_PATIENTLY,   /* the same, but the worker is not killed before it has read CHANNEL_CLOSE */
        CHANNEL_ENDS_AT_ONCE,     /* nothing is sent to the worker */
} ChannelEndManner;

bool channel_life_permits(ChannelState from, ChannelState to);

/* Changes `*state` to `to`, which must be permitted. */
void channel_life_move(ChannelState *state, ChannelState to);

ChannelEndManner channel_life_manner(ChannelEndReason reason);

/* Why the channel was closed, for the log. Static. */
const char *channel_life_sentence(ChannelEndReason reason);

#endif
