/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A run, and what its pages come through: a pipe, the database's channel, or replies with rows (rows.h). Library.
 *
 * A statement has one pipe for all of its runs, one after the other; a query has one for its only run. A run that nobody
 * wants any more (its cursor was closed, its statement executed again) is cancelled and *drained*: its frames are read up
 * to its END or ERROR, so that the next run starts at its own COLUMNS. On a channel
 * it is cancelled and forgotten: the channel passes over what still comes of it.
 */
#ifndef SQLIPC_RUN_H
#define SQLIPC_RUN_H

#include "block.h"
#include "channel.h"
#include "page-decoder.h"
#include "row-memory.h"
#include "rows.h"
#include "sqlipc.h"

/* What a program waits for that was told to come back: a row, or a statement that is compiled. */
typedef struct Waiting {
        bool waits;            /* it was told so, and not called back since */
        bool notify;           /* the callback under way is, or will be, for it */
} Waiting;

struct Run {
        sqlipc_connection *connection;
        Channel *channel;      /* the database's, which may be closed; not owned, NULL: never looked for */
        bool on_channel;       /* what is under way, or was last, came through it, not down the pipe */
        bool channel_lost;     /* it closed before the answer was whole, */
        bool never_sent;       /* and before the request was sent whole */
        bool as_rows;          /* what is under way, or was last, comes by `rows` */
        Rows rows;
        Buffer backlog;        /* what came of it while another run was read, or the program did something else */
        uint64_t waits_since;  /* the turn of connection_process() in which the program was told to wait */
        sqlipc_cursor *cursor; /* who reads; NULL: nobody, what comes is drained. Not owned */
        char *path;            /* database object; owned */
        char *owner;           /* unique name of the daemon instance, NULL on a bus without names; owned */
        int fd;                /* read end; -1: no pipe yet, or no more */
        bool at_end_of_file;
        PageDecoder decoder;
        Block block;           /* of the rows under the cursor */
        RowMemory row_memory;  /* the decoder's, of long rows */
        Call *call;            /* Fetch, Query, OpenRows, or the question whether the daemon still lives */
        uint64_t number;       /* 0: not known yet; on a channel the request's */
        bool under_way;        /* asked for, and neither END nor ERROR was read */
        bool cancel_wanted, cancel_sent;
};

/* Nothing under way, no pipe. `path` is taken. */
void run_init(Run *run, sqlipc_connection *connection, char *path, Channel *channel);
/* Closes and frees what it owns, forgets a call under way. */
void run_done(Run *run);

/* A pipe arrived in `reply`, its sender is the owner from now on; `fd` is borrowed. Replaces an earlier pipe. */
int run_open_pipe(Run *run, sd_bus_message *reply, int fd, uint32_t page_size);
void run_close_pipe(Run *run);

/* A run is asked for: `call` is taken. */
void run_begin(Run *run, sqlipc_cursor *cursor, Call *call);

/* What is asked for next goes over the channel, which is open: the pipe is closed, and what came before is forgotten. The
 * requests follow, and then run_begin() without a call. */
void run_enter_channel(Run *run);

/* The same for what comes by OpenRows and NextRows. */
void run_enter_rows(Run *run);

/* What came through the channel and was not taken, or still comes, is of no use. */
void run_leave_channel(Run *run);

/* The channel closed, of which `owner` was the daemon instance: what came can still be read. `never_sent`: the last request
 * of the run was not sent whole. */
void run_on_channel_lost(Run *run, const char *owner, bool never_sent);

/* Keeps bytes that came while another run was read. -ENOMEM. */
int run_put_aside(Run *run, const uint8_t *bytes, size_t size);

/* The next thing in pipe or channel: PAGE_COLUMNS, PAGE_ROW, PAGE_END, PAGE_ERROR; on a channel PAGE_STATEMENT too; -EAGAIN:
 * nothing yet; -ECONNRESET: end-of-file, or see rows_read(); -ENOBUFS: see channel_read(); or what the decoder found
 * wrong. */
int run_next(Run *run);

/* Nobody reads this run any more: cancel it, unless its end is here, and drain or forget it. PAGE_END or PAGE_ERROR: that
 * was the unread end; else PAGE_MORE. */
int run_abandon(Run *run);

/* Reads what an abandoned run still sends. 0: the pipe is free; -EAGAIN: not yet; other negative: the pipe is of no use. */
int run_drain(Run *run);

/* Sends Cancel once, as soon as the number is known. */
void run_cancel(Run *run);

/* Whom run_pollfd() is of: the run, or its channel, which others wait for, too. */
const void *run_source(const Run *run);

/* The descriptor worth waiting for; its fd is -1 if only the bus can bring news. */
struct pollfd run_pollfd(const Run *run);

#endif
