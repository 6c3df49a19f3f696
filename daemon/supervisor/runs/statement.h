/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A prepared statement: its SQL, the pipe of its runs, and the run under way. Supervisor. No worker keeps a statement: each
 * run brings the SQL along, so a statement does not depend on any worker. Its states are in statement-life.h.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_STATEMENT_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_STATEMENT_H

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/expiry.h"
#include "daemon/supervisor/runs/pipe.h"
#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/runs/statement-life.h"

typedef struct Run Run;

typedef struct Statement {
        Session *session;    /* not owned */
        Database *database;  /* reference */
        uint64_t number;
        StatementState state;
        GBytes *sql;         /* shared with its runs; held by the user */
        Pipe *pipe;          /* reference */
        uint32_t page_size;
        uint64_t n_runs;
        uint64_t last_run;   /* number of its last run: Cancel of a run that has just ended is no error */
        Run *run;            /* the run under way, or its PREPARE; not owned */
        ExpiryItem expiry;   /* StatementIdleSec= */
        bool cached;         /* it may be released while it is idle: its client prepares it again */
        uint64_t idle_usec;  /* since when it is idle */
        GList session_link;
        GList idle_link;     /* cached and idle: in the user's idle_statements; data NULL: not in it */
} Statement;

/* Makes a statement, which belongs to the session, and its pipe. Copies the SQL. If the user, or all users of the database,
 * have all the statements that they may have, this first releases the user's cached statement that has been idle for the
 * longest time: not one that has never run and was prepared a moment ago, whose client would only prepare it again; nor one
 * whose pipe holds rows. A cached one is refused if so many pipes of released statements are left that it could not be
 * released for another cached one. LIMITS_EXCEEDED; -errno. */
int statement_new(Session *s, Database *d, const char *sql, uint32_t page_size, bool cached, Statement **ret,
                  Refusal *refusal);

/* Cancels the statement's run, retires its pipe and frees it. NULL is allowed. Returns NULL. */
Statement *statement_free(Statement *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Statement, statement_free)

/* Finds the peer's own statement on `database`, READY or LOST. Every other number is UNKNOWN_STATEMENT. */
int statement_find(Context *context, const Peer *p, const Database *d, uint64_t number, Statement **ret, Refusal *refusal);

/* The statement that uses the pipe; NULL: none, or none any more. */
Statement *statement_of_pipe(const Context *context, const Pipe *p);

/* Starts to end statements that do not run for StatementIdleSec=. */
void statement_start_expiry(Context *context);

/* A run of the statement begins. */
void statement_run_begins(Statement *s, Run *run);

/* The statement's run is over: the next run may begin, or an ENDING statement is freed. */
void statement_run_is_over(Statement *s);

/* Its PREPARE is done. */
void statement_on_prepared(Statement *s);

/* The worker of its run is lost, or may have been lost before the last bytes of its stream were written. */
void statement_on_worker_lost(Statement *s);

/* Its database is no longer published: frees the statement, at once or after its run. */
void statement_on_unpublished(Statement *s);

#endif
