/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Keeps the pool's shadow (shadow-schema.h) as new as the server's schema.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_SCHEMA_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_SCHEMA_H

#include "daemon/worker/rqlite/rqlite-pool.h"

/* The statement whose result tells the version of the schema. */
#define RQLITE_SCHEMA_VERSION "[\"PRAGMA schema_version\"]"

/* Reads the number in a row of that statement's result. False: it is none. */
bool rqlite_schema_version_of(const JsonValue *values, size_t n, int64_t *ret);

/* Makes a new shadow of the server's schema. The errors of cluster_begin() and answer_finish(); LimitsExceeded. */
bool rqlite_schema_load(RqliteConnection *c, SqlError *error);

/* Asks for the version, and makes a new shadow if it is another one. */
bool rqlite_schema_refresh(RqliteConnection *c, SqlError *error);

/* Asks one node for the version of its schema. False: it does not say. */
bool rqlite_schema_version(RqliteConnection *c, int node, int64_t *ret);

#endif
