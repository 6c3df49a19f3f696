/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pipe, and the run whose pages come down it. Library.
 *
 * A statement has one pipe for all of its runs, one after the other; a query has one for its only run. A run that nobody
 * wants any more (its cursor was closed, its statement executed again) is cancelled and *drained*: its frames are read up
 * to its END or ERROR, so that the next run starts at its own COLUMNS.
 */
#ifndef SQLIPC_RUN_H
#define SQLIPC_RUN_H

#include "call.h"
#include "page-decoder.h"
#include "sqlipc.h"

typedef struct Run {
        sqlipc_connection *connection;
        sqlipc_cursor *cursor; /* who reads; NULL: nobody, what comes is drained. Not owned */
        char *path;            /* database object; owned */
        char *owner;           /* unique name of the daemon instance, NULL on a bus without names; owned */
        int fd;                /* read end; -1: no pipe yet, or no more */
        bool at_end_of_file;
        PageDecoder decoder;
        Call *call;            /* Fetch, Query, or the question whether the daemon still lives */
        uint64_t number;       /* 0: not known yet */
        bool under_way;        /* asked for, and neither END nor ERROR was read */
        bool cancel_wanted, cancel_sent;
} Run;

/* Nothing under way, no pipe. `path` is taken. */
void run_init(Run *run, sqlipc_connection *connection, char *path);
/* Closes and frees what it owns, forgets a call under way. */
void run_done(Run *run);

/* A pipe arrived in `reply`, its sender is the owner from now on; `fd` is borrowed. Replaces an earlier pipe. */
int run_open_pipe(Run *run, sd_bus_message *reply, int fd, uint32_t page_size);
void run_close_pipe(Run *run);

/* A run is asked for: `call` is taken. */
void run_begin(Run *run, sqlipc_cursor *cursor, Call *call);

/* The next thing in the pipe: PAGE_COLUMNS, PAGE_ROW, PAGE_END, PAGE_ERROR; -EAGAIN: nothing yet; -ECONNRESET: end-of-file;
 * or what the decoder found wrong. */
int run_next(Run *run);

/* Nobody reads this run any more: cancel it, drain it later. */
void run_abandon(Run *run);

/* Reads what an abandoned run still sends. 0: the pipe is free; -EAGAIN: not yet; other negative: the pipe is of no use. */
int run_drain(Run *run);

/* Sends Cancel once, as soon as the number is known. */
void run_cancel(Run *run);

/* The descriptor worth waiting for, -1 if only the bus can bring news. */
static inline int run_wait_fd(const Run *run) {
        return run && !run->at_end_of_file ? run->fd : -1;
}

#endif
