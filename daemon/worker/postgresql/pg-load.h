/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Runs a statement once for each row of a load. For the functions see engine.h.
 *
 * INSERT INTO table(columns) VALUES(?, ...), and nothing else, becomes COPY, one for the rows of each turn. COPY is not used
 * if it would do something else: for a view, a table with rules or one with row-level security. All other statements run
 * for many rows in one round trip.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_LOAD_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_LOAD_H

#include "daemon/worker/postgresql/pg-statement.h"

bool pg_load_takes_rows(PgStatement *s, SqlError *error);
bool pg_load(PgStatement *s, RowSource *source, SqlError *error);

#endif
