/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Steps a statement, and encodes its rows from SQLite's memory. For the functions see engine.h.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_ROWS_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_ROWS_H

#include "daemon/worker/sqlite/sqlite-statement.h"

EngineResult sqlite_rows_step(SqliteStatement *s, RowSink *sink, SqlError *error);
EngineResult sqlite_rows_fill(SqliteStatement *s, RowSink *sink, SqlError *error);
bool sqlite_rows_measure(SqliteStatement *s, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error);
const uint8_t *sqlite_rows_value(SqliteStatement *s, unsigned i, uint8_t number[static 8], SqlError *error);

#endif
