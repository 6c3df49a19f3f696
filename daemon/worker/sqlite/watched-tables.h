/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The tables whose changes may change the result of a statement, or the rows of named tables and views: for
 * the clients that watch them (docs/design/watching.md).
 *
 * 1. Exposed objects are followed to the tables of the file. Clients learn only the names of the objects.
 * 2. The result of a virtual table depends on tables that SQLite does not name, and some tables of SQLite's own change
 *    without its naming them. Then any change may matter.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_WATCHED_TABLES_H
#define SQLIPC_DAEMON_WORKER_SQLITE_WATCHED_TABLES_H

#include "daemon/worker/sqlite/statement-cache.h"

/* `sql` is as in JobSpec, with a NUL after its sql_size bytes. On success the caller frees both results. The errors of
 * statement_cache_compile(). */
bool watched_tables_find(StatementCache *cache, const char *sql, size_t sql_size, bool names, EngineWatched *ret,
                         SqlError *error);

#endif
