/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Fetch reads the runs of a statement, one after the other, or that of a query: it takes bytes from a source (source.h)
 * and decodes them. Library.
 *
 * A run may be abandoned: its cursor was closed, or its statement was executed again. It is then cancelled, and the source
 * decides if its rest must be read (fetch_drain()).
 */
#ifndef SQLIPC_CLIENT_LIB_FETCH_H
#define SQLIPC_CLIENT_LIB_FETCH_H

#include "client-lib/block.h"
#include "client-lib/fetch-life.h"
#include "client-lib/row-memory.h"
#include "client-lib/source-channel.h"
#include "client-lib/source-pipe.h"
#include "client-lib/source-rows.h"
#include "client-lib/sqlipc.h"
#include "dbus-interfaces/wire/page-decoder.h"

struct Fetch {
        sqlipc_connection *connection;
        FetchState state;
        sqlipc_cursor *cursor; /* the reader; NULL: none, the run is drained. Not owned */
        char *path;            /* database object; owned */
        ChannelLink *link;     /* the database's, which may be closed; not owned; NULL in an unused fetch */
        Source *source;        /* the current or last one: one of the next three */
        SourcePipe pipe;
        SourceChannel channel;
        SourceRows rows;
        PageDecoder decoder;
        Block block;           /* the current block of rows */
        RowMemory row_memory;  /* the decoder's memory for long rows */
};

/* Initializes a fetch of which nothing is in progress. Takes `path`. */
void fetch_init(Fetch *fetch, sqlipc_connection *connection, char *path, ChannelLink *link);
/* Closes and frees what the fetch owns, and forgets a call in progress. */
void fetch_done(Fetch *fetch);

/* Changes to another source, and forgets earlier results. fetch_use_pipe(): to the pipe that arrived in `reply`, whose
 * sender becomes the owner; `fd` is borrowed. fetch_use_channel(): to the database's channel, which must be open.
 * fetch_use_rows(): to OpenRows, on the connection's bus. The caller then writes the request and calls fetch_begin().
 * fetch_use_pipe(): 0; -EBADMSG: the page size or `fd` is invalid; -ENOMEM or another negative errno. */
int fetch_use_pipe(Fetch *fetch, sd_bus_message *reply, int fd, uint32_t page_size);
void fetch_use_channel(Fetch *fetch);
void fetch_use_rows(Fetch *fetch);

/* A run was requested: by `call`, which is taken, or with a number on the channel. */
void fetch_begin(Fetch *fetch, sqlipc_cursor *cursor, Call *call, uint64_t number);

/* The answer to the call has the run's number. */
void fetch_set_number(Fetch *fetch, uint64_t number);

/* The run ended without END or ERROR, or never began: nothing more is read of it. */
void fetch_set_ended(Fetch *fetch);

/* Forgets what is in progress, and closes the source. The decoder keeps the rows and columns that were read. */
void fetch_stop(Fetch *fetch);

/* The same, and forgets what was read. After that the source is the pipe, closed. */
void fetch_reset(Fetch *fetch);

/* Reads the next event: PAGE_COLUMNS, PAGE_ROW, PAGE_END, PAGE_ERROR; on a channel PAGE_STATEMENT, too; -EAGAIN: nothing
 * yet; another error of the source's next(), or of the decoder. */
int fetch_next(Fetch *fetch);

/* True if the last END or ERROR is of the run, not of a statement that was compiled with it. */
bool fetch_is_of_run(const Fetch *fetch);

/* True if the run is known to have started. */
bool fetch_has_started(const Fetch *fetch);

/* Abandons the run: cancels it, unless its end has come, and drains or forgets it. PAGE_END or PAGE_ERROR: that was the
 * unread end; PAGE_MORE: the end was still to come; -EALREADY: it was read before. */
int fetch_abandon(Fetch *fetch);

/* Reads the rest of an abandoned run. 0: the source is free; -EAGAIN: not yet; other negative: it cannot be used again. */
int fetch_drain(Fetch *fetch);

/* Cancels the run at the service: by its number or, before that is known, by the call that asks for it. */
void fetch_cancel(Fetch *fetch);

/* Arranges that the program's loop wakes once, when `data` has news: fetch_pollfd() or none. 0, or the errno of epoll. */
int fetch_wait(Fetch *fetch, struct pollfd data);

/* The object to which the descriptor belongs: the fetch, or an object that other fetches share. */
const void *fetch_descriptor_owner(const Fetch *fetch);

/* The descriptor to wait for; fd -1 if only the bus can bring news. */
struct pollfd fetch_pollfd(const Fetch *fetch);

#endif
