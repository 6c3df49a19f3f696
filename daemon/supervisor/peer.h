/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who a bus name is: uid and groups of connect time, asked of the bus driver once and kept until the name vanishes.
 * Supervisor.
 *
 * One match tells of every name that vanishes; sd_bus_track would need one per peer, and the bus drops a connection that
 * has too many. The question to the driver is the only call that the supervisor waits for: about 100 us, and at most
 * PEER_CREDENTIALS_USEC. A bus under a flood, on a busy machine, may need more than a second.
 */
#ifndef SQLIPC_PEER_H
#define SQLIPC_PEER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

typedef struct Manager Manager;

#define PEER_CREDENTIALS_USEC UINT64_C(5000000)

typedef struct Peer {
        Manager *manager; /* not owned */
        char *name; /* unique */
        uid_t uid;
        pid_t pid; /* 0: the bus does not say */
        gid_t *gids;
        size_t n_gids;
        GHashTable *answers; /* policy.h: name of a database -> what polkit last said about the peer */
        GQueue questions;    /* of PolkitQuestion, by its peer_link */
        GQueue held;         /* of HeldCall, by its link */
        GQueue managed;      /* of ManagedCall, by its link */
} Peer;

/* Starts to look at each method call and at names that vanish. */
int peer_watch(Manager *m);

/* Who sent `message`: never NULL inside a bus method, the filter has seen to it. Borrowed until the peer vanishes. */
Peer *peer_of(const Manager *m, sd_bus_message *message);

/* Root, or the uid that the service runs as. */
bool peer_is_administrator(const Manager *m, const Peer *p);

/* Serves what sd-bus has read already, at the next turn: for sources of the loop that always have something to do. */
void peer_serve_read_ahead(Manager *m);

void peer_free(void *peer);

#endif
