/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Idle connections, each with the statements that were compiled on it lately. A job takes a connection for
 * itself and gives it back; a client's idle statement pins none. All connections are to one database with one set of rights,
 * so a job can use any of them. One more connection writes; no job has it for itself.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_POOL_H
#define SQLIPC_DAEMON_WORKER_SQLITE_POOL_H

#include "daemon/worker/sqlite/statement-cache.h"

typedef struct PooledConnection PooledConnection;
struct PooledConnection {
        SqliteConnection sqlite;
        StatementCache statements;
        uint64_t idle_usec;     /* since when it has been idle, CLOCK_MONOTONIC */
        PooledConnection *next; /* in the pool */
};

/* That of an observer (observation.h), which has no other connection. */
typedef struct Observation {
        bool opened;
        SqliteConnection sqlite;
        uint32_t schema;        /* PRAGMA schema_version, when the file had `state` */
        FileState state;
        char name[256];         /* of the file in its folder */
} Observation;

typedef struct Pool {
        const Setup *setup; /* borrowed */
        EngineProgress progress;
        void *userdata;
        PooledConnection *idle;
        unsigned n_idle;
        PooledConnection *writer; /* the connection that writes; NULL: none is open */
        bool writing;             /* it is in use */
        FileState busy_state;     /* when the last attempt to write met a lock; UNKNOWN: it did not */
        bool others_commit;       /* since the attempt before that */
        Observation observation;
        uint64_t identified_usec; /* when the file at the path was last checked; coarse clock */
} Pool;

/* Creates a pool without connections. `setup` is borrowed. -ENOMEM. */
int pool_new(const Setup *setup, EngineProgress progress, void *userdata, Pool **ret);

/* Closes all connections, none of which may be in use. NULL is allowed. Returns NULL. */
Pool *pool_free(Pool *pool);

/* Takes a connection for one job: preferably an idle one that has `sql` compiled, else any idle one, else a new one. With a
 * `hint` (NULL: none) the job may be one of very many, so the pool checks at most every few milliseconds if the file was
 * replaced. The errors of sqlite_connection_open(). */
bool pool_take(Pool *pool, const char *sql, size_t sql_size, const EngineHint *hint, PooledConnection **ret,
               SqlError *error);

/* Takes the connection that writes, which must not be in use, and begins a transaction, in which foreign keys are enforced
 * or not. Busy, ReadOnly, and the errors of sqlite_connection_open(). */
bool pool_begin(Pool *pool, bool enforces, PooledConnection **ret, SqlError *error);

/* Opens the connection of a client's own, its *pin*, which may have TEMP tables; or makes a pin of the connection that
 * writes (*c), in the middle of its transaction. It is not in the pool: pool_unpin() closes it, and pool_give() only ends
 * its transaction. A file that the service may not write is opened to be read. */
bool pool_pin(Pool *pool, PooledConnection **c, SqlError *error);
void pool_unpin(PooledConnection *c);

/* PinLost: the file at the path is another one now, or the connection must be closed. Otherwise it cannot be looked at. */
bool pool_check_pin(Pool *pool, const PooledConnection *c, SqlError *error);

/* Gives a connection back to the pool. None of its statements may be running. Ends its transaction, and closes it if the
 * pool has enough idle ones. NULL is allowed. */
void pool_give(Pool *pool, PooledConnection *connection);

/* Closes connections that have been idle for long. Returns when to check again (CLOCK_MONOTONIC usec), UINT64_MAX: never. */
uint64_t pool_expire(Pool *pool, uint64_t now_usec);

#endif
