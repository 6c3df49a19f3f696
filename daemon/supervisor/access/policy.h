/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides who may use which database. Supervisor.
 *
 * Root, and the uid that the service runs as, may use all databases. Other users may use a database if AllowUsers= or
 * AllowGroups= names them, by the ids of connect time (peer.h). With Polkit=yes, polkit is asked about all others
 * (polkit.h). For everyone else the database does not exist: no list contains it, its object is unknown, and GetDatabase
 * says the same as of a name that was never published.
 *
 * polkit's "yes" and "no" to a client are kept until polkit says that something changed, or leaves the bus; a challenge is
 * not kept. An answer takes time, so calls are held meanwhile (held-call.h). The last answer is remembered even when it is
 * no longer kept, to know which peers have seen a database that is removed.
 *
 * A database with Mode=read-write may be written by root, by the uid that the service runs as, and by the users that
 * WriteUsers= or WriteGroups= name, if they may use it at all. With WritePolkit=yes, polkit is asked about all others who
 * may use it. A challenge about writing is kept like a yes or a no, because otherwise each read of a user who only reads
 * would wait for polkit; but a call that is meant to write asks again (held-call.h).
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_POLICY_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_POLICY_H

#include <stdbool.h>

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/access/polkit.h"
#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/refusal.h"

typedef enum PolicyVerdict {
        POLICY_NO,
        POLICY_YES,
        POLICY_ASK, /* not decided yet: polkit must be asked */
} PolicyVerdict;

/* The verdict by the configuration, and by polkit's answers that are kept for this client. */
PolicyVerdict policy_verdict(const Context *context, const Peer *p, const Database *d);

/* The same for the right to write, of a peer that may use the database. A challenge that is kept is a NO. */
PolicyVerdict policy_write_verdict(const Context *context, const Peer *p, const Database *d);

/* True if polkit would let the peer write once its user has authenticated. */
bool policy_write_needs_user(const Context *context, const Peer *p, const Database *d);

/* polkit's last answer about POLKIT_READ or POLKIT_WRITE, kept or not; ABSENT if it was not asked. */
PolkitAnswer policy_last_answer(const Peer *p, PolkitAction action, const char *database);

/* True if the peer may write the database now, by polkit's last answers, kept or not. The right at the time of a call
 * counts, so the result is not kept. */
bool policy_may_write(const Context *context, const Peer *p, const Database *d);

/* READ_ONLY, for a peer that may use the database and may not write it. Says who may. */
int policy_refuse_write(const Database *d, Refusal *refusal);

/* Returns the database of this name if the peer may attach it: one in a file, and published as a whole. NULL:
 * UNKNOWN_DATABASE, ACCESS_DENIED, NOT_ALLOWED; without a refusal polkit is asked, so the caller must try again. */
Database *policy_find_to_attach(Context *context, Peer *p, const char *name, Refusal *refusal);

/* True if the database is in the peer's list, as far as polkit was asked: the peer may use it, or may use it once its
 * user has authenticated. */
bool policy_is_visible(const Context *context, const Peer *p, const Database *d);

/* Returns the published database of this name if the sender of `message`, which is being dispatched, may use it now; else
 * NULL. */
Database *policy_find_database(Context *context, sd_bus_message *message, const char *name);

/* How the sender of `message` sees `d`. YES: may use it; ASK: may use it once its user has authenticated; NO: does not see
 * it. */
PolicyVerdict policy_view(const Context *context, sd_bus_message *message, const Database *d);

/* True if the call that is being dispatched was held and released (held-call.h). It is answered by polkit's last answer. */
bool policy_call_was_held(const Context *context, const sd_bus_message *message);

/* The same as policy_view() for a peer. `was_held`: its call was held. */
PolicyVerdict policy_view_of_peer(const Context *context, const Peer *p, bool was_held, const Database *d);

/* Refuses with UNKNOWN_DATABASE. The words are the same for a database that is hidden from the caller and for one that does
 * not exist. */
int policy_refuse_unknown(const char *name, Refusal *refusal);

/* Records an answer of polkit about a database. It is kept if it still holds and is a yes or a no, or a challenge about
 * writing. */
void policy_keep_answer(Peer *p, const PolkitReply *reply);

/* polkit's answers may have changed: none is kept any longer. */
void policy_keep_no_answers(Peer *p);

#endif
