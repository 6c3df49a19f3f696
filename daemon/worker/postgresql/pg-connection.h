/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One connection to a server, by libpq in its pipeline mode. Nothing here blocks: each wait is for the socket
 * and, every few milliseconds, for the worker's progress function.
 *
 * The server sees each statement of a reader in a transaction that only reads and that is always rolled back. So nothing
 * that a client sets (set_config(), SET in a function) outlives its statement, and none can leave the read-only mode: the
 * server refuses that after the first query of a transaction.
 *
 *      a statement alone:   BEGIN READ ONLY, the statement, ROLLBACK        one round trip
 *      held, or a snapshot: BEGIN READ ONLY REPEATABLE READ, statement ...  ROLLBACK goes out without a wait for its answer
 *      writing:             BEGIN, SAVEPOINT, the statement; RELEASE, COMMIT  two round trips
 *
 * Therefore commands (*orders*) are put aside, and go out with the next statement, for which they need no round trip.
 *
 * A connection that is lost is opened again inside of the same object, and its statements are prepared again when they are
 * needed (pg-statement.h), but only if the server has run nothing of the present transaction.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_CONNECTION_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_CONNECTION_H

#include <libpq-fe.h>

#include "daemon/worker/core/engine.h"

#define PG_SAVEPOINT "sqlipc_statement"

typedef enum PgOrder {
        PG_ORDER_BEGIN_READ,
        PG_ORDER_BEGIN_SNAPSHOT,
        PG_ORDER_BEGIN_WRITE,
        PG_ORDER_BEGIN_SERIALIZABLE,
        PG_ORDER_ROLLBACK,
        PG_ORDER_COMMIT,
        PG_ORDER_SAVE,
        PG_ORDER_KEEP,
        PG_ORDER_UNDO,          /* ROLLBACK TO; the savepoint stays */
        PG_ORDER_RESET_ROLE,
        PG_ORDER_RESET_SETTINGS,
        PG_ORDER_DROP_TEMPORARY, /* these four: what a session keeps besides settings */
        PG_ORDER_CLOSE_CURSORS,
        PG_ORDER_UNLISTEN,
        PG_ORDER_UNLOCK,        /* locks that a transaction's end leaves */
        PG_ORDER_CHECK_CLIENT,  /* the server looks if we are still there */
        PG_ORDER_ONLY_READ,
        PG_ORDER_LISTEN,
        PG_ORDER_LOOK,          /* has the server take the snapshot of the transaction */
        PG_ORDER_N,
} PgOrder;

#define PG_CHECKS_CLIENT 140000 /* the first server that knows PG_ORDER_CHECK_CLIENT: an older one would refuse all orders */
#define PG_ORDERS_MAX 16
#define PG_FORGOTTEN_MAX 64

typedef struct PgConnection {
        const Setup *setup;     /* borrowed */
        EngineProgress progress; /* NULL: none */
        void *userdata;
        PGconn *pq;             /* owned; NULL: it is closed */
        uint64_t generation;    /* another one each time it is opened: what was prepared before is gone */

        PgOrder orders[PG_ORDERS_MAX];
        unsigned n_orders;
        PgOrder first[PG_ORDERS_MAX]; /* those that have begun the transaction, for another connection if this one is lost */
        unsigned n_first;
        unsigned n_sent;        /* orders whose results are to be read, before those of the statement */
        unsigned n_unread;      /* pipelines that were sent without a wait for their results, before that */
        unsigned n_syncs;       /* ends of pipelines that the server has not answered yet, of all kinds */
        char forgotten[PG_FORGOTTEN_MAX][24]; /* prepared statements that are not needed any more */
        unsigned n_forgotten;
        uint64_t deaf_until_usec; /* progress is not asked before: see pg_connection_next() */
        bool flushes;           /* bytes wait in libpq for room in the socket */

        bool open;              /* there is a transaction, at least BEGIN among the orders */
        bool begun;             /* the server has heard of it */
        bool failed;            /* it refuses everything but its end, or that of a savepoint */
        bool held, snapshot, writes; /* what the transaction is for */
        bool savepoints;        /* it is that of one client, which may have savepoints */
        bool sets;              /* one of its statements may have changed the session */
        uint64_t transaction;   /* its number in this worker, if it writes */
        unsigned n_wrote;       /* statements in it that write */
        uint64_t n_own;         /* numbers that the server has given to it, at least */
        bool counted;           /* that of the present savepoint is in it */
        char *before;           /* owned: the server's snapshot before it; NULL: not asked for */
        bool doomed;            /* it writes, and all of it must be repeated: it is not committed, also if the server would
                                 * commit what a savepoint has kept */
        bool busy;              /* a statement runs, or its rows are being read */
        bool ahead;             /* statements after the present one were sent (pg-ahead.h), and the end of the transaction */
        bool lost;              /* the server is gone, or does not keep to the protocol */
        bool worn;              /* it must be closed after the present transaction */
        bool broken;            /* it must be closed: results that are not wanted are on their way */
        bool interrupted;       /* the reason is that the worker waits for them no longer: they can be cancelled */
        bool rolls_back;        /* of an interrupted one: ROLLBACK was sent */
        size_t large;           /* the largest value so far: libpq keeps its buffer */
        uint64_t own_timeout_msec, timeout_msec; /* statement_timeout: that of the role or the server, and the present one;
                                 * 0: none */
} PgConnection;

