/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The statements that were compiled lately on one connection.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_STATEMENT_CACHE_H
#define SQLIPC_DAEMON_WORKER_SQLITE_STATEMENT_CACHE_H

#include "daemon/worker/sqlite/sqlite-statement.h"

#define STATEMENT_CACHE_N 16

typedef struct StatementCache {
        SqliteConnection *connection; /* borrowed */
        unsigned n_schemas;     /* of the connection, when statements were forgotten last */
        SqliteStatement slots[STATEMENT_CACHE_N];
        SqliteStatement single; /* not to be kept; a connection runs one statement at a time */
} StatementCache;

void statement_cache_init(StatementCache *cache, SqliteConnection *connection);

/* Finalizes all statements, none of which may be running. */
void statement_cache_clear(StatementCache *cache);

/* True if the SQL is compiled. */
bool statement_cache_has(const StatementCache *cache, const char *sql, size_t sql_size, const EngineHint *hint);

/* Forgets compiled statements if another program has changed the schema. Must be called before a statement is described;
 * SQLite itself recompiles a statement that is only run. The database is held afterwards, so a statement that is stepped
 * next needs no other transaction. */
void statement_cache_refresh(StatementCache *cache);

/* Compiles `sql`, which must have a NUL after its sql_size bytes, or returns the cached statement. It is in use until
 * sqlite_statement_release(). `hint` (NULL: none) is updated. The errors of sqlite_compile(); Sql, LimitsExceeded. */
bool statement_cache_compile(StatementCache *cache, const char *sql, size_t sql_size, EngineHint *hint,
                             SqliteStatement **ret, SqlError *error);

#endif
