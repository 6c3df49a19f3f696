/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Compiles a client's SQL, within the limits of the configuration.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_COMPILE_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_COMPILE_H

#include "daemon/worker/sqlite/sqlite-connection.h"

/* Compiles `sql`, which must have a NUL after its sql_size bytes. The caller finalizes *ret. Accepts exactly one statement,
 * which must only read: EmptyStatement, SeveralStatements, ReadOnly, NotAllowed, and SQLite's own errors. */
bool sqlite_compile(SqliteConnection *c, const char *sql, size_t sql_size, sqlite3_stmt **ret, SqlError *error);

#endif
