/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A client's private socket (sqlipc-channel.h) that this worker serves: its state, and the bytes that arrive.
 * A request is in channel-request.h, a turn with requests one after the other and their answers in channel-turn.h.
 *
 *      IDLE --request, or room--> READY --turn: no more requests, answers are out--> IDLE --quiet for a while--> back to the
 *        |                        ^   |                                                        supervisor, with its state
 *        |                        |   +--the request under way waits---> WAITING  (its job is PARKED, RETRY or DRAINING)
 *        |    room, time, cancel--+   +--answers do not fit the socket-> DRAINING (no request is under way)
 *        |                            |       WAITING, DRAINING --drain_usec without room--> SLOW --> supervisor
 *        +----------------------------+--client left, closed its end or sent an invalid request; CHANNEL_CLOSE--> OVER
 *
 *      from \ to  IDLE  READY  WAITING  DRAINING  SLOW  OVER
 *      IDLE              x                             x
 *      READY       x            x        x             x
 *      WAITING           x                       x
 *      DRAINING          x                       x     x
 *      SLOW, OVER                                           the worker gives the channel up
 *
 * 1. Answers collect in one page, which is sent when it is full, when no request is left, or at the end of a turn.
 * 2. While a request is under way, the channel goes on reading the socket, so that it sees a CANCEL, up to
 *    CHANNEL_AHEAD_SIZE.
 * 3. A prepared query costs no allocation: job, page and buffers belong to the channel, and the compiled statement is
 *    kept by the engine.
 * 4. Requests that wait at the same time, on one channel or on several (channel-round.h), share a connection and a read
 *    transaction. It begins after they were sent, so each of them sees what was committed before. It ends before any of
 *    their answers is sent. A request that fails ends it, too, and one that lasts keeps it for itself. The requests after
 *    these share another one. The engine may check only every few milliseconds whether the file was replaced (EngineHint);
 *    until then queries continue on the old file.
 * 5. Between two requests, with all answers sent, the channel can move to another worker: served_channel_can_move().
 * 6. A channel with memory (channel-ring.h) is *awake* after a turn, or after a byte: its client writes requests without a
 *    system call, and the worker looks at the ring before it sleeps. Then it falls asleep: it sets the flag, and its client
 *    sends a byte. The byte only wakes; the ring tells which requests were sent before a read transaction begins.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_SERVED_CHANNEL_H
#define SQLIPC_DAEMON_WORKER_CORE_SERVED_CHANNEL_H

#include <stddef.h>

#include "daemon/worker/core/channel-input.h"
#include "daemon/worker/core/channel-state.h"
#include "daemon/worker/core/channel-statements.h"
#include "daemon/worker/core/guest-database.h"
#include "daemon/worker/core/job.h"
#include "daemon/worker/core/task.h"

#define CHANNEL_QUICK_USEC 250u /* a quick request, or a quick turn, took no longer */
#define CHANNEL_QUICK_SERVER_USEC 1000u /* the same with a server, which answers the requests of a round together */

typedef enum ChannelState {
        CHANNEL_IDLE,     /* there is nothing to do until its client sends more */
        CHANNEL_READY,    /* waits for a turn, or has it */
        CHANNEL_WAITING,  /* the request under way waits, for the reason that job.state has */
        CHANNEL_DRAINING, /* no request is under way, and answers wait for room in the socket */
        CHANNEL_SLOW,     /* the client does not read its answers: the supervisor must write them */
        CHANNEL_OVER,
        _CHANNEL_STATE_MAX,
} ChannelState;

/* Which requests the channel still takes. Only grows. */
typedef enum ChannelIntake {
        CHANNEL_OPEN,
        CHANNEL_ENDED,   /* end-of-file was read: no request comes after those that have arrived */
        CHANNEL_CLOSING, /* none: the channel is over when its answers are sent */
        CHANNEL_DROPPED, /* the supervisor wants the channel closed at once: unsent answers are not waited for */
} ChannelIntake;

typedef struct ChannelSet ChannelSet;
typedef struct ServedChannel ServedChannel;
struct ServedChannel {
        Task task;
        Job job;                  /* executes the request under way; OVER: none is */
        JobSpec spec;             /* what `job` executes */
        ChannelState state;
        ChannelIntake intake;

        ChannelSet *set;                  /* the one that it is in (channel-set.h), and its place there */
        ServedChannel *previous, *next;
        uint32_t watched;         /* events that epoll waits for (channel-set.c) */

        ChannelSetup setup;       /* without path and state */
        GuestDatabase *guest;     /* that it uses; NULL: the worker's own. Of the set */
        int fd;                   /* owned, non-blocking */
        ChannelSide side;         /* its memory, owned; without memory all bytes go through `fd` */
        size_t n_sent;            /* memory: bytes in the ring that had been sent before the turn began */
        bool awake;               /* memory: the worker looks at it, because its client does not send a byte; see 6 */
        ServedChannel *previous_awake, *next_awake;
        bool woken;               /* memory: the socket may have bytes */
        ChannelInput input;
        ChannelStatements statements;
        ChannelSettings settings; /* for the requests that come; not changed while one is under way */
        char *sql;                /* owned: a copy of the SQL of a QUERY, which has no NUL after it in the input */
        size_t sql_capacity;
        uint64_t batch;           /* number of the last request that had arrived before the turn's read transaction began */
        bool is_quick;            /* the request under way is like one that was quick */
        ChannelStatement *fetched; /* borrowed: the statement of the FETCH under way, or NULL */
        size_t quick_sql_size;    /* of the last QUERY, whose SQL `sql` still has; 0: it was not quick */

