/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies that name all databases, built in pieces: ListDatabases, the property Databases, and Introspect of the databases'
 * tree. Supervisor.
 *
 * With thousands of databases such a reply takes tens of milliseconds. So the loop builds one piece of one reply in each
 * turn, and serves other calls in between. Uids take turns, no matter how many of these calls each has made, and the calls
 * of one uid are answered one after the other. The sorted names are the same for all callers, so they are kept until a
 * reload.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_LISTING_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_LISTING_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/calls/reply.h"

/* A piece ends when either of these is reached. */
#define LISTING_PIECE_LENGTH 64u
#define LISTING_PIECE_SIZE ((size_t) 64 * 1024)

/* How many such calls of one uid may wait. */
#define LISTINGS_MAX 256u

typedef struct Listing Listing;

/* The functions that build one kind of reply. A negative result ends the call. */
typedef struct ListingKind {
        int (*begin)(Listing *l);
        int (*add)(Listing *l, const Database *d, PolicyVerdict view);
        int (*end)(Listing *l);
} ListingKind;

struct Listing {
        Context *context;         /* not owned */
        Peer *peer;               /* not owned; see listing_forget() */
        User *user;               /* reference */
        sd_bus_message *call;     /* a stand-in (waiting-call.h) */
        const ListingKind *kind;
        bool was_held;          /* the call was held: polkit's last answer counts (held-call.h) */
        GPtrArray *names;         /* reference; NULL: the reply is not begun */
        guint next;               /* index of the next name */
        Reply reply;
        GString *text;            /* owned; the text of an Introspect reply */
        GList link;               /* in its user's `listings` */
};

/* The state of this module, in the context; starts as all zeros. */
typedef struct Listings {
        GQueue users;             /* of User that has listings, in the order in which they are served */
        GPtrArray *names;         /* sorted; NULL: must be collected again */
        sd_event_source *source;  /* runs one turn; NULL: no listing was made yet */
} Listings;

/* Answers `call`, now or later. If the result is negative, `refusal` or the errno says why. */
int listing_new(Context *context, sd_bus_message *call, const ListingKind *kind, Refusal *refusal);

/* The set of published databases has changed. */
void listing_on_reload(Context *context);

bool listing_is_busy(const Context *context);

/* Frees the calls of a peer that vanished, without a reply. */
void listing_forget(const Peer *p);

/* Answers all calls with ShuttingDown and `sentence`. */
void listing_stop(Context *context, const char *sentence);

/* Frees the state of this module. */
void listing_done(Listings *all);

#endif
