/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One client: a unique bus name that holds statements, runs or channels, and what dies with it. Supervisor.
 *
 * A session is born with the first thing that a peer holds, and dies one way, session_close(), whether the peer vanished or
 * we stop: runs and channels are told to end (and live on, without a session, until their worker says so), statements are
 * freed.
 */
#ifndef SQLIPC_SESSION_H
#define SQLIPC_SESSION_H

#include "peer.h"
#include "user.h"

typedef struct Session {
        Manager *manager;  /* not owned */
        char *name;        /* the unique bus name */
        User *user;        /* reference */
        GQueue statements; /* of Statement, by session_link */
        GQueue runs;       /* of Run, by session_link */
        GQueue channels;   /* of Channel, by session_link */
        uint64_t began_usec;
        uint64_t total_runs, total_rows, total_bytes; /* of runs that ended */
} Session;

/* The peer's session, which is born here if need be. */
Session *session_get(Manager *m, const Peer *p);

/* Ends all that it holds with `error` and a sentence; runs whose methods are still unanswered get that answer. NULL is
 * allowed. Returns NULL. */
Session *session_close(Session *s, ErrorNumber error, const char *sentence);

#endif
