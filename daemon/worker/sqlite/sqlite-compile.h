/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Compiles a client's SQL, within the limits of the configuration and the rights of the user.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_COMPILE_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_COMPILE_H

#include "daemon/worker/sqlite/sqlite-connection.h"

typedef struct CompiledStatement {
        sqlite3_stmt *stmt;
        bool writes;       /* it needs the connection that writes, and a transaction */
        bool changes_rows; /* it is an INSERT, UPDATE or DELETE, which SQLite counts */
        bool asks_changes; /* it, or a trigger, calls changes() */
        bool only_temp;    /* it writes, but only to the schema "temp" */
        bool is_savepoint; /* it is SAVEPOINT, RELEASE or ROLLBACK TO */
        bool runs_alone;   /* it is VACUUM, which SQLite runs in no transaction */
        bool does_nothing; /* it has no rows, changes nothing, and must not be stepped: DROP TABLE IF EXISTS without one */
        bool attaches;     /* it is ATTACH or DETACH, has no rows, and attached_step() steps it */
        bool of_dump;      /* it inserts the row of a virtual table; dumped_table_step() steps it */
        ForeignKeys foreign_keys; /* what it sets for its client */
        bool once;         /* must not be kept for another run, when it may do something else, or need other rights */
} CompiledStatement;

/* Compiles `sql`, which must have a NUL after its sql_size bytes. The caller finalizes ret->stmt. Accepts exactly one
 * statement, which must only read unless the user may write: EmptyStatement, SeveralStatements, ReadOnly, NotAllowed, and
 * SQLite's own errors. Busy, if the SQL may be right for a schema that was not read. Nothing may be held; the connection
 * looks at the schema. */
bool sqlite_compile(SqliteConnection *c, const char *sql, size_t sql_size, CompiledStatement *ret, SqlError *error);

#endif
