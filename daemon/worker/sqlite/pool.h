/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Idle connections, each with the statements that were compiled on it lately. A run takes a connection for
 * itself and gives it back; a client's idle statement pins none. All connections are to one database with one set of rights,
 * so a run can use any of them.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_POOL_H
#define SQLIPC_DAEMON_WORKER_SQLITE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/worker/sqlite/database.h"

#define CONNECTION_N_CACHED 16

typedef struct sqlite3_stmt sqlite3_stmt;
typedef struct Connection Connection;

typedef struct CachedStatement {
        char *sql;            /* owned, sql_size bytes; NULL: the slot is free */
        size_t sql_size;
        sqlite3_stmt *stmt;   /* in use by the run that has the connection; otherwise idle */
        uint64_t id;          /* never used before in this worker */
        uint64_t used;        /* larger is later */
        uint8_t *columns;     /* owned: the COLUMNS payload of the last compile; NULL: not made yet */
        size_t columns_size;
} CachedStatement;

/* Remembers where a statement was compiled last, so that a statement that runs again and again is found without comparing
 * its SQL. */
typedef struct StatementHint {
        uint64_t id;          /* 0: not known */
        unsigned slot;
} StatementHint;

struct Connection {
        Database database;
        CachedStatement cached[CONNECTION_N_CACHED];
        uint64_t idle_usec; /* since when it has been idle, CLOCK_MONOTONIC */
        Connection *next;   /* in the pool */
};

typedef struct Pool {
        const Setup *setup; /* borrowed */
        ProgressHandler progress;
        void *userdata;
        Connection *idle;
        unsigned n_idle;
        uint64_t identified_usec; /* when the file at the path was last checked; coarse clock */
} Pool;

/* Takes a connection for one run: preferably an idle one that has `sql` compiled, else any idle one, else a new one. With a
 * `hint` (NULL: none) the run may be one of very many, so the pool checks at most every few milliseconds if the file was
 * replaced. */
bool pool_take(Pool *pool, const char *sql, size_t sql_size, const StatementHint *hint, Connection **ret, SqlError *error);

/* Gives a connection back to the pool. None of its statements may be running. Closes it if the pool has enough idle ones.
 * NULL is allowed. */
void pool_give(Pool *pool, Connection *connection);

/* Closes connections that have been idle for long. Returns when to check again (CLOCK_MONOTONIC usec), UINT64_MAX: never. */
uint64_t pool_expire(Pool *pool, uint64_t now_usec);

/* Closes all idle connections. */
void pool_done(Pool *pool);

/* Forgets compiled statements if another program has changed the schema. Must be called before a statement is described;
 * SQLite itself recompiles a statement that is only run. The database is held afterwards (database_schema_changed()). */
void connection_refresh(Connection *connection);

/* Compiles `sql`, which must have a NUL after its sql_size bytes, or returns the cached statement. The caller owns it until
 * connection_keep(). `hint` (NULL: none) is updated. Accepts exactly one statement, which must only read: EmptyStatement,
 * SeveralStatements, ReadOnly, NotAllowed, and SQLite's own errors. */
bool connection_compile(Connection *connection, const Setup *setup, const char *sql, size_t sql_size, StatementHint *hint,
                        sqlite3_stmt **ret, SqlError *error);

/* Returns the COLUMNS payload of a statement that was stepped. It comes from the cache unless the statement was recompiled.
 * False with neither error nor payload: the statement is not in the cache. Borrowed until connection_keep(). */
bool connection_columns(Connection *connection, sqlite3_stmt *stmt, uint32_t page_size, const uint8_t **ret_payload,
                        size_t *ret_size, SqlError *error);

/* Takes a statement back: resets it and keeps it for the next run of the same SQL, unless that is too long. NULL is
 * allowed. */
void connection_keep(Connection *connection, sqlite3_stmt *stmt);

/* Checks that SQL of this size may be compiled: LimitsExceeded. */
bool pool_check_sql_size(const Setup *setup, size_t sql_size, SqlError *error);

#endif
