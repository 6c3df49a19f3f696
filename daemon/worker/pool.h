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
        char *sql;            /* owned, sql_size bytes; NULL: free */
        size_t sql_size;
        sqlite3_stmt *stmt;   /* the run's that uses the connection, or nobody's */
        uint64_t id;          /* never used before in this worker */
        uint64_t used;        /* larger is later */
        uint8_t *columns;     /* owned: its COLUMNS as it was last compiled; NULL: not made yet */
        size_t columns_size;
} CachedStatement;

/* Where a statement was compiled last, for one that is run again and again: found there without a look at its SQL. */
typedef struct StatementHint {
        uint64_t id;          /* 0: nowhere */
        unsigned slot;
} StatementHint;

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
        uint64_t identified_usec; /* when it was last looked whether the file is still the one that is open; coarse */
} Pool;

/* A connection for one run: an idle one, best one that has `sql` compiled, or a fresh one. With a `hint` (NULL: none) it is
 * one of very many: then whether the file was replaced is looked at no oftener than every few milliseconds. */
bool pool_take(Pool *pool, const char *sql, size_t sql_size, const StatementHint *hint, Connection **ret, SqlError *error);

/* Back to the pool; none of its statements is running. Past a few idle ones it is closed. NULL is allowed. */
void pool_give(Pool *pool, Connection *connection);

/* Closes what has been idle for long. Returns when to look again (CLOCK_MONOTONIC usec), UINT64_MAX: never. */
uint64_t pool_expire(Pool *pool, uint64_t now_usec);

/* Closes all idle connections. */
void pool_done(Pool *pool);

/* Forgets compiled statements if another program changed the schema. Before a statement is described: one that only runs is
 * compiled again by SQLite itself. The database is held (database_schema_changed). */
void connection_refresh(Connection *connection);

/* Compiles `sql`, behind whose sql_size bytes a NUL must stand, or hands out the cached statement; the caller owns it until
 * connection_keep(). `hint` (NULL: none) is brought up to date. Refuses all but one reading statement: EmptyStatement,
 * SeveralStatements, ReadOnly, NotAllowed, and SQLite's own. */
bool connection_compile(Connection *connection, const Setup *setup, const char *sql, size_t sql_size, StatementHint *hint,
                        sqlite3_stmt **ret, SqlError *error);

/* The payload of COLUMNS of a statement that was stepped, out of the cache unless it was compiled again since. False with
 * neither error nor payload: it is not in the cache. Borrowed until connection_keep(). */
bool connection_columns(Connection *connection, sqlite3_stmt *stmt, uint32_t page_size, const uint8_t **ret_payload,
                        size_t *ret_size, SqlError *error);

/* Takes a statement back: resets it and keeps it for the next run of the same SQL, unless that is too long. NULL is
 * allowed. */
void connection_keep(Connection *connection, sqlite3_stmt *stmt);

/* Whether SQL of so many bytes may be compiled: LimitsExceeded. */
bool pool_check_sql_size(const Setup *setup, size_t sql_size, SqlError *error);

#endif
