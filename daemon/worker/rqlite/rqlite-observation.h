/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. How the observer of a database in rqlite notices commits of other programs: by the index of the cluster's
 * log that a node has applied to its database. Each commit has an index of its own.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_OBSERVATION_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_OBSERVATION_H

#include "daemon/worker/rqlite/rqlite-pool.h"

/* The state of the database at an index of the log; 0: it is not known. */
void rqlite_observation_state(uint64_t index, FileState *ret);

/* As observe() of the engine. Asks one node, and if the index has changed, for the version of its schema. */
void rqlite_observation_look(RqlitePool *p, Observed *ret);

#endif
