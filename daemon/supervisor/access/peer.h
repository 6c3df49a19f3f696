/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The identity behind a bus name: its uid and groups at connect time. The bus driver is asked once, and the answer is kept
 * until the name vanishes. Supervisor.
 *
 * One match reports every name that vanishes. sd_bus_track would need a match for each peer, and the bus disconnects a
 * connection that has too many. The question to the driver is the only call that the supervisor waits for: about 100 us, and
 * at most PEER_CREDENTIALS_USEC. A flooded bus on a busy machine may need more than a second.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_PEER_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_PEER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

typedef struct Context Context;
typedef struct Peer Peer;

#define PEER_CREDENTIALS_USEC UINT64_C(5000000)

/* Functions of the modules above for a name that vanishes. Each may be NULL. */
typedef struct PeerEvents {
        void (*leaving)(Context *context, const char *name); /* its Peer, if there is one, is still known */
        void (*left)(Context *context, const char *name);    /* its Peer is no longer known */
        void (*forget)(Peer *p);                             /* the Peer is freed: frees what belongs to it */
} PeerEvents;

/* The state of this module, in the context. */
typedef struct PeerWatch {
        const PeerEvents *events;
        sd_event_source *read_ahead; /* dispatches what sd-bus has read while the supervisor waited */
} PeerWatch;

struct Peer {
        Context *context; /* not owned */
        char *name; /* unique bus name */
        uid_t uid;
        pid_t pid; /* 0: the bus does not tell it */
        gid_t *gids;
        size_t n_gids;
        GHashTable *answers;       /* policy.h: name of a database -> polkit's last answer about the peer, for reading */
        GHashTable *write_answers; /* the same for writing */
        GQueue questions;    /* of PolkitQuestion, by its peer_link */
        GQueue held;         /* of HeldCall, by its link */
        GQueue managed;      /* of ManagedCall, by its link */
};

/* Starts to watch for method calls, to ask about their senders, and for names that vanish. -errno. */
int peer_watch(Context *context, const PeerEvents *events);

/* Returns the sender of `message`. Never NULL inside a bus method, because a filter makes sure of it. Borrowed until the
 * peer vanishes. */
Peer *peer_of(const Context *context, sd_bus_message *message);

/* True for root and for the uid that the service runs as. */
bool peer_is_administrator(const Context *context, const Peer *p);

/* Dispatches messages that sd-bus has already read, in the next turn of the loop. For event sources that always have
 * something to do. */
void peer_serve_read_ahead(Context *context);

/* Forgets all peers; the loop is over. */
void peer_forget_all(Context *context);

#endif
