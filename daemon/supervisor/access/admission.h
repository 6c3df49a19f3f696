/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Acts on news about who may use which database: polkit answers, its rules change, a peer leaves. Supervisor.
 *
 * policy.h decides; this module passes the news on: to held calls, to calls that manage the service, to calls for lists of
 * databases, to calls that were put aside, and to peers that gain or lose a database.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_ADMISSION_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_ADMISSION_H

#include <stdbool.h>

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/base/database.h"

/* Starts to hold calls that polkit must be asked about, and to watch for its signal Changed. Must run before
 * peer_watch(), as held_call_watch() says. -errno. */
int admission_watch(Context *context);

/* `before` was published, `now` replaces it (either may be NULL). Tells the peer if it gained or lost access by that. The
 * message is unicast, so that no client hears of a database that it may not use. If polkit has to decide, it is asked
 * without interaction first. */
void admission_announce(Context *context, Peer *p, const Database *before, const Database *now);

/* True if a call waits for polkit, or for a list of databases. Calls that were put aside: pacing_is_busy(). */
bool admission_is_busy(const Context *context);

/* For PeerEvents: frees all answers, questions and waiting calls of a peer that vanished. */
void admission_forget_peer(Peer *p);

/* For PeerEvents: if `name` was polkit, its answers no longer hold. */
void admission_on_name_left(Context *context, const char *name);

/* Answers all calls that wait for polkit or for a list of databases with ShuttingDown and `sentence`. pacing_stop() answers
 * those that were put aside. */
void admission_stop(Context *context, const char *sentence);

#endif
