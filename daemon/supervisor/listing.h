/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies that name all databases, built in pieces: ListDatabases, the property Databases, and Introspect of the databases'
 * tree. Supervisor.
 *
 * With thousands of databases such a reply takes tens of milliseconds. So the loop builds one piece of one reply in each
 * turn, and serves other calls in between. Uids take turns, whatever number of these calls each of them has made, and a
 * uid's calls are answered one after the other. The names in order are the same for all callers, so they are kept until a
 * reload.
 */
#ifndef SQLIPC_LISTING_H
#define SQLIPC_LISTING_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "policy.h"
#include "reply.h"
#include "user.h"

/* A piece: it ends when either is reached. */
#define LISTING_PIECE_LENGTH 64u
#define LISTING_PIECE_SIZE ((size_t) 64 * 1024)

/* Such calls of one uid that may wait. */
#define LISTINGS_MAX 256u

typedef struct Listing Listing;

/* What one kind of reply consists of. Each function is negative on failure, which ends the call. */
typedef struct ListingKind {
        int (*begin)(Listing *l);
        int (*add)(Listing *l, const Database *d, PolicyVerdict view);
        int (*end)(Listing *l);
} ListingKind;

struct Listing {
        Manager *manager;         /* not owned */
        Peer *peer;               /* not owned: see listing_forget() */
        User *user;               /* reference */
        sd_bus_message *call;     /* a stand-in (waiting-call.h) */
        const ListingKind *kind;
        bool was_held;          /* the call was held: polkit's last answer counts (held-call.h) */
        GPtrArray *names;         /* reference; NULL: not begun */
        guint next;               /* of them */
        Reply reply;
        GString *text;            /* owned; of the tree */
        GList link;               /* in its user's `listings` */
};

/* Of the Manager; all zero at first. */
typedef struct Listings {
        GQueue users;             /* of User that has listings: the next one to be served comes first */
        GPtrArray *names;         /* sorted; NULL: to be collected again */
        sd_event_source *source;  /* a turn; NULL: there was none yet */
} Listings;

/* Answers `call`, now or later. Negative: `refusal` or the errno says why not. */
int listing_new(Manager *m, sd_bus_message *call, const ListingKind *kind, Refusal *refusal);

/* `call` is Properties.Get of the Manager's property Databases. */
bool listing_is_property_call(sd_bus_message *call);

/* Other databases are published. */
void listing_on_reload(Manager *m);

bool listing_is_busy(const Manager *m);

/* Frees the calls of a peer that vanished, unanswered. */
void listing_forget(const Peer *p);

/* Answers all calls with ShuttingDown and `sentence`. */
void listing_stop(Manager *m, const char *sentence);

/* Frees what the manager has. */
void listing_done(Manager *m);

#endif
