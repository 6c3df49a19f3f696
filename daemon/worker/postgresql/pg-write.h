/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Transactions of many statements. For the functions see engine.h.
 *
 * Statements that are committed together for several clients run at READ COMMITTED: each is atomic, and the server locks the
 * rows that it changes. A transaction of one client is SERIALIZABLE, as it is in SQLite: if the server cannot keep that
 * beside the transactions of other programs, the statement or the commit fails with Busy, and all of it must be repeated.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_WRITE_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_WRITE_H

#include "daemon/worker/postgresql/pg-connection.h"

/* state() of engine.h. UNKNOWN with ReplicaConnection=: clients that read there see the commit later, and must be told
 * then. */
void pg_write_state(PgConnection *c, FileState *ret);

/* Asks for the snapshot (pg-snapshot.h) that a new reader has. The caller frees it. NULL: an error. */
char *pg_write_ask_snapshot(PgConnection *c, SqlError *error);

bool pg_write_snapshot(PgConnection *c, SqlError *error);
bool pg_write_begin(PgConnection *c, SqlError *error);
void pg_write_allow_savepoints(PgConnection *c);
bool pg_write_save(PgConnection *c, SqlError *error);
bool pg_write_keep(PgConnection *c, SqlError *error);
void pg_write_undo(PgConnection *c);
bool pg_write_is_in_transaction(const PgConnection *c);

/* OutcomeUnknown: the connection was lost before the answer. */
bool pg_write_commit(PgConnection *c, SqlError *error);

#endif
