/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Idle connections, each with the statements that were compiled on it lately. A run takes a connection for
 * itself and gives it back; an idle statement of a client pins none. All belong to one database and one set of rights, so
 * any will do.
 */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>
#include <stdint.h>

#include "database.h"

#define CONNECTION_N_CACHED 16

typedef struct sqlite3_stmt sqlite3_stmt;
typedef struct Connection Connection;

typedef struct CachedStatement {
        char *sql; /* owned, sql_size bytes; NULL: free */
        size_t sql_size;
        sqlite3_stmt *stmt;
        uint64_t used; /* larger is later */
} CachedStatement;

struct Connection {
        Database database;
        CachedStatement cached[CONNECTION_N_CACHED];
        uint64_t idle_usec; /* since when, CLOCK_MONOTONIC */
        Connection *next;   /* in the pool */
};

typedef struct Pool {
        const Setup *setup; /* borrowed */
        ProgressHandler progress;
        void *userdata;
        Connection *idle;
        unsigned n_idle;
} Pool;

/* A connection for one run: an idle one, best one that has `sql` compiled, or a fresh one. */
bool pool_take(Pool *pool, const char *sql, size_t sql_size, Connection **ret, SqlError *error);

/* Back to the pool; none of its statements is running. Past a few idle ones it is closed. NULL is allowed. */
void pool_give(Pool *pool, Connection *connection);

/* Closes what has been idle for long. Returns when to look again (CLOCK_MONOTONIC usec), UINT64_MAX: never. */
uint64_t pool_expire(Pool *pool, uint64_t now_usec);

/* Closes all idle connections. */
void pool_done(Pool *pool);

/* Forgets compiled statements if another program changed the schema. Before a statement is described: one that only runs is
 * compiled again by SQLite itself. */
void connection_refresh(Connection *connection);

/* Compiles `sql`, behind whose sql_size bytes a NUL must stand, or hands out the cached statement; the caller owns it until
 * connection_keep(). Refuses all but one reading statement: EmptyStatement, SeveralStatements, ReadOnly, NotAllowed, and
 * SQLite's own. */
bool connection_compile(Connection *connection, const Setup *setup, const char *sql, size_t sql_size, sqlite3_stmt **ret,
                        SqlError *error);

/* Takes a statement back: resets it and keeps it for the next run of the same SQL. NULL is allowed. */
void connection_keep(Connection *connection, const char *sql, size_t sql_size, sqlite3_stmt *stmt);

#endif
