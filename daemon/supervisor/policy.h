/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may use which database. Supervisor.
 *
 * Root, and the uid that the service runs as, may use all. Others: whom AllowUsers= or AllowGroups= names, by the ids of
 * connect time (peer.h); where Polkit=yes, the rest is asked about there (polkit.h). For everybody else the database does
 * not exist: it is in no list, its object is unknown, GetDatabase says what it says of a name that was never published.
 *
 * A verdict of polkit's needs time. So a message to a database whose verdict is not known yet is held by a filter, asked
 * about, and put back into the queue of the bus once the answer came; all that looks up objects runs after that and finds
 * the verdict known. At most POLICY_HELD_MAX messages of a uid are held, of all its clients.
 */
#ifndef SQLIPC_POLICY_H
#define SQLIPC_POLICY_H

#include <stdbool.h>

#include "database.h"
#include "peer.h"

#define POLICY_HELD_MAX 16u

typedef enum PolicyVerdict {
        POLICY_NO,
        POLICY_YES,
        POLICY_ASK, /* nothing says so yet: polkit knows */
} PolicyVerdict;

/* By configuration, and what polkit said to this client before. */
PolicyVerdict policy_verdict(const Manager *m, const Peer *p, const Database *d);

/* The published database of this name, if the sender of `message` may use it now; NULL. */
Database *policy_find_database(Manager *m, sd_bus_message *message, const char *name);

/* Starts to hold messages, and to hear of polkit's Changed. After peer_watch(). */
int policy_watch(Manager *m);

#endif
