/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Runs a statement once for each row of a load, with the values in place, in the bytes of the pipe. For the
 * functions see engine.h.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_LOAD_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_LOAD_H

#include "daemon/worker/sqlite/sqlite-statement.h"

bool sqlite_load_takes_rows(SqliteStatement *s, SqlError *error);
bool sqlite_load(SqliteStatement *s, RowSource *source, SqlError *error);

#endif
