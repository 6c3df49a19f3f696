/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Fetch reads runs, one after the other, from a pipe, the database's channel, or replies with rows (source-rows.h).
 * Library.
 *
 * A statement has one pipe for all of its runs, one after the other; a query has one for its only run. A run may be
 * abandoned (its cursor was closed, or its statement was executed again). It is then cancelled, and its frames are read up
 * to END or ERROR, so that the next run starts at its own COLUMNS. On a channel it is cancelled and forgotten: the channel
 * drops the rest of its frames.
 */
#ifndef SQLIPC_CLIENT_LIB_FETCH_H
#define SQLIPC_CLIENT_LIB_FETCH_H

#include "client-lib/block.h"
#include "client-lib/channel-link.h"
#include "client-lib/row-memory.h"
#include "client-lib/source-rows.h"
#include "client-lib/sqlipc.h"
#include "dbus-interfaces/wire/page-decoder.h"

/* The state of an object on which a program waits because of -EAGAIN (a row) or 0 (a statement that is being compiled). */
typedef struct Waiting {
        bool waits;            /* the program waits, and was not called back since */
        bool notify;           /* there is news, so the callback is due */
} Waiting;

struct Fetch {
        sqlipc_connection *connection;
        ChannelLink *channel;      /* the database's, which may be closed; not owned; NULL in an unused run */
        bool on_channel;       /* the current or last run uses the channel, not the pipe */
        bool channel_lost;     /* the channel closed before the answer was complete, */
        bool never_sent;       /* and before all of the request was sent */
        bool as_rows;          /* the current or last run uses `rows` */
        SourceRows rows;
        Buffer backlog;        /* bytes that came while another run was read, or before the program read this one */
        uint64_t waits_since;  /* the turn of connection_process() in which the program was told to wait */
        sqlipc_cursor *cursor; /* the reader; NULL: none, the run is drained. Not owned */
        char *path;            /* database object; owned */
        char *owner;           /* unique name of the daemon instance, NULL on a bus without names; owned */
        int fd;                /* read end; -1: no pipe yet, or not any more */
        bool at_end_of_file;
        PageDecoder decoder;
        Block block;           /* the current block of rows */
        RowMemory row_memory;  /* the decoder's memory for long rows */
        Call *call;            /* Fetch, Query, OpenRows, or the call that asks if the daemon lives */
        uint64_t number;       /* 0: not known yet; on a channel that of the request */
        bool under_way;        /* requested, and neither END nor ERROR was read */
        bool cancel_wanted, cancel_sent;
};

/* Initializes a run without a pipe, of which nothing is in progress. Takes `path`. */
void fetch_init(Fetch *fetch, sqlipc_connection *connection, char *path, ChannelLink *channel);
/* Closes and frees what the run owns, and forgets a call in progress. */
void fetch_done(Fetch *fetch);

/* Takes the pipe that arrived in `reply`, whose sender becomes the owner; `fd` is borrowed. Replaces an earlier pipe. */
int fetch_open_pipe(Fetch *fetch, sd_bus_message *reply, int fd, uint32_t page_size);
void fetch_close_pipe(Fetch *fetch);

/* Notes that a run was requested. Takes `call`. */
void fetch_begin(Fetch *fetch, sqlipc_cursor *cursor, Call *call);

/* Moves the run to the channel, which must be open: closes the pipe, and forgets earlier results. The caller then writes
 * the requests and calls fetch_begin() without a call. */
void fetch_enter_channel(Fetch *fetch);

/* The same for a run by OpenRows and NextRows. */
void fetch_enter_rows(Fetch *fetch);

/* Drops everything that came or still comes through the channel. */
void fetch_leave_channel(Fetch *fetch);

/* The channel closed; `owner` was its daemon instance. The bytes that came can still be read. `never_sent`: the last
 * request of the run was not sent completely. */
void fetch_on_channel_lost(Fetch *fetch, const char *owner, bool never_sent);

/* Keeps bytes that came while another run was read. -ENOMEM. */
int fetch_put_aside(Fetch *fetch, const uint8_t *bytes, size_t size);

/* Reads the next event: PAGE_COLUMNS, PAGE_ROW, PAGE_END, PAGE_ERROR; on a channel PAGE_STATEMENT, too; -EAGAIN: nothing
 * yet; -ECONNRESET: end-of-file, or see source_rows_read(); -ENOBUFS: see channel_link_read(); or an error of the decoder.
 * */
int fetch_next(Fetch *fetch);

/* Abandons the run: cancels it, unless its end has come, and drains or forgets it. Returns PAGE_END or PAGE_ERROR if that
 * was the unread end; else PAGE_MORE. */
int fetch_abandon(Fetch *fetch);

/* Reads the rest of an abandoned run. 0: the pipe is free; -EAGAIN: not yet; other negative: the pipe cannot be used
 * again. */
int fetch_drain(Fetch *fetch);

/* Sends Cancel once, as soon as the number is known. */
void fetch_cancel(Fetch *fetch);

/* The object to which fetch_pollfd() belongs: the run, or its channel, which other runs wait for, too. */
const void *fetch_source(const Fetch *fetch);

/* The descriptor to wait for; fd -1 if only the bus can bring news. */
struct pollfd fetch_pollfd(const Fetch *fetch);

#endif