        ServedChannel *next_in_round; /* channel-round.h */
        bool lasts;               /* the last turn was long, so the next one is not in a round with others */
        bool next_was_sent;       /* the first bytes after request `batch` had arrived before the round began */

        /* Of the socket; they hold in any state: */
        bool readable;            /* it may have something to read */
        bool reported;            /* it has, because epoll reported it and nothing was read since then */
        bool half_closed;         /* the client has shut down its sending end, so an end-of-file will be read */
        bool client_left;         /* it is broken, or there is no memory to read from it */

        uint64_t drain_until_usec; /* DRAINING: when the channel becomes SLOW; 0: not set */
        uint64_t used_usec;       /* when the channel last had a turn; coarse clock */
        uint64_t progress_usec;   /* when the supervisor last heard of the channel; coarse clock */
        ChannelProgress progress; /* sums since then */
        bool running_said;        /* by the last report a request is under way */

        bool reads;               /* it only reads, so another worker than the one that writes should have it */
        unsigned n_reads;         /* requests since the last that wrote */
        uint64_t n_commits;       /* of the worker, then */
};

/* True if a channel may change from `from` to `to`, by the table above. */
bool served_channel_state_may_follow(ChannelState from, ChannelState to);

/* Changes the state, which the table must allow unless it is the same. */
ChannelState served_channel_set_state(ServedChannel *c, ChannelState state);

/* The channel takes only what `intake` allows from now on; does nothing if it takes less already. */
void served_channel_restrict(ServedChannel *c, ChannelIntake intake);

static inline ServedChannel *served_channel_of_task(const Task *t) {
        return (ServedChannel *) (void *) ((char *) t - offsetof(ServedChannel, task));
}

/* Makes a channel whose job has `owner`. It is READY. The caller sets task.type and the place in a set. On success takes
 * over the message and its descriptors. -ENOMEM; -EBADMSG: the state cannot be decoded, the socket is a blocking one, or the
 * memory is none. */
int served_channel_new(JobContext *context, const JobOwner *owner, ReceivedMessage *received, ServedChannel **ret);

/* Ends what is under way without telling the client. Returns NULL. */
ServedChannel *served_channel_free(ServedChannel *c);

/* Handles `events` of epoll. True: the channel must get a turn, unless it waits for one already. */
bool served_channel_on_events(ServedChannel *c, uint32_t events);

/* With memory: looks into the rings, and returns the same. */
bool served_channel_look(ServedChannel *c);

/* With memory: from now on the client sends a byte with a request, or when it makes room. The caller must look at the
 * channel once more. Without memory does nothing. */
void served_channel_fall_asleep(ServedChannel *c);

/* Reads once, at most as much as there is room for, also to see a CANCEL of the request under way. Can be called from inside
 * the channel's own step. False: nothing came. */
bool served_channel_read(ServedChannel *c);

/* A request has ended. Commits of other channels delay requests that only read. So a channel that has read often, while the
 * worker has committed often, is one that reads, until it writes. */
void served_channel_note_end(ServedChannel *c, bool wrote);

/* True if the channel reads, and the supervisor does not know that; or if it believes that, and the channel has written. */
static inline bool served_channel_belongs_elsewhere(const ServedChannel *c) {
        return c->reads != c->setup.reads;
}

/* True if a request is under way. */
static inline bool served_channel_is_busy(const ServedChannel *c) {
        return c->job.state != JOB_OVER;
}

/* True if no request is under way and all answers are sent. */
bool served_channel_is_answered(const ServedChannel *c);

/* True if another worker could continue with the channel once its answers are sent. */
bool served_channel_can_go_on(const ServedChannel *c);

/* True if all answers are sent, and another worker can continue with the channel. */
bool served_channel_can_move(const ServedChannel *c);

/* True if the channel has bytes to send for which the socket has no room. */
bool served_channel_waits_for_room(const ServedChannel *c);

/* True if a request waits, or the socket or the memory may have unread bytes or an end-of-file. */
bool served_channel_has_input(const ServedChannel *c);

/* When the worker must act on a quiet channel, by the coarse clock. Some seconds after its last turn it must go back to the
 * supervisor. If only a part of a request has arrived, or if a closing channel waits for its client to read the last answer,
 * it must be closed ParkTimeoutSec= after its last turn. UINT64_MAX: the channel is not quiet. */
uint64_t served_channel_quiet_until(const ServedChannel *c);

/* How long a quick request takes at most. */
static inline uint64_t served_channel_quick_usec(const ServedChannel *c) {
        return job_engine(&c->job)->state_is_remote ? CHANNEL_QUICK_SERVER_USEC : CHANNEL_QUICK_USEC;
}

#endif
