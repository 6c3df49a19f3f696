/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Runs a prepared statement, and encodes its rows into pages from libpq's memory, row by row, so that a result
 * of any size takes the same memory. For the functions see engine.h.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_ROWS_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_ROWS_H

#include "daemon/worker/postgresql/pg-pool.h"

EngineResult pg_rows_step(PgStatement *s, RowSink *sink, SqlError *error);
EngineResult pg_rows_fill(PgStatement *s, RowSink *sink, SqlError *error);
bool pg_rows_measure(PgStatement *s, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error);
const uint8_t *pg_rows_value(PgStatement *s, unsigned i, uint8_t number[static 8], SqlError *error);

/* Ends the run: drops the rows that are left, and takes back what a failure has left. */
void pg_rows_reset(PgStatement *s);

#endif
