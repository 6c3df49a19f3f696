/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A prepared statement: SQL, the pipe of its runs, and which of them is under way. Supervisor. No worker knows it: each run
 * brings the SQL along, so a worker that ends costs it nothing.
 *
 *      PREPARING --STARTED--> READY --worker lost in a run--> LOST --Finalize--> gone
 *          \--error--> gone     \--Finalize, its client or its database is gone--> gone
 */
#ifndef SQLIPC_STATEMENT_H
#define SQLIPC_STATEMENT_H

#include "database.h"
#include "pipe.h"
#include "session.h"

typedef struct Run Run;

typedef enum StatementState {
        STATEMENT_PREPARING, /* cannot be named yet */
        STATEMENT_READY,
        STATEMENT_LOST,
} StatementState;

typedef struct Statement {
        Session *session;    /* not owned */
        Database *database;  /* reference */
        uint64_t number;
        StatementState state;
        GBytes *sql;         /* shared with its runs; held by the user */
        Pipe *pipe;          /* reference */
        uint32_t page_size;
        uint64_t n_runs;
        uint64_t last_run;   /* its number: Cancel of a run that has just ended is no error */
        Run *run;            /* under way, not owned; also its PREPARE */
        bool doomed;         /* its database was unpublished: gone once its run is over */
        uint64_t expires_usec;
        GSequenceIter *expiry; /* statement-expiry.h, where it is idle */
        GList session_link;
} Statement;

/* Makes statement and pipe. LIMITS_EXCEEDED, or no memory. */
int statement_new(Session *s, Database *d, const char *sql, uint32_t page_size, Statement **ret, Refusal *refusal);

/* Ends its run, retires its pipe. NULL is allowed. Returns NULL. */
Statement *statement_free(Statement *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Statement, statement_free)

/* The peer's own statement on `database`, READY or LOST. UNKNOWN_STATEMENT for all others, whatever they are. */
int statement_find(Manager *m, const Peer *p, const Database *d, uint64_t number, Statement **ret, Refusal *refusal);

/* NULL: the pipe belongs to none, or to none any more. */
Statement *statement_of_pipe(const Manager *m, const Pipe *p);

/* A run of it is under way. */
void statement_run_begins(Statement *s, Run *run);

/* Its run is over: it may have the next one, or was waiting for this to die. */
void statement_run_is_over(Statement *s);

/* SQL up to this many bytes, whatever the limits say. */
#define SQL_SIZE_MAX ((size_t) 1000000)
/* LIMITS_EXCEEDED over SQLSizeMax=. */
int sql_check(User *u, const Database *d, const char *sql, size_t *ret_size, Refusal *refusal);

/* The first characters of SQL, for lists. The caller frees. */
#define SQL_EXCERPT_LENGTH 200
char *sql_excerpt(GBytes *sql);

#endif
