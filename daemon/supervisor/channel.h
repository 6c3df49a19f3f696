/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A private socket between a client and a worker, for many small queries (sqlipc-channel.h). Supervisor.
 *
 *      RESTING --it is readable--> WAITING --placement.h--> AT_WORKER --CHANNEL_CLOSE--> CLOSING --> gone: CHANNEL_CLOSED,
 *        |  ^                         |                      |  |                                    its worker is dead
 *        |  \------CHANNEL_RESTED-----/<---------------------/  \--CHANNEL_CLOSED, its worker is dead--> gone
 *        |                            |                      \--CHANNEL_RESTED or CLOSED with unread answers--> DRAINING
 *        |<--the client has read them----------------------------------------------------------------------------/
 *        \--hang-up, told to close, StatementIdleSec=--> gone <--the same, QueueTimeoutSec=-- WAITING
 *
 * 1. We keep a descriptor of the worker's end, so a channel outlives its worker's idleness: while it rests nobody reads it,
 *    and what the worker knew of it (its statements, what it had read) lies here and counts as held by the user.
 * 2. A worker that has it answers by itself. We hear of its runs twice a second at most, and look at nothing but hang-ups.
 * 3. Who closes waits a second for the worker, then kills it: unless something else may hold the worker up, which has a
 *    deadline of its own, as the worker has (worker-channels.h); the client's end is shut down then.
 * 4. Where its rights or limits are past it is doomed: its worker begins nothing more, and closes it when what is under way
 *    is answered and read. That a run lasts is known late, so only the worker can tell.
 * 5. DRAINING: its client does not read the answers, so its worker gave them back (unread.h). We write them, and read
 *    nothing.
 * 6. Its requests are no Runs of ours. One that lasts is listed under the channel's number, and CANCEL names it by that.
 */
#ifndef SQLIPC_CHANNEL_H_SUPERVISOR
#define SQLIPC_CHANNEL_H_SUPERVISOR

#include <systemd/sd-event.h>

#include "database.h"
#include "grace.h"
#include "protocol.h"
#include "session.h"

typedef struct Group Group;
typedef struct Worker Worker;

typedef enum ChannelState {
        CHANNEL_RESTING,
        CHANNEL_WAITING,
        CHANNEL_DRAINING,
        CHANNEL_AT_WORKER,
        CHANNEL_CLOSING,
} ChannelState;

/* The run under way on it, as its worker said last. */
typedef struct ChannelRun {
        bool running, parked, draining;
        uint64_t usec;              /* since when, as of `noted_usec` */
        uint64_t noted_usec;
        uint64_t parked_usec;       /* of it: how long its reader did not read */
        uint64_t n_rows, n_bytes;   /* delivered, as far as they can be told from those of the run before */
        char *excerpt;              /* of its SQL, owned */
} ChannelRun;

typedef struct Channel {
        Manager *manager;           /* not owned */
        User *user;                 /* reference */
        Session *session;           /* not owned; NULL: its client is gone */
        Database *database;         /* reference */
        Group *group;               /* reference */
        Worker *worker;             /* AT_WORKER, CLOSING; not owned */
        uint64_t number;
        ChannelState state;
        int fd;                     /* of the worker's end */
        uint32_t page_size;
        GBytes *kept;               /* RESTING, WAITING: what its worker gave back; NULL: it was at none yet */
        struct Unread *unread;      /* DRAINING: answers that its client has not read; owned */
        bool waits_after;           /* DRAINING: a request of it waits for them */
        bool ends_after;            /* DRAINING: it closes after them */
        bool doomed;                /* AT_WORKER: it takes no more requests, and closes once it has answered */
        bool patient;               /* CLOSING for the client's sake: not a reason to kill anything */
        bool told;                  /* doomed, CLOSING: the worker's socket took that */
        uint64_t close_ping, cancel_ping; /* once the worker has answered these it has read CHANNEL_CLOSE, CANCEL */
        uint64_t opened_usec, used_usec;
        uint64_t waits_usec;        /* since when a request waits for a worker that has time for it; 0: none does */
        uint64_t cancelled_usec;    /* 0: not cancelled */
        uint64_t answer_usec;       /* how long a run may take as it was handed over, with the reading of its answer */
        uint64_t leaves_usec;       /* doomed: when it closes, answered or not */
        uint64_t n_runs, n_rows, n_bytes;
        uint32_t n_statements;
        ChannelRun run;
        sd_event_source *io, *timer;
        bool spared;                /* clock_timer_was_late() */
        Grace grace;                /* since it was last told to cancel or close */
        GList session_link, worker_link, group_link;
} Channel;

/* Makes one that rests. `*ret_client_fd`: the client's end, blocking, the caller's. LIMITS_EXCEEDED. */
int channel_new(Session *s, Database *d, uint32_t page_size, int *ret_client_fd, Refusal *refusal);

/* Ends it: what runs on it is cancelled. May free it. */
void channel_close(Channel *c);

/* The same where a worker cannot serve it and the client does better with another channel: that nothing is killed for. */
void channel_give_up(Channel *c);

/* Ends it when what runs on it is over, and its answer read; nothing else is begun. May free it. */
void channel_doom(Channel *c);

/* The loop ends, or its worker is dead. */
void channel_free(Channel *c);

/* Gives it, WAITING, to the worker. 0: it is there, or was closed because it cannot be handed over; -EAGAIN: that worker
 * reads nothing now, or is dead. */
int channel_hand_over(Channel *c, Worker *w);

/* Cancels the run under way. A worker that hears nothing is killed a second later. */
void channel_cancel(Channel *c, const char *sentence);

/* It wants a CPU, as far as we know. */
static inline bool channel_is_runnable(const Channel *c) {
        return c->run.running && !c->run.parked && !c->run.draining;
}

/* Its session is no more. */
void channel_abandon(Channel *c);

/* There is something on its socket that nobody has read. */
bool channel_has_unread(const Channel *c);

/* Nothing came for StatementIdleSec=: closes it. */
void channel_check_idle(Channel *c);

/* ---- What a worker says of one that it has ---- */
void channel_on_progress(Channel *c, const ChannelProgress *progress);
void channel_on_rested(Channel *c, const ChannelEnd *end);
void channel_on_closed(Channel *c, const ChannelEnd *end);

/* ---- All of them ---- */

/* Databases were unpublished: what is on them ends. */
void channels_on_reload(Manager *m);
/* Those whom polkit alone let in may be let in no more: they ask anew. */
void channels_on_policy_changed(Manager *m);

#endif
