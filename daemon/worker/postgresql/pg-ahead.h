/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Requests that are sent ahead. The core tells which statements it will run next (foresee() of engine.h), and
 * the first of them sends all, in one pipeline and one transaction that only reads. So many point queries cost
 * one round trip:
 *
 *      BEGIN, statement, statement, ..., ROLLBACK
 *
 * Then each of them finds its results on their way. A list is dropped, with the results that were not read, as soon as
 * something else than its next statement is run, or the transaction is ended. The statements only read, so it does not
 * matter that the server has run them.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_AHEAD_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_AHEAD_H

#include "daemon/worker/postgresql/pg-statement.h"

typedef struct PgPooled PgPooled; /* pg-pool.h */

#define PG_AHEAD_MAX 32u
#define PG_AHEAD_SIZE_MAX ((size_t) 120) /* of parameters */

/* One run of a statement. */
typedef struct PgAheadRun {
        EngineHint hint;
        uint32_t n_positional, n_named;
        size_t size;
        uint8_t parameters[PG_AHEAD_SIZE_MAX];
} PgAheadRun;

/* Of a pool. */
typedef struct PgAhead {
        PgAheadRun runs[PG_AHEAD_MAX];
        unsigned n, next;   /* runs[next] is the next one to be run */
        const PgPooled *on; /* the connection on which they were sent; NULL: not sent yet */
} PgAhead;

/* Adds a run. False: it cannot be sent ahead, and neither can those after it. */
bool pg_ahead_add(PgAhead *ahead, const JobSpec *spec, const EngineHint *hint);

/* True if this run of the statement was sent ahead, perhaps just now: it needs no pg_bind() and is not sent again. */
bool pg_ahead_take(PgPooled *p, PgStatement *s, const JobSpec *spec);

/* The pool gets the connection back: forgets the list. */
void pg_ahead_forget(PgPooled *p);

#endif
