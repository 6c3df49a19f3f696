/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Takes the rows of sqlite_schema by which dumps make virtual tables, and checks these before the commit. The
 * ".dump" of sqlite3 does not create them: it inserts their row into sqlite_schema, and then creates and fills the tables
 * of their content as it does all tables. SQLite does not know such a table before it reads the schema again. A transaction
 * of a client that may change the schema can do the same, but insert no other row there. Before the commit, the tables of
 * the content must be as the module would make them, with nothing else on them, and the content must pass the module's
 * check.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_DUMPED_TABLE_H
#define SQLIPC_DAEMON_WORKER_SQLITE_DUMPED_TABLE_H

#include <stdbool.h>

#include "daemon/worker/core/sql-error.h"

typedef struct SqliteConnection SqliteConnection;
typedef struct sqlite3_stmt sqlite3_stmt;

/* One that the transaction has compiled; the statement may not have run. */
typedef struct DumpedTable DumpedTable;

/* True if `sql` is the statement by which a dump inserts a virtual table into sqlite_schema, exactly as sqlite3 writes it,
 * up to its end or a semicolon. */
bool dumped_table_is(const char *sql);

/* Compiles that statement, which the caller finalizes. *ret_tail is its end. The table is noted for
 * dumped_tables_check(). The right to change the schema is checked. Sql, NotAllowed, MissingModule, OutOfMemory. */
bool dumped_table_compile(SqliteConnection *c, const char *sql, sqlite3_stmt **ret, const char **ret_tail, SqlError *error);

/* Steps it. Returns an SQLite result code. */
int dumped_table_step(SqliteConnection *c, sqlite3_stmt *stmt);

/* Before the commit: reads the schema again, and checks the content of all tables that were noted and inserted. NotAllowed:
 * a table is not as its module would make it, or does not pass its check; and the errors of a statement. */
bool dumped_tables_check(SqliteConnection *c, SqlError *error);

/* Forgets what was noted. */
void dumped_tables_forget(SqliteConnection *c);

#endif
