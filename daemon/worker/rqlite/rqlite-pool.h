/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The parts of the engine for rqlite:
 *
 *      RqlitePool --- Cluster (nodes, libcurl), the newest ShadowSchema
 *        |-- RqliteConnection --- one exchange of HTTP; a transaction under way (rqlite-write.h)
 *              |-- RqliteStatement --- its shadow, its answer (rqlite-read.h)
 *
 * The cluster has no connections with a state. An RqliteConnection is the right to one request at a time, of which
 * ConnectionsMax= allows so many.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_POOL_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_POOL_H

#include "daemon/worker/rqlite/answer.h"
#include "daemon/worker/rqlite/cluster.h"
#include "daemon/worker/rqlite/shadow-schema.h"
#include "daemon/worker/rqlite/sql-tokens.h"
#include "daemon/worker/rqlite/typed-rows.h"
#include "daemon/worker/rqlite/window-plan.h"

typedef struct RqlitePool RqlitePool;
typedef struct RqliteConnection RqliteConnection;

/* The reading of a table in windows. */
typedef struct WindowState {
        WindowPlan plan;
        StatementWindow window;   /* the one under way */
        uint64_t first_index;     /* of the cluster's log, before the first window; valid if has_index */
        bool has_index;
        int node;                 /* that answers all of them */
        uint64_t n_found;         /* rows of the table in the window */
        int64_t last_key;
} WindowState;

typedef struct RqliteStatement {
        RqliteConnection *connection; /* borrowed */
        ShadowSchema *shadow;     /* a reference */
        SqliteStatement sqlite;   /* compiled on it */
        char *sql;                /* owned, the statement without what is around it, with a NUL */
        size_t sql_size;
        PageValue *values;        /* owned, of the parameters; their bytes are the job's */
        SqlVerb verb;
        uint64_t deadline_usec;   /* of its run, CLOCK_MONOTONIC */
        size_t returning;         /* where its expressions of RETURNING begin; 0: it has none */
        unsigned n_columns;
        bool *is_real;            /* owned: columns that are declared as REAL; NULL: not known yet */

        /* its answer */
        Answer answer;
        TextBuffer body;          /* of the request */
        TypedRows rows;
        PageValue *row;           /* owned: the row that waits */
        unsigned rows_item;       /* the item of the answer that has its rows */
        unsigned n_head_rows;     /* rows that came of the items before that one */
        bool is_read;             /* all of it has come */
        WindowState windows;

        /* one that writes, from its step to the end of the transaction */
        struct RqliteStatement *next; /* in the transaction */
        bool changes_rows;        /* it is an INSERT, UPDATE or DELETE, which SQLite counts */
        bool is_noted;            /* it is in the transaction's request */
        bool is_kept;             /* the transaction owns it */
        bool lost_rows;           /* it was written, but the server did not send what it returns */
        unsigned first_item, n_items; /* its results: one, or one for each row of a load */
        unsigned job;             /* which savepoint it is in */
        int64_t n_changes, last_rowid;
} RqliteStatement;

struct RqliteConnection {
        RqlitePool *pool;         /* borrowed */
        RqliteConnection *next;   /* in the pool's list of idle connections */
        uint64_t idle_usec;       /* since when it is there */
        ClusterExchange exchange;

        /* of the connection that writes */
        bool in_transaction;
        TextBuffer request;       /* statements, without the end of the array */
        RqliteStatement *first, *last; /* owned: those in the request, in its order */
        unsigned n_items, n_jobs;
        RqliteStatement *outcome; /* the next one that was carried out */
        size_t saved_size;        /* at save() */
        unsigned saved_items;
        RqliteStatement *saved_last;
        uint64_t applied_index;   /* of the log, after the commit; 0: not known */
};

struct RqlitePool {
        const Setup *setup;       /* borrowed */
        EngineProgress progress;
        void *userdata;
        Cluster cluster;
        bool has_nodes;           /* Connection= was read */
        ShadowSchema *shadow;     /* a reference; NULL: not read yet */
        RqliteConnection *idle;
        EngineConnections connections; /* those in use, and idle ones */
        unsigned n_used;
        uint64_t last_index;      /* of the log, as far as this worker knows */
        uint64_t observed_index;  /* of an observer: when it read the schema's version */
        uint32_t observed_schema;
        RqliteConnection *observer; /* owned */
};

/* -ENOMEM */
int rqlite_pool_new(const Setup *setup, EngineProgress progress, void *userdata, RqlitePool **ret);
RqlitePool *rqlite_pool_free(RqlitePool *p);

/* Provides a connection. ERROR_BUSY: all are in use. CannotOpen, LoginFailed: Connection= is not valid. OutOfMemory. */
bool rqlite_pool_take(RqlitePool *p, RqliteConnection **ret, SqlError *error);

/* Takes it back; its request under way ends. Its transaction must have ended (rqlite_write_end()). */
void rqlite_pool_give(RqlitePool *p, RqliteConnection *c);

/* close_idle() of the engine. libcurl may have one socket more until a request under way ends. */
bool rqlite_pool_close_idle(RqlitePool *p);

/* Closes connections that have been idle for long. As expire() of the engine. */
uint64_t rqlite_pool_expire(RqlitePool *p, uint64_t now_usec);

/* level= of requests that read. */
const char *rqlite_pool_level(const RqlitePool *p);

#endif
