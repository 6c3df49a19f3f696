/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The channel of a connection to one database (sqlipc-channel.h): a socket on which requests are answered in their order.
 * Library.
 *
 *      CLOSED --channel_open()--> OPENING --reply--> OPEN --end-of-file, nonsense, a cancel that is not obeyed--> CLOSED
 *
 * There is one object for each database that was asked, as long as the connection; transport.h decides what goes over it.
 * Requests are written into `out`, and leave together before the next read or wait. What comes is read in large pieces into
 * `in`, and each frame goes to the run that its number names: to the reader who asks, if it is his, else to the other run's
 * backlog; frames that nobody wants any more are passed over.
 *
 * When it closes, every run that waits for an answer is marked as lost, and its cursor or statement asks again elsewhere.
 */
#ifndef SQLIPC_CHANNEL_OBJECT_H
#define SQLIPC_CHANNEL_OBJECT_H

#include <poll.h>
#include <sys/queue.h>

#include "buffer.h"
#include "call.h"
#include "error.h"
#include "sqlipc-channel.h"

/* What one read() brings at most, and the largest frame: small results come in one, and large ones go down pipes. */
#define CHANNEL_READ_SIZE ((size_t) 64 * 1024)

/* Bytes that may wait for one reader while another is served. */
#define CHANNEL_UNREAD_SIZE_MAX ((size_t) 1024 * 1024)

/* Where only a channel will do: how often another one is opened for a request whose channel closed before an answer came. */
#define CHANNEL_RETRIES_MAX 2u

/* Channels that a connection keeps open: fewer than the databases that a user's workers can serve at once (WorkersMax=, 8 by
 * default), so that a query over the bus finds a place, too. Exceeded only while all of them have requests under way. */
#define CHANNELS_OPEN_MAX 7u

typedef struct Run Run;

typedef enum ChannelState {
        CHANNEL_CLOSED,
        CHANNEL_OPENING,
        CHANNEL_OPEN,
} ChannelState;

/* What was asked for and not answered whole. */
typedef struct Request {
        uint64_t number;
        RequestKind kind;
        Run *run;                /* whose answer it is, not owned; NULL: nobody's any more */
        bool cancelled;
        uint64_t end;            /* `n_written` behind it: the service has it whole once so much was sent */
        uint64_t deadline;       /* the end of the answer must come by then; UINT64_MAX: none */
} Request;

typedef struct Channel {
        sqlipc_connection *connection;
        LIST_ENTRY(Channel) link;
        char *path;              /* database object */
        ChannelState state;

        /* OPENING, and why it did not open */
        Call *call;
        Error error;             /* result 0: nothing was wrong */

        /* OPEN */
        int fd;
        char *owner;             /* unique name of the daemon instance, NULL on a bus without names */
        uint64_t generation;     /* counts openings: a statement's number is of one of them */
        uint32_t page_size;
        bool read_only;          /* no request on it changes the database */
        uint64_t n_written, n_sent; /* bytes that went into `out`, and out of it */
        uint64_t last_number;
        Buffer in, out;
        size_t frame_left;       /* bytes of the frame under way that were not passed on */
        bool frame_ends;         /* it is the last of its answer */
        Request *requests;       /* a ring, the oldest first */
        unsigned n_requests, first_request, requests_capacity;
        uint64_t moved_usec;     /* when an answer was last whole, or the first request began to wait */
        uint64_t used_usec;      /* when it was last asked, or opened */
        bool answered;           /* one was */
        bool corked;             /* the program's loop was told that something waits in `out` */
        unsigned n_vain_looks, n_looks_to_skip; /* receive_soon() */

        /* how it is used: transport.c */
        unsigned n_small;        /* small results in quick succession */
        uint64_t small_usec;     /* when the last of them ended */
        uint64_t not_before_usec, backoff_usec;
        bool unsupported;        /* by this service: not asked for again */
        uint32_t large_queries[8]; /* what is known to give a large result, by its sum */
        unsigned next_large_query;
} Channel;

/* The channel of the database object `path`, the connection's; NULL: no memory. */
Channel *channel_get(sqlipc_connection *c, const char *path);

/* Drops all channels of a connection that is being closed; and frees them, once no run refers to one. */
void channels_close(sqlipc_connection *c);
void channels_free(sqlipc_connection *c);

/* Asks for a socket, if it is CLOSED. 0: it is OPENING or OPEN; negative: it could not be asked. */
int channel_open(Channel *ch);

/* Whether another channel may be opened: closes the one that has been idle for the longest time, if need be and if that is
 * at least `idle_usec`. */
bool channels_make_room(sqlipc_connection *c, uint64_t idle_usec);

/* Closes it; whoever waits for an answer is marked as lost. */
void channel_drop(Channel *ch);

/* A request of `size` bytes of payload, whose answer goes to `run` (NULL for CANCEL and FINALIZE, which have none and whose
 * number is `*number`; else `*number` is made here). Returns where the payload is to be written; NULL: no memory. */
uint8_t *channel_request(Channel *ch, Run *run, RequestKind kind, size_t size, uint64_t *number);

/* Sends what was written, without waiting. A channel that turns out to be broken is dropped. */
void channel_flush(Channel *ch);

/* Reads bytes for `run`, which has a request under way, as read() does. More than 0; -EAGAIN; -ECONNRESET: the channel is
 * lost; -EBADMSG: it spoke nonsense, and is lost; -ENOBUFS: an unread answer before this one is too large to be kept,
 * channel_first_run() names it; -ENOMEM. */
ssize_t channel_read(Channel *ch, Run *run, uint8_t *room, size_t size);

/* Whose answer is under way; NULL: nobody's. */
Run *channel_first_run(const Channel *ch);

/* Somebody waits for one of the answers that are still to come. */
bool channel_has_reader(const Channel *ch);

/* How many answers `run` waits for. */
unsigned channel_count(const Channel *ch, const Run *run);

/* Cancels what is under way for `run`. */
void channel_cancel(Channel *ch, Run *run);

/* Nobody is `run` any more: what comes for it is passed over. */
void channel_forget(Channel *ch, Run *run);

/* A statement of this opening is not needed any more. */
void channel_finalize(Channel *ch, uint64_t statement);

/* What to wait for; fd -1 where it is not open. */
struct pollfd channel_pollfd(const Channel *ch);

/* When to look again at the latest, UINT64_MAX: no need to; and to do so: a service that does not obey a cancel is left. */
uint64_t channels_deadline(sqlipc_connection *c);
void channels_process(sqlipc_connection *c);

#endif
