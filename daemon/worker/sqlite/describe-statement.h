/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Reads the description of a statement that SQLite has compiled.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_DESCRIBE_STATEMENT_H
#define SQLIPC_DAEMON_WORKER_SQLITE_DESCRIBE_STATEMENT_H

#include "daemon/worker/core/engine.h"

typedef struct sqlite3_stmt sqlite3_stmt;

/* The caller frees ret->strings; their text is SQLite's. OutOfMemory. */
bool describe_statement(sqlite3_stmt *stmt, EngineDescription *ret, SqlError *error);

#endif
