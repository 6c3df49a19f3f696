/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One run, row by row. Library.
 *
 *      WAITING  the statement is being compiled, its pipe still holds an earlier run, or a channel is being opened
 *         |  Fetch, Query or OpenRows sent, over the bus or a channel
 *      RUNNING  rows come, maybe before the reply; after an error reply none come
 *         |  END, ERROR, cancelled ------------------------------> DONE
 *         |  a channel closed before it gave a row --------------> WAITING
 *         |  end-of-file without END or ERROR
 *      ASKING   asks the daemon instance that served the run if it lives: if so, the worker died, else the daemon -> DONE
 *
 * DONE keeps its answer. The current row is in the run's decoder; n_values is 0 if there is none.
 */
#ifndef SQLIPC_CLIENT_LIB_CURSOR_H
#define SQLIPC_CLIENT_LIB_CURSOR_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/parameter.h"

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
        Fetch *fetch;                /* the statement's or `own`; NULL: detached */
        Fetch own;                   /* of a query */
        Bindings *bindings;          /* to be sent; kept because the run may have to be sent again */
        uint8_t *query;              /* payload of QUERY, of a query that was not sent over the bus */
        size_t query_size;
        uint32_t sql_sum;            /* of a query */
        sqlipc_transport transport;  /* of this run; AUTO: not decided */
        bool bus_only;               /* it was on a channel, and must not be again */
        bool opened;                 /* a channel was opened for it */
        bool needs_channel;          /* its parameters are too large for the bus, or the program wants only channels */
        unsigned retries_left;       /* on other channels */
        bool read_only;              /* the request is known to change nothing */
        bool delivered;              /* the program has got a row */
        bool retried;                /* the request was repeated for it; once is enough */
        atomic_bool cancelled;       /* set by any thread */
        unsigned n_interrupts;       /* of the connection, when the cursor began */
        uint64_t run_timeout_usec;   /* limit of the service; UINT64_MAX: only its own */
        unsigned n_values;           /* of the current row */
        Waiting waiting;
        sqlipc_cursor_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        EndCounters totals;
        Error error;                 /* DONE: result 0 is the end; before: of the last call that failed */
};

/* Creates a cursor for a query that is still to be sent, or for a statement (`path` NULL). Takes `path`, also on failure. */
int cursor_new(sqlipc_cursor **ret, sqlipc_connection *c, sqlipc_statement *s, char *path);

/* Acts on a cancellation, and sends the run if it can be sent now. Never waits, never frees. */
void cursor_advance(sqlipc_cursor *c);

/* Separates the cursor from its statement, which lives on: ends the cursor's run. The cursor returns -ESTALE from now on
 * if the run had not ended. */
void cursor_detach(sqlipc_cursor *c);

/* For a connection that is being closed: the cursor fails with -ENOTCONN unless it has ended. The program must still
 * close it. */
void cursor_close_connection(sqlipc_cursor *c);

/* Ends the cursor because of the error `reply`, after which the request is not repeated. */
void cursor_fail_reply(sqlipc_cursor *c, sd_bus_message *reply);

/* Ends the cursor with this failure. */
void cursor_fail(sqlipc_cursor *c, const Error *e);

/* Ends the cursor because the daemon cannot be reached, or its frames cannot be trusted, any more. */
void cursor_fail_errno(sqlipc_cursor *c, int r);

/* WAITING: sends the run, if it can be sent now. */
void cursor_start(sqlipc_cursor *c);

/* The same for a query whose payload is kept. */
void query_start(sqlipc_cursor *c);

/* The time limit of the run as a channel carries it: 0 for none. */
uint64_t cursor_timeout_on_channel(const sqlipc_cursor *c);

/* Creates a call to METHOD (Query or OpenRows) on the database of the cursor's run, and ensures an open bus for it: SQL,
 * parameters (padded with NULL to `n_positional_min` positional ones) and options. */
int query_new_call(sqlipc_cursor *c, sd_bus_message **ret, const char *method, const char *sql, const Parameter *parameters,
                   size_t n_parameters, size_t n_positional_min);

/* Gives back the run in a late reply to Query or OpenRows. */
void query_undo(sd_bus_message *reply, const char *path);

/* Moves a cursor that is RUNNING on a channel back to WAITING, because the channel does not serve it. `bus_only`: the run
 * must then use the bus. */
void cursor_restart(sqlipc_cursor *c, bool bus_only);

/* Waits, within the connection's timeout, until the run has started or failed. Returns 0 or the failure, which the
 * connection then has, too. */
int cursor_wait_started(sqlipc_cursor *c);

#endif
