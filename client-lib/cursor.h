/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One run, row by row. Library.
 *
 *      WAITING  the statement is being compiled, its pipe still holds an earlier run, or a channel is being opened
 *         |  Fetch, Query or OpenRows sent, over the bus or a channel
 *      RUNNING  rows come, maybe before the reply; an error reply means that none do
 *         |  END, ERROR, cancelled ------------------------------> DONE
 *         |  a channel closed that gave no row ------------------> WAITING
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
        sqlipc_connection *connection; /* a reference */
        TAILQ_ENTRY(sqlipc_cursor) link;
        CursorState state;
        sqlipc_statement *statement; /* not owned; NULL: a query, or detached */
        Run *run;                    /* the statement's or `own`; NULL: detached */
        Run own;                     /* of a query */
        Bindings *bindings;          /* to be sent, until it is known that they were taken */
        uint8_t *query;              /* of a query that is not on its way over the bus: payload of QUERY */
        size_t query_size;
        uint32_t sql_sum;            /* of a query */
        sqlipc_transport transport;  /* what carries it; AUTO: not decided */
        bool bus_only;               /* it was on a channel, and may not be again */
        bool opened;                 /* a channel was opened for it */
        bool needs_channel;          /* no bus carries its parameters, or the program wants none to */
        unsigned retries_left;       /* on other channels */
        bool read_only;              /* what was asked for is known to change nothing */
        bool delivered;              /* the program has seen a row */
        bool retried;                /* the statement was compiled again for it; once is enough */
        atomic_bool cancelled;       /* set by any thread */
        unsigned n_interrupts;       /* of the connection, when it began */
        uint64_t run_timeout_usec;   /* by the service, UINT64_MAX: none but its own */
        unsigned n_values;           /* of the row under the cursor */
        Waiting waiting;
        sqlipc_cursor_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        EndCounters totals;
        Error error;                 /* DONE: result 0 is the end; before: of the last call that failed */
};

/* A query's cursor, whose Query is yet to be sent, or a statement's (`path` NULL). `path` is taken also on failure. */
int cursor_new(sqlipc_cursor **ret, sqlipc_connection *c, sqlipc_statement *s, char *path);

/* Acts on a cancellation, and sends Fetch if the time has come. Never waits, never frees. */
void cursor_advance(sqlipc_cursor *c);

/* Its statement goes on without it: ends its run, -ESTALE from now on if that was not over. */
void cursor_detach(sqlipc_cursor *c);

/* The connection is being closed: the cursor fails with -ENOTCONN unless it has ended, and is still the program's to close.
 * */
void cursor_close_connection(sqlipc_cursor *c);

/* Ends it because this error `reply` came, to which it is not asked again. */
void cursor_fail_reply(sqlipc_cursor *c, sd_bus_message *reply);

/* Ends it with this failure. */
void cursor_fail(sqlipc_cursor *c, const Error *e);

/* Neither the daemon nor its frames can be believed or reached any more. */
void cursor_fail_errno(sqlipc_cursor *c, int r);

/* WAITING: sends it on its way, if the time has come. */
void cursor_start(sqlipc_cursor *c);

/* The same for a query whose payload is kept. */
void query_start(sqlipc_cursor *c);

/* The time limit of its run, as a channel carries it: 0 for none. */
uint64_t cursor_timeout_on_channel(const sqlipc_cursor *c);

/* METHOD, Query or OpenRows, on the database of the cursor's run, over a bus that is open: SQL, parameters (padded with NULL
 * to `n_positional_min` positional ones) and options. */
int query_new_call(sqlipc_cursor *c, sd_bus_message **ret, const char *method, const char *sql, const Parameter *parameters,
                   size_t n_parameters, size_t n_positional_min);

/* Gives back the run in a late reply to one of them. */
void query_undo(sd_bus_message *reply, const char *path);

/* RUNNING on a channel that does not serve it: to WAITING. `bus_only`: for the bus. */
void cursor_restart(sqlipc_cursor *c, bool bus_only);

/* Waits, within the connection's timeout, until the run has started or failed. 0, or the failure, which the connection
 * has too. */
int cursor_wait_started(sqlipc_cursor *c);

#endif
