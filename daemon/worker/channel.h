/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A client's private socket (sqlipc-channel.h): reads requests, runs them one after the other, answers.
 *
 *      IDLE --request--> READY --turn: no more requests, answers are out--> IDLE --quiet for a while--> back to the
 *        ^                 |                                                        supervisor, with its state
 *        |                 +--as a run of its own does (run.h)--> PARKED, RETRY
 *        +--socket drains--+--answers do not fit the socket-----> DRAINING --drain_usec later--> supervisor
 *                          +--client left or sends no more, spoke nonsense, told to go--> OVER
 *
 * 1. Answers collect in one page, which goes out when it is full, when no request is left, or at the end of a turn.
 * 2. While a request is under way the socket is read on for CANCEL, as far as CHANNEL_AHEAD_SIZE.
 * 3. A query that was prepared costs no allocation: run, page and buffers are the channel's, its statement lies compiled in
 *    the pool.
 * 4. Requests that were there together share a connection and a read transaction: what was committed before one of them was
 *    sent, it sees. One that fails ends that transaction, and those behind it have another. Whether the file was replaced is
 *    looked at every few milliseconds (pool.c): for so long queries go on in the old one.
 * 5. Between two requests, with all answers out, it can go to another worker: channel_can_move().
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include "channel-input.h"
#include "channel-statements.h"
#include "run.h"

struct Channel {
        Run run;                  /* of the request under way; `run.state` is the channel's */
        Channel *previous, *next; /* all that the worker has (job.h) */
        bool queued;              /* its run is in the worker's queue (job.h) */
        uint32_t watched;         /* events that epoll waits for (job.c) */

        ChannelSetup setup;       /* without a state */
        int fd;                   /* owned, non-blocking */
        ChannelInput input;
        ChannelStatements statements;
        Job job;                  /* what `run` runs */
        char *sql;                /* owned: the SQL of a QUERY, which lies in the input without a NUL */
        size_t sql_capacity;
        uint64_t batch;           /* number of the last request that had come when the turn's read transaction began */
        bool busy;                /* a request is under way */
        bool has_timeout;         /* its client gave it a time limit of its own */
        bool readable;            /* the socket may hold something */
        bool half_closed;         /* the client sends no more: there is an end to be read */
        bool ended;               /* it was read: the channel is over when what came before is answered */
        bool closing;             /* nothing is read any more: it is over when its answers are out */
        bool dropped;             /* the supervisor wants it closed now: not even that is waited for */
        bool slow;                /* its client does not read its answers: the supervisor writes them */

        uint64_t used_usec;       /* when it last did something; coarse, as the next */
        uint64_t progress_usec;   /* when the supervisor last heard of it */
        ChannelProgress progress; /* its sums since then */
        bool running_said;
};

/* Takes over the message and its descriptor. -ENOMEM; -EBADMSG: its state is none, or the socket blocks. */
int channel_new(RunContext *context, ReceivedMessage *received, Channel **ret);

/* Ends what is under way without a word to the client. Returns NULL. */
Channel *channel_free(Channel *c);

/* epoll says `events`. True: it is to have a turn, if it has none yet. */
bool channel_on_events(Channel *c, uint32_t events);

/* From inside its own step: reads on, for a CANCEL of what is under way. */
void channel_look(Channel *c);

/* A turn: goes on with what is under way, takes requests for about a millisecond, sends answers. */
RunState channel_turn(Channel *c);

/* Ends the request under way, if there is one, with `error` and a sentence. Not from inside its own step. */
void channel_cancel(Channel *c, ErrorNumber error, const char *message);

/* It takes no more requests: it is over when the answer to what is under way is out, which it may be now. Also from inside
 * its own step. */
void channel_drain(Channel *c);

/* The supervisor wants it closed: ends what is under way, and sends what the socket takes. From inside its own step it is
 * only noted, and its turn ends so. */
void channel_drop(Channel *c, bool in_step);

/* Sends the answers that are in the page. RUN_DRAINING: not all; RUN_OVER; RUN_READY, RUN_IDLE: all. */
RunState channel_flush(Channel *c);

/* Deadlines and retries of what is under way; c->slow: it leaves this worker. */
void channel_on_time(Channel *c, uint64_t now_usec);

/* No request is under way, and all is sent. */
bool channel_is_answered(const Channel *c);

/* The same, and another worker can go on with it. */
bool channel_can_move(const Channel *c);

/* The answers that the socket did not take, which the caller frees. `*ret_can_move`: another worker can go on with the
 * channel after them. -ENOMEM. */
int channel_take_unread(Channel *c, uint8_t **ret, size_t *ret_size, bool *ret_can_move);

/* A request waits, or bytes that nobody has looked at, or their end. */
static inline bool channel_waits(const Channel *c) {
        return c->readable || c->ended || channel_input_waits(&c->input);
}

/* When, by the coarse clock, it was quiet for so long that no worker needs to have it; or, where a part of a request came,
 * that the rest is not waited for; or, where it takes no more, that nobody reads its last answer. UINT64_MAX: it is not
 * quiet. */
uint64_t channel_quiet_until(const Channel *c);

#endif
