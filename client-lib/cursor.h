/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One run as the program sees it, row by row. Library.
 *
 * cursor-event.h handles the events of the fetch, cursor-next.h gives rows to the program; query.c and execute.c send the
 * request. The current row is in the fetch's decoder; n_values is 0 if there is none.
 */
#ifndef SQLIPC_CLIENT_LIB_CURSOR_H
#define SQLIPC_CLIENT_LIB_CURSOR_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "client-lib/bindings.h"
#include "client-lib/connection.h"
#include "client-lib/cursor-life.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/repeat.h"
#include "client-lib/transport.h"

/* Why a cursor ends. */
typedef enum CursorEnd {
        CURSOR_END_COMPLETE,  /* END was read */
        CURSOR_END_FAILED,    /* `error` has the reason */
        CURSOR_END_LOST,      /* the same, and later bytes for the statement could not be told from this run's */
        CURSOR_END_CANCELLED, /* by the program */
        CURSOR_END_KILLED,    /* the same, and the worker was killed for it */
        CURSOR_END_REPLACED,  /* its statement is executed again, or finalized */
        CURSOR_END_CLOSED,    /* the connection was closed, or the program closes the cursor */
} CursorEnd;

/* Sends the run, if it can be sent now. Never waits. */
typedef void (*CursorStart)(sqlipc_cursor *c);

struct sqlipc_cursor {
        Member member;
        sqlipc_connection *connection; /* a reference */
        CursorState state;
        CursorStart start;
        sqlipc_statement *statement; /* not owned; NULL: a query, or detached */
        Fetch *fetch;                /* the statement's or `own`; NULL: detached */
        Fetch own;                   /* of a query */
        Bindings *bindings;          /* to be sent; kept because the run may have to be sent again */
        uint8_t *query;              /* payload of QUERY, of a query that was not sent over the bus */
        size_t query_size;
        sd_bus_message *sent;        /* a query's call of Query or OpenRows, which may have to be sent again */
        bool has_file;               /* `sent` passes a file (call-file.h) */
        uint32_t sql_sum;            /* of a query */
        sqlipc_transport transport;  /* of this run; AUTO: not decided */
        sqlipc_transaction *transaction; /* a reference on the one that it belongs to, or the pin; NULL: none, or DONE */
        sqlipc_transaction *pin;     /* a reference on the pin that its transaction needs first; NULL: none, or DONE */
        Attempt attempt;             /* earlier attempts to send the request */
        unsigned retries_left;       /* on other channels, and of the question if it reads */
        bool alone;                  /* it belongs to no transaction and no pin */
        bool needs_channel;          /* its parameters are too large for the bus, or the program wants only channels */
        bool read_only;              /* the request, as it was sent, is known to change nothing */
        bool reads;                  /* the service has compiled its SQL for the library, and said so */
        bool delivered;              /* the program has got a row */
        Repeats repeats;             /* of the request, except those on other channels */
        atomic_bool cancelled;       /* set by any thread */
        unsigned n_interrupts;       /* of the connection, when the cursor began */
        uint64_t run_timeout_usec;   /* limit of the service; UINT64_MAX: only its own */
        unsigned n_values;           /* of the current row */
        sqlipc_cursor_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        EndCounters totals;
        Error error;                 /* DONE: result 0 is the end; before: of the last call that failed */
};

/* Creates a cursor for a query that is still to be sent, or for a statement (`path` NULL). Takes `path`, also on failure. */
int cursor_new(sqlipc_cursor **ret, sqlipc_connection *c, sqlipc_statement *s, char *path, CursorStart start);

/* WAITING: the request was sent. */
void cursor_begin(sqlipc_cursor *c, sqlipc_transport transport);

/* Ends the cursor for good. Gives back a query's pipe at once. */
void cursor_end(sqlipc_cursor *c, CursorEnd reason);

/* Ends the cursor with this failure. */
void cursor_fail(sqlipc_cursor *c, const Error *e);

/* Ends the cursor because its request could not be sent. */
void cursor_fail_send(sqlipc_cursor *c, int r);

/* Ends the cursor because of the error `reply`, after which the request is not repeated. */
void cursor_fail_reply(sqlipc_cursor *c, sd_bus_message *reply);

/* Ends the cursor because the daemon cannot be reached, or its frames cannot be trusted, any more. */
void cursor_fail_errno(sqlipc_cursor *c, int r);

/* Moves a cursor that is RUNNING or ASKING back to WAITING, because its channel does not serve it, or it runs again.
 * `bus_only`: the run must then use the bus. */
void cursor_restart(sqlipc_cursor *c, bool bus_only);

/* Chooses the way of the request (transport.h). A run in a transaction waits until that has begun, and uses the bus. */
Way cursor_choose_way(sqlipc_cursor *c, bool large, size_t parameters_size);

/* transact_check() of its transaction, after that of the pin that it waits for. */
int cursor_check_transaction(sqlipc_cursor *c, Error *e);

/* Sets `read_only` for a request that is sent, or answered, by its way or by the answer. It stays true if the service has
 * compiled the SQL, and said that it reads. */
void cursor_set_read_only(sqlipc_cursor *c, bool read_only);

/* True if the request was sent, and is not known to change nothing. */
bool cursor_may_write(const sqlipc_cursor *c);

/* Its request failed with `e`. True: it needs a pin, which was begun if there was none, and is sent again when that is
 * open; or the cursor has ended. */
bool cursor_take_pin(sqlipc_cursor *c, const Error *e);

/* Its request must wait for this pin, and name it. */
void cursor_use_pin(sqlipc_cursor *c, sqlipc_transaction *pin);

/* For a request that brought no result, is not repeated, and failed with `e`: if its outcome is unknown, `e` says so. A
 * transaction to which such a run belongs is rolled back, so that the outcome is known (transact_on_no_answer()).
 * FATE_UNKNOWN is also the fate of a run whose answer the program waits for no longer. */
void cursor_set_outcome(sqlipc_cursor *c, Error *e, Fate fate);

/* True if the program has cancelled the run, or interrupted the connection since. */
bool cursor_is_cancelled(sqlipc_cursor *c);

/* Acts on a cancellation. */
void cursor_apply_cancel(sqlipc_cursor *c);

/* Acts on a cancellation, reads the rest of an earlier run, and sends the run if it can be sent now. Never waits, never
 * frees. */
void cursor_advance(sqlipc_cursor *c);

/* END was read: keeps what the run has set for the connection. */
void cursor_note_setting(const sqlipc_cursor *c);

/* Notes the size and duration of the result, for transport.h. */
void cursor_note_result(sqlipc_cursor *c, uint64_t n_bytes, uint64_t usec);

/* Separates the cursor from its statement, which lives on: ends the cursor's run. The cursor returns -ESTALE from now on
 * if the run had not ended. */
void cursor_detach(sqlipc_cursor *c);

/* For the result `r` of a call that failed, and did not end the run: copies the details from the connection to the cursor.
 * Returns `r`. */
int cursor_report(sqlipc_cursor *c, int r);

/* The time limit of the run as a channel carries it: 0 for none. */
uint64_t cursor_timeout_on_channel(const sqlipc_cursor *c);

#endif
