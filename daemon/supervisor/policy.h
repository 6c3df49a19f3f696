/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may use which database. Supervisor.
 *
 * Root, and the uid that the service runs as, may use all. Others: whom AllowUsers= or AllowGroups= names, by the ids of
 * connect time (peer.h); where Polkit=yes, the rest is asked about there (polkit.h). For everybody else the database does
 * not exist: it is in no list, its object is unknown, GetDatabase says what it says of a name that was never published.
 *
 * polkit's "yes" and "no" to a client are kept until polkit says that something changed, or goes; a challenge is not. An
 * answer needs time, so calls are held meanwhile (held-call.h). What was last answered is remembered beyond that, to know
 * who has seen a database that goes.
 */
#ifndef SQLIPC_POLICY_H
#define SQLIPC_POLICY_H

#include <stdbool.h>

#include "database.h"
#include "peer.h"
#include "polkit.h"
#include "refusal.h"

typedef enum PolicyVerdict {
        POLICY_NO,
        POLICY_YES,
        POLICY_ASK, /* nothing says so yet: polkit knows */
} PolicyVerdict;

/* By configuration, and what polkit said to this client before. */
PolicyVerdict policy_verdict(const Manager *m, const Peer *p, const Database *d);

/* What polkit last said, kept or not; ABSENT where it was not asked. */
PolkitAnswer policy_last_answer(const Peer *p, const char *database);

/* It is in the peer's list, as far as polkit was asked: it may use it, or may once it has authenticated. */
bool policy_is_visible(const Manager *m, const Peer *p, const Database *d);

/* The published database of this name, if the sender of `message`, which is being dispatched, may use it now; NULL. */
Database *policy_find_database(Manager *m, sd_bus_message *message, const char *name);

/* How the sender of `message` sees `d`: YES; ASK: it may use it once it has authenticated; NO: not at all. */
PolicyVerdict policy_view(const Manager *m, sd_bus_message *message, const Database *d);

/* The same for a peer; `was_held`: its call was held (held-call.h). */
PolicyVerdict policy_view_of_peer(const Manager *m, const Peer *p, bool was_held, const Database *d);

/* UNKNOWN_DATABASE, in the words that hold for all that is not the caller's, published or not. */
int policy_refuse_unknown(const char *name, Refusal *refusal);

/* polkit answered: keeps it, and lets the calls that wait for it go on. */
void policy_on_answer(Manager *m, Peer *p, const PolkitReply *reply);

/* Whatever polkit said may be otherwise now: channels that it let somebody open close. */
void policy_forget_answers(Manager *m);

/* `before` was published, `now` is in its place (either may be NULL): tells the peer if that gave or took it something, by
 * unicast, so that nobody hears of what it may not use. Where polkit has to say, it is asked without interaction first. */
void policy_announce(Manager *m, Peer *p, const Database *before, const Database *now);

/* Starts to hold calls that polkit must be asked about, and to hear of its Changed. Before peer_watch(). */
int policy_watch(Manager *m);

/* A call waits for polkit, or for a list of databases. */
bool policy_is_busy(const Manager *m);

/* Frees what is kept, asked and held for a peer that vanished. */
void policy_forget_peer(Peer *p);

/* Answers all that waits with ShuttingDown and `sentence`. */
void policy_stop(Manager *m, const char *sentence);

#endif
