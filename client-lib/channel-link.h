/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The channel of a connection to one database (sqlipc-channel.h): a socket on which requests are answered in order. Library.
 *
 * There is one object for each database that the program has used; it lives as long as the connection, and also has the
 * settings of the connection for that database. transport.h decides which runs use it. Requests are written into `out` and
 * sent together before the next read or wait. Incoming bytes are read in large pieces into `in` (channel-read.h). Each frame
 * goes to the run that its number names: directly if that run is being read, else to the run's backlog. Frames of forgotten
 * runs are dropped.
 *
 * When the channel closes, every run that waits for an answer is marked as lost, and its cursor or statement asks again on
 * another way.
 */
#ifndef SQLIPC_CLIENT_LIB_CHANNEL_LINK_H
#define SQLIPC_CLIENT_LIB_CHANNEL_LINK_H

#include <poll.h>
#include <sys/queue.h>

#include "client-lib/buffer.h"
#include "client-lib/channel-link-life.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/source.h"
#include "dbus-interfaces/wire/channel-ring.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

/* Upper limit of one read(), and of one frame. A small result comes in one read; large results go through pipes. */
#define CHANNEL_READ_SIZE ((size_t) 64 * 1024)

/* How many bytes may wait for one reader while another is served. */
#define CHANNEL_UNREAD_SIZE_MAX ((size_t) 1024 * 1024)

/* The same if neither of the two may be sent again over the bus, because they may write. */
#define CHANNEL_UNREAD_MORE_SIZE_MAX ((size_t) 64 * 1024 * 1024)

/* If its channel closes without an answer, a request that needs a channel is repeated on another one, at most so often. */
#define CHANNEL_RETRIES_MAX 2u

/* How many channels a connection keeps open, if the service does not tell how many are left: fewer than the databases that a
 * user's workers can serve at once (WorkersMax=, 8 by default), so that a query over the bus gets a worker, too. If the
 * service tells, one worker serves channels to many databases: then the connection takes a third of those that are left, so
 * that other programs of the user get channels, too. Exceeded only while all of them have requests in progress. */
#define CHANNELS_KEPT_MIN 7u
#define CHANNELS_KEPT_MAX 256u

/* A source that waits for answers. The link puts bytes into the backlog when they come while another reader is read. */
typedef struct ChannelReader {
        Source source;
        Buffer backlog;
        bool lost;       /* the channel closed before the answers were complete */
        bool keeps_more; /* up to CHANNEL_UNREAD_MORE_SIZE_MAX in the backlog */
} ChannelReader;

/* A request whose answer is not complete. */
typedef struct Request {
        uint64_t number;
        RequestKind kind;
        ChannelReader *reader;   /* gets the answer, not owned; NULL: forgotten */
        bool cancelled;
        uint64_t end;            /* `n_written` after the request: the service has all of it once `n_sent` gets there */
        uint64_t deadline;       /* when the end of the answer must have come; UINT64_MAX: none */
} Request;

