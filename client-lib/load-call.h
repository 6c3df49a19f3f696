/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A load: a statement that the service runs once for each row that the program gives. Library.
 *
 *      load-call.c     beginning and end, as a member of the connection
 *      load-rows.c     rows, and the functions that wait
 *      load-stream.h   rows become pages          pipe-write.h    pages go into the pipe
 *
 * Load brings the pipe, and Wait is sent at once. Its answer comes when the load is over, and has the result or the reason,
 * so the library never has to ask, and the service keeps no result for a program that does not want it. As long as END is
 * not in the pipe as a whole, nothing can have been written. After that only an answer to Wait tells the outcome.
 *
 * If the connection has a transaction on the database, the load belongs to it as any run does (transact.h).
 */
#ifndef SQLIPC_CLIENT_LIB_LOAD_CALL_H
#define SQLIPC_CLIENT_LIB_LOAD_CALL_H

#include "client-lib/call.h"
#include "client-lib/connection.h"
#include "client-lib/load-life.h"
#include "client-lib/load-stream.h"

struct sqlipc_load {
        Member member;
        sqlipc_connection *connection;   /* a reference */
        sqlipc_transaction *transaction; /* a reference; NULL: the load is on its own */
        LoadState state;
        char *path;                      /* database object */
        char *sql;                       /* of Load, until that is sent */
        char *owner;                     /* unique name of the instance that has it; NULL on a bus without names */
        uint64_t number;                 /* the daemon's; 0: not known yet */
        uint64_t bus_generation;         /* of the bus on which it began */
        uint64_t run_timeout_usec;
        unsigned n_interrupts;           /* of the connection, when it began */
        Call *call;                      /* Load, then Wait */
        int fd;                          /* the write end of the pipe, -1: not open yet, or closed; owned */
        LoadStream stream;
        unsigned n_columns;
        Parameter *values;               /* room for a row, so that rows allocate nothing; owned */
        int64_t n_changes;               /* OVER */
        sqlipc_load_callback on_ready;   /* NULL: none */
        void *on_ready_userdata;
        Error error;                     /* OVER: result 0 if the rows were loaded */
};

/* Sends Load as soon as that is possible, and finds out if the connection was interrupted. */
void load_call_advance(sqlipc_load *l);

/* Writes pages that are complete. 0: all of them; -EAGAIN: the pipe is full, or the state has changed. */
int load_call_write(sqlipc_load *l);

/* True if END is in the pipe, so that the service may commit. */
static inline bool load_is_sent(const sqlipc_load *l) {
        return load_stream_is_sent(&l->stream);
}

/* The fact that is unknown about a load whose rows were all sent (repeat_set_unknown()). */
#define LOAD_FACT "the rows were loaded"

#endif
