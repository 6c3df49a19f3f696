/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The connections of a worker to one server, each with its prepared statements. It has as many as its share of
 * ConnectionsMax= allows (connection-share.h). A job takes one and gives it back. A connection is checked when it is taken.
 * While no connection can be made, there is one attempt after each pause, which doubles up to a second; jobs that come in
 * between wait for its end.
 *
 * A statement that is interrupted is cancelled at the server. Its connection waits in a list of its own until the request to
 * cancel is over and the server has answered everything, and is closed if that takes too long.
 *
 * Users who may not write read from ReplicaConnection=, if there is one and it answers. All others use the primary, so
 * none of them ever sees data that is older than their own commits.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_POOL_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_POOL_H

#include "daemon/worker/postgresql/pg-ahead.h"
#include "daemon/worker/postgresql/pg-cancel.h"
#include "daemon/worker/postgresql/pg-server.h"
#include "daemon/worker/postgresql/pg-statement.h"

typedef struct PgPool PgPool;

struct PgPooled {
        PgConnection connection;
        PgStatements statements;
        PgPool *pool;           /* borrowed */
        PgPooled *next;         /* in the list of idle ones, the last used first */
        uint64_t idle_usec;     /* since when it has been idle */
        PgCancel *cancel;       /* owned; of the statement that was interrupted */
        uint64_t cancel_until_usec; /* then it is closed */
};

struct PgPool {
        const Setup *setup;     /* borrowed */
        EngineProgress progress;
        void *userdata;
        PgServer primary, replica;
        bool has_replica;
        PgPooled *idle, *cancelled;
        EngineConnections connections; /* also those in use and those that are cancelled */
        PgTypes types;
        PgAhead ahead;
        PgPooled *observer;     /* the connection of an observer; NULL: none */
};

/* Creates a pool without connections. `setup` is borrowed. -ENOMEM. */
int pg_pool_new(const Setup *setup, EngineProgress progress, void *userdata, PgPool **ret);

/* Closes all connections, none of which may be in use. NULL is allowed. Returns NULL. */
PgPool *pg_pool_free(PgPool *pool);

/* Takes a connection, preferably one that has `sql` prepared. Busy: all are in use;
 * ServerUnreachable, LoginFailed. */
bool pg_pool_take(PgPool *pool, const char *sql, size_t sql_size, const EngineHint *hint, PgPooled **ret, SqlError *error);

/* give_up() of engine.h. */
void pg_pool_give_up(SqlError *error);

/* Ends the transaction, and keeps the connection or closes it. */
void pg_pool_give(PgPool *pool, PgPooled *p);

/* Opens a connection that was lost, as `error` says, again. The statements must be prepared again. True: there is no error
 * any more. */
bool pg_pool_reopen(PgPooled *p, SqlError *error);

/* Closes the connection that has been idle for longest. False: none is idle. */
bool pg_pool_close_idle(PgPool *pool);

/* Closes connections that have been idle for long. Returns when to check again, UINT64_MAX: never. */
uint64_t pg_pool_expire(PgPool *pool, uint64_t now_usec);

static inline PgPooled *pg_pooled_of(PgStatement *s) {
        return (PgPooled *) (void *) ((char *) s->cache - offsetof(PgPooled, statements));
}

#endif
