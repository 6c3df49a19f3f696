/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. How many connections to its server this worker may have: its share of ConnectionsMax=. The supervisor moves
 * connections between the workers of a user: one that has none left for a job gets one more, and another one that does not
 * use all of its own is asked for it. An engine of files has no share, and is told nothing.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CONNECTION_SHARE_H
#define SQLIPC_DAEMON_WORKER_CORE_CONNECTION_SHARE_H

#include "daemon/worker/core/job.h"

typedef struct ConnectionShare {
        JobContext *context; /* borrowed */
        bool wanted;         /* CONNECTION_WANTED was sent, and CONNECTION did not come yet */
        unsigned n_asked;    /* how many CONNECTION_ASKED were not answered yet */
} ConnectionShare;

/* Handle the messages of those names, perhaps inside a step. -EBADMSG: the engine has no connections to a server. */
int connection_share_on_connection(ConnectionShare *s);
int connection_share_on_asked(ConnectionShare *s);

/* Tells the supervisor what has changed: called after each turn. */
void connection_share_update(ConnectionShare *s);

/* Until when an attempt is repeated that now found the engine busy. `until`: what this returned for the last attempt; 0 for
 * the first. BusyTimeoutSec= from then on, but at least until the supervisor has answered CONNECTION_WANTED. While all
 * connections are in use and jobs of this worker await their servers, the time begins again. */
uint64_t connection_share_busy_until(const JobContext *context, uint64_t until, uint64_t now_usec);

#endif
