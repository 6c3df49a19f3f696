/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Turns SQLite's failures into an SqlError, by the table in sqlipc-errors.h.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_ERROR_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/worker/core/sql-error.h"

typedef struct sqlite3 sqlite3;

/* Copies code, message and offset while `db` still owns them. `rc` is what the failed call returned. `offset_base` is
 * the offset, in the job's SQL, of the SQL that SQLite was given. `db` NULL: only the code is used. On
 * SQLITE_INTERRUPT an error that is already set is kept. Always returns false. */
bool sqlite_error_take(SqlError *e, sqlite3 *db, int rc, size_t offset_base);

#endif