/* Opens it, with `keywords` and `values` for PQconnectStartParams(). SERVER_UNREACHABLE, LOGIN_FAILED, TIMED_OUT, or the
 * reason why progress interrupts. */
bool pg_connection_open(PgConnection *c, const char *const *keywords, const char *const *values, uint64_t timeout_usec,
                        SqlError *error);

/* Closes it. Nothing happens if it is closed. */
void pg_connection_close(PgConnection *c);

/* True if it is open, and the server has not ended it. Costs one system call. */
bool pg_connection_is_alive(PgConnection *c);

/* Puts an order aside. */
void pg_connection_order(PgConnection *c, PgOrder order);

/* Takes the last order back if it is this one. */
bool pg_connection_recall(PgConnection *c, PgOrder order);

/* Has the server forget a prepared statement after the present transaction. */
void pg_connection_deallocate(PgConnection *c, const char *name);

/* Reads the answers to pipelines that were sent without a wait. */
bool pg_connection_settle(PgConnection *c, SqlError *error);

/* Sends the orders to libpq. The caller adds a statement, then calls pg_connection_flush(). */
bool pg_connection_send_orders(PgConnection *c, SqlError *error);

/* Adds an order after the statement. */
bool pg_connection_send_last(PgConnection *c, PgOrder order, SqlError *error);

/* Ends the pipeline, and begins to send it. */
bool pg_connection_flush(PgConnection *c, SqlError *error);

/* Reads the results of the orders before the statement. */
bool pg_connection_read_orders(PgConnection *c, SqlError *error);

/* Waits for the socket or for a moment, and moves bytes in both directions. */
bool pg_connection_exchange(PgConnection *c, SqlError *error);

/* Waits until libpq has sent everything. */
bool pg_connection_send_all(PgConnection *c, SqlError *error);

/* Waits for at most `usec` until the next result has begun to come. False: it has not. True as well if there is an error, or
 * something to send: pg_connection_next() finds that. */
bool pg_connection_await(PgConnection *c, uint64_t usec);

/* Waits for the next result, which the caller clears. False: the connection is lost or broken, with the error. NULL in
 * *ret: there are no more results of this command. */
bool pg_connection_next(PgConnection *c, PGresult **ret, SqlError *error);

/* Reads and drops everything up to the end of the pipeline. `error` gets the first failure of an order, unless it is set. */
bool pg_connection_finish(PgConnection *c, SqlError *error);

/* Carries out the orders. With `waits` their answers are read now, and the error is that of the first one that failed. */
bool pg_connection_carry_out(PgConnection *c, bool waits, SqlError *error);

/* Ends the transaction. The answer is read later. */
void pg_connection_roll_back(PgConnection *c);

/* Ends a transaction whose first statement has failed. One that writes begins again, as it did before. */
void pg_connection_begin_again(PgConnection *c);

/* True if an interrupted connection can be used again after the server has answered everything. */
bool pg_connection_is_in_step(const PgConnection *c);

/* Reads and drops the answers that have come on an interrupted connection, without a wait. With `is_cancelled` it also ends
 * the transaction. 1: the connection is as good as new; 0: not yet; -1: it must be closed. */
int pg_connection_recover(PgConnection *c, bool is_cancelled);

/* Sets statement_timeout if the present one differs much from the time that is left. */
void pg_connection_limit(PgConnection *c, uint64_t deadline_usec);

#endif
