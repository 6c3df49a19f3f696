/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Looks for commits of other programs, for the clients that watch the database. The state is the server's
 * snapshot, which is asked for once a second; each transaction that ends changes it. A trigger of the administrator can
 * have the server tell of changes at once, by NOTIFY (docs/man/sqlipc-postgresql.7.rst).
 *
 * With ReplicaConnection= the replica is looked at: clients that read there must be told when it has the commit.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_OBSERVATION_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_OBSERVATION_H

#include "daemon/worker/postgresql/pg-pool.h"

/* For the functions see engine.h: observe(), listening_fd() and heard(). */
void pg_observation_look(PgPool *pool, Observed *ret);
int pg_observation_fd(const PgPool *pool);
bool pg_observation_heard(PgPool *pool);

#endif