typedef struct ChannelLink {
        Member member;
        sqlipc_connection *connection;
        char *path;              /* database object */
        struct ChannelLink *next_in_table;
        ChannelLinkState state;
        ForeignKeys foreign_keys; /* set by PRAGMA foreign_keys; all later requests carry it, over the bus, too */

        /* OPENING, and the reason if it failed */
        Call *call;
        bool asks_cached;        /* with the option `cached`: the program did not ask for a channel, so it may be released */
        Error error;             /* result 0: no failure */

        /* OPEN */
        int fd;
        ChannelSide side;        /* its memory, owned; without memory all bytes go through `fd` */
        bool at_end;             /* memory: `fd` is at its end, but answers may be left */
        char *owner;             /* unique name of the daemon instance, NULL on a bus without names */
        uint64_t generation;     /* counts openings; a statement's number is valid in one of them only */
        uint32_t page_size;
        bool read_only;          /* no request on it can change the database */
        uint64_t n_written, n_sent; /* bytes that went into `out`, and out of it to the service */
        uint64_t last_number;
        ForeignKeys told;        /* the setting that the channel has */
        bool knows_zone;         /* the service knows TIME_ZONE */
        char told_zone[TIME_ZONE_SIZE_MAX + 1]; /* the zone that the channel has; no zone if it was not told any, even "":
                                                 * that also tells that this library keeps settings */
        bool knows_lock_wait;    /* the service knows LOCK_WAIT */
        uint64_t told_lock_wait_usec; /* that which the channel has */
        Buffer in, out;
        size_t frame_left;       /* bytes of the current frame that were not passed on yet */
        bool frame_ends;         /* the current frame is the last of its answer */
        Request *requests;       /* a ring, the oldest first */
        unsigned n_requests, first_request, requests_capacity;
        uint64_t moved_usec;     /* when bytes last came (0 if blocking), or the first request began to wait */
        uint64_t used_usec;      /* when the last request was written, or the channel opened */
        bool answered;           /* a request was answered */
        bool corked;             /* the program's loop was woken because `out` has bytes */
        bool woke_worker;        /* the worker slept when the last requests were sent */

        uint64_t not_before_usec, backoff_usec; /* when it may be opened again; the last pause. 0: after no failure */
        bool unsupported;        /* this service has no channels: do not ask again */

        /* how the channel is used: transport.c */
        uint32_t large_queries[8]; /* sums of queries that are known to give large results */
        unsigned next_large_query;
} ChannelLink;

/* The setting of the connection for the database object `path`. */
ForeignKeys channel_link_foreign_keys(sqlipc_connection *c, const char *path);

/* Gets the connection's channel for the database object `path`; NULL: no memory. */
ChannelLink *channel_link_get(sqlipc_connection *c, const char *path);

/* Asks for a socket if the channel is CLOSED. 0: it is OPENING or OPEN; negative: the request could not be sent. */
int channel_link_open(ChannelLink *ch);

/* The channel did not open, or closed before it answered: it is not opened again for a while. */
void channel_link_back_off(ChannelLink *ch);

/* True if another channel may be opened. If too many are open, closes the one that has been idle for the longest time,
 * provided that this is at least `idle_usec`. */
bool channel_link_make_room(sqlipc_connection *c, uint64_t idle_usec);

/* Closes the channel, and marks the runs that wait for an answer as lost. */
void channel_link_drop(ChannelLink *ch);

/* Begins a request with `size` bytes of payload, whose answer goes to `reader`. `reader` is NULL for CANCEL, FINALIZE,
 * FOREIGN_KEYS, TIME_ZONE and LOCK_WAIT, which have no answer, and whose `*number` is that of another request, the setting,
 * or 0; otherwise `*number` is set to a new number. Returns the room into which the caller must write the payload; NULL: no
 * memory. */
uint8_t *channel_link_request(ChannelLink *ch, ChannelReader *reader, RequestKind kind, size_t size, uint64_t *number);

/* Sends the written requests, without waiting. Drops a channel that turns out to be broken. */
void channel_link_flush(ChannelLink *ch);

/* The reader that gets the current answer; NULL: none. */
ChannelReader *channel_link_first_reader(const ChannelLink *ch);

/* True if a run waits for one of the answers that are still to come. */
bool channel_link_has_reader(const ChannelLink *ch);

/* The number of answers that `reader` waits for. */
unsigned channel_link_count(const ChannelLink *ch, const ChannelReader *reader);

/* The requests in progress, the oldest first: number `i`. */
static inline Request *channel_link_request_at(const ChannelLink *ch, unsigned i) {
        return &ch->requests[(ch->first_request + i) % ch->requests_capacity];
}

/* The answer to a cancelled request must end soon, once it is the current one. */
void channel_link_limit_cancel(ChannelLink *ch);

/* Cancels the requests of `reader` that are in progress. */
void channel_link_cancel(ChannelLink *ch, ChannelReader *reader);

/* Forgets `reader`: further frames for it are dropped. */
void channel_link_forget(ChannelLink *ch, ChannelReader *reader);

/* Frees a statement of this opening, which is not needed any more. */
void channel_link_finalize(ChannelLink *ch, uint64_t statement);

/* The descriptor and events to wait for; fd -1 if the channel is not open. */
struct pollfd channel_link_pollfd(const ChannelLink *ch);

#endif
