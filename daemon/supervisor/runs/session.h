/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One client: a unique bus name that holds statements, runs or channels, which end with it. Supervisor.
 *
 * A session is created with the first thing that a peer holds. It ends in one way, by session-close.h, no matter if the peer
 * vanished or the service stops: runs and channels are told to end (they exist without a session until their worker confirms
 * it), and statements are freed.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_SESSION_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_SESSION_H

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/user.h"

#define SESSION_N_ENDED 4u

/* A transaction that ended without Commit or Rollback. */
typedef struct EndedTransaction {
        uint64_t number;   /* 0: none */
        char *why;         /* owned */
} EndedTransaction;

typedef struct Session {
        Context *context;  /* not owned */
        char *name;        /* the unique bus name */
        User *user;        /* reference */
        GQueue statements; /* of Statement, by session_link */
        GQueue runs;       /* of Run, by session_link */
        GQueue channels;   /* of Channel, by session_link */
        GQueue watches;    /* of Watch, by session_link */
        uint64_t began_usec;
        EndedTransaction ended[SESSION_N_ENDED]; /* the last ones */
        unsigned n_ended;  /* in all */
        uint64_t total_runs, total_rows, total_bytes; /* of runs that ended, and of channels as reported */
} Session;

/* Returns the peer's session, which is created if there is none. */
Session *session_get(Context *context, const Peer *p);

/* True if the peer may write the database now (policy_may_write()). */
bool session_may_write(const Session *s, const Database *d);

/* The place of the counts of the peer for the database (counts-page.h). */
CountsPlace session_counts_place(const Session *s, const Database *d);

/* Keeps the reason why a transaction ended for the calls that name it later. Only those of the last ones are kept. */
void session_note_ended(Session *s, uint64_t number, const char *why);

/* Returns that reason, borrowed; NULL: it is not kept. Accepts NULL. */
const char *session_why_ended(const Session *s, uint64_t number);

/* Frees a session that holds nothing. Returns NULL. */
Session *session_free(Session *s);

#endif
