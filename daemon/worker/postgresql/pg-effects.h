/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The effects of functions that users have made. The server says only when a function runs that it writes, and
 * lets some effects be lost in a transaction that only reads (PG_TEXT_EFFECTS). So, when a query is prepared, it is asked
 * about the sources of the functions that the query calls, and of those that these call. The words in the sources decide: if
 * they may mean several kinds of statement, the query counts as the kind that needs the greater right.
 *
 * Functions in C are not looked into, nor are those that are called by views, operators, casts and defaults, or as a column
 * (t.f). A name that the source puts together is not found, either.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_EFFECTS_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_EFFECTS_H

#include "daemon/worker/postgresql/pg-connection.h"

typedef struct PgEffects {
        bool known;           /* there are such functions */
        bool lost;            /* the effect would be lost in a transaction that only reads */
        bool writes;          /* the server would refuse it there, if it comes to that */
        bool schema;          /* it may change the schema */
} PgEffects;

/* Asks the server; `calls` are names in the form of PgText.calls. */
bool pg_effects_ask(PgConnection *c, const char *calls, PgEffects *ret, SqlError *error);

/* Sends a question to libpq that costs the server less: its answer has a row if there are such functions. False: the
 * connection is lost. */
bool pg_effects_probe(PgConnection *c, const char *calls, SqlError *error);

/* True if a query with these effects counts as a statement that writes. A function that would be refused may write only
 * sometimes, so users who may only read can try, and so can transactions that only read. */
bool pg_effects_count(const PgEffects *e, const PgConnection *c);

#endif
