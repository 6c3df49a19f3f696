/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A client's private socket (sqlipc-channel.h): reads requests, runs them one after the other, answers.
 *
 *      IDLE --request--> READY --turn: no more requests, answers are out--> IDLE --quiet for a while--> back to the
 *        ^                 |                                                        supervisor, with its state
 *        |                 +--the same way as any job (job.h)----> PARKED, RETRY
 *        +--socket drains--+--answers do not fit the socket------> DRAINING --drain_usec later--> supervisor
 *                          +--client left, closed its end or sent an invalid request; CHANNEL_CLOSE--> OVER
 *
 * 1. Answers collect in one page, which is sent when it is full, when no request is left, or at the end of a turn.
 * 2. While a request is under way, the channel goes on reading the socket, so that it sees a CANCEL, up to
 *    CHANNEL_AHEAD_SIZE.
 * 3. A prepared query costs no allocation: job, page and buffers belong to the channel, and the compiled statement is in the
 *    pool.
 * 4. Requests that had arrived together share a connection and a read transaction. It begins after they have all arrived, so
 *    each of them sees what was committed before it was sent. A request that fails ends the transaction, and the requests
 *    after it share another one. The pool checks only every few milliseconds whether the file was replaced (pool.c); until
 *    then queries continue on the old file.
 * 5. Between two requests, with all answers sent, the channel can move to another worker: served_channel_can_move().
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_SERVED_CHANNEL_H
#define SQLIPC_DAEMON_WORKER_CORE_SERVED_CHANNEL_H

#include "daemon/worker/core/channel-input.h"
#include "daemon/worker/core/channel-statements.h"
#include "daemon/worker/core/job.h"

struct ServedChannel {
        Job job;                  /* runs the request under way; `job.state` is the channel's state */
        ServedChannel *previous, *next; /* in the list of all channels of the worker (job-queue.h) */
        bool queued;              /* the channel's job is in the worker's queue (job-queue.h) */
        uint32_t watched;         /* events that epoll waits for (channel-set.c) */

        ChannelSetup setup;       /* without the state */
        int fd;                   /* owned, non-blocking */
        ChannelInput input;
        ChannelStatements statements;
        JobSpec spec;             /* what `job` runs */
        char *sql;                /* owned: a copy of the SQL of a QUERY, which has no NUL after it in the input */
        size_t sql_capacity;
        uint64_t batch;           /* number of the last request that had arrived when the turn's read transaction began */
        bool busy;                /* a request is under way */
        bool has_timeout;         /* the client gave the request a time limit */
        bool readable;            /* the socket may have something to read */
        bool half_closed;         /* the client has shut down its sending end, so an end-of-file will be read */
        bool ended;               /* end-of-file was read: the channel is over when all earlier requests are answered */
        bool closing;             /* no more requests are taken: the channel is over when its answers are sent */
        bool dropped;             /* the supervisor wants the channel closed at once: unsent answers are not waited for */
        bool slow;                /* the client does not read its answers: the supervisor must write them */

        uint64_t used_usec;       /* when the channel last had a turn; coarse clock */
        uint64_t progress_usec;   /* when the supervisor last heard of the channel; coarse clock */
        ChannelProgress progress; /* sums since then */
        bool running_said;
};

/* Takes over the message and its descriptor. -ENOMEM; -EBADMSG: the state cannot be decoded, or the socket is a blocking
 * one. */
int served_channel_new(JobContext *context, ReceivedMessage *received, ServedChannel **ret);

/* Ends what is under way without telling the client. Returns NULL. */
ServedChannel *served_channel_free(ServedChannel *c);

/* Handles `events` of epoll. True: the channel must get a turn, unless it waits for one already. */
bool served_channel_on_events(ServedChannel *c, uint32_t events);

/* Reads more from the socket, to see a CANCEL of the request under way. Can be called from inside the channel's own step. */
void served_channel_look(ServedChannel *c);

/* A turn: continues the request under way, takes requests for about a millisecond, sends answers. */
JobState served_channel_turn(ServedChannel *c);

/* Ends the request under way, if there is one, with `error` and a sentence. Must not be called from inside the channel's
 * own step. */
void served_channel_cancel(ServedChannel *c, ErrorNumber error, const char *message);

/* Takes no more requests. The channel is over as soon as the answer to the request under way is sent, which may be at once.
 * Can also be called from inside the channel's own step. */
void served_channel_drain(ServedChannel *c);

/* The supervisor wants the channel closed: ends the request under way, and sends as much as the socket takes. From inside
 * the channel's own step it only sets a flag, with which the turn ends. */
void served_channel_drop(ServedChannel *c, bool in_step);

/* Sends the answers that are in the page. Returns JOB_DRAINING if some are left, JOB_OVER if the channel is over, or
 * JOB_READY or JOB_IDLE if all are sent. */
JobState served_channel_flush(ServedChannel *c);

/* Handles deadlines and retries of the request under way. Sets c->slow if the client is slow and the channel must leave
 * this worker. */
void served_channel_on_time(ServedChannel *c, uint64_t now_usec);

/* True if no request is under way and all answers are sent. */
bool served_channel_is_answered(const ServedChannel *c);

/* True if that holds, and another worker can continue with the channel. */
bool served_channel_can_move(const ServedChannel *c);

/* Takes the answers that the socket did not take; the caller frees them. `*ret_can_move`: another worker can continue with
 * the channel after them. -ENOMEM. */
int served_channel_take_unread(ServedChannel *c, uint8_t **ret, size_t *ret_size, bool *ret_can_move);

/* True if a request waits, or the socket may have unread bytes or an end-of-file. */
static inline bool served_channel_waits(const ServedChannel *c) {
        return c->readable || c->ended || channel_input_waits(&c->input);
}

/* When the worker must act on a quiet channel, by the coarse clock. Some seconds after its last turn it must go back to the
 * supervisor. If only a part of a request has arrived, or if a closing channel waits for its client to read the last answer,
 * it must be closed ParkTimeoutSec= after its last turn. UINT64_MAX: the channel is not quiet. */
uint64_t served_channel_quiet_until(const ServedChannel *c);

#endif
