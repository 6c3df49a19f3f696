/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One run, row by row. Library.
 *
 *      WAITING  the statement is being compiled, or its pipe still holds an earlier run
 *         |  Fetch sent (a query starts here: Query sent)
 *      RUNNING  rows come, maybe before the reply; an error reply means that none do
 *         |  END, ERROR, cancelled ------------------------------> DONE
 *         |  end-of-file without either
 *      ASKING   who died? An answer from the daemon instance that served us: the worker did; else the daemon -> DONE
 *
 * DONE keeps its answer. The row under the cursor is in the run's decoder; n_values is 0 when there is none.
 */
#ifndef SQLIPC_CURSOR_H
#define SQLIPC_CURSOR_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "error.h"
#include "parameters.h"
#include "run.h"

typedef enum CursorState {
        CURSOR_WAITING,
        CURSOR_RUNNING,
        CURSOR_ASKING,
        CURSOR_DONE,
} CursorState;

struct sqlipc_cursor {
        sqlipc_connection *connection;
        LIST_ENTRY(sqlipc_cursor) link;
        CursorState state;
        sqlipc_statement *statement; /* not owned; NULL: a query, or detached */
        Run *run;                    /* the statement's or `own`; NULL: detached */
        Run own;                     /* of a query */
        Bindings *bindings;          /* to be sent, until it is known that they were taken */
        bool retried;                /* the statement was compiled again for it; once is enough */
        atomic_bool cancelled;       /* set by any thread */
        unsigned n_values;           /* of the row under the cursor */
        EndCounters totals;
        Error error;                 /* DONE: result 0 is the end */
};

/* A query's cursor, whose Query is yet to be sent, or a statement's (`path` NULL). `path` is taken also on failure. */
int cursor_new(sqlipc_cursor **ret, sqlipc_connection *c, sqlipc_statement *s, char *path);

/* Acts on a cancellation, and sends Fetch if the time has come. Never waits, never frees. */
void cursor_advance(sqlipc_cursor *c);

/* Its statement goes on without it: ends its run, -ESTALE from now on if that was not over. */
void cursor_detach(sqlipc_cursor *c);

/* Ends it with this failure. */
void cursor_fail(sqlipc_cursor *c, const Error *e);

/* Waits, within the connection's timeout, until the run has started or failed. 0, or the failure, which the connection
 * has too. */
int cursor_wait_started(sqlipc_cursor *c);

#endif
