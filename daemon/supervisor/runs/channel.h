/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A private socket between a client and a worker, for many small queries (sqlipc-channel.h). Its states are in
 * channel-life.h. Supervisor.
 *
 * 1. The supervisor keeps a descriptor of the worker's end, so a channel outlives its worker. While the channel rests, no
 *    process reads it. The worker's state of it (its statements, the requests that it had read) is kept here and counts as
 *    held by the user.
 * 2. A worker that has the channel answers by itself. It reports its runs at most twice a second; otherwise the supervisor
 *    watches only for a hang-up.
 * 3. Closing a channel gives its worker a second, then the worker is killed. If another run or channel may hold the worker
 *    up, it is not killed: that other one has a deadline of its own, as the worker has (worker-channels.h). The client's end
 *    is shut down in any case.
 * 4. A channel whose rights or limits no longer hold is LEAVING: its worker begins nothing more, and closes it when the
 *    request under way is answered and read. The supervisor learns late that a run lasts, so only the worker can decide
 *    this.
 * 5. DRAINING: the client does not read the answers, so the worker gave them back (unread.h). The supervisor writes them,
 *    and reads nothing.
 * 6. If it has memory (shared-memory.h), a byte in the socket only wakes the other side. The supervisor takes the worker's
 *    part in that while the channel rests or drains.
 * 7. The requests of a channel are not Runs. A request that lasts is listed under the channel's number, and CANCEL uses that
 *    number for it.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_CHANNEL_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_CHANNEL_H

#include <systemd/sd-event.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/runs/channel-life.h"
#include "daemon/supervisor/runs/channel-run.h"
#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/workers/grace.h"

typedef struct Group Group;
typedef struct Worker Worker;

typedef struct Channel {
        Context *context;           /* not owned */
        User *user;                 /* reference */
        Session *session;           /* not owned; NULL: its client is gone */
        Database *database;         /* reference */
        Group *group;               /* reference */
        Worker *worker;             /* set while AT_WORKER, LEAVING or CLOSING; not owned */
        uint64_t number;
        ChannelState state;
        ChannelEndReason end;       /* LEAVING, CLOSING: why. DRAINING: why it ends once the answers are read, or NONE */
        int fd;                     /* our descriptor of the worker's end */
        CountsPlace counts;     /* of its client and the database */
        uint32_t page_size;
        struct SharedMemory *memory; /* through which bytes go; NULL: through the socket. Owned */
        GBytes *kept;               /* RESTING, WAITING: what its worker gave back; NULL: it has had no worker yet */
        struct Unread *unread;      /* DRAINING: answers that its client has not read; owned */
        bool waits_after;           /* DRAINING: a request waits. Not a state: only the next one depends on it */
        bool told;                  /* LEAVING, CLOSING: CHANNEL_CLOSE was sent. Not a state: a full socket only delays it */
        uint64_t close_ping, cancel_ping; /* once the worker has answered these PINGs it has read CHANNEL_CLOSE, CANCEL */
        uint64_t opened_usec, used_usec; /* when it was opened; when it last did something */
        uint64_t waits_usec;        /* since when a request waits for a worker that has time for it; 0: no request waits */
        uint64_t cancelled_usec;    /* 0: not cancelled */
        uint64_t answer_usec;       /* time for a run and for reading its answer, by the limits at the hand-over */
        uint64_t leaves_usec;       /* LEAVING: when it closes, even without an answer */
        uint64_t n_runs, n_rows, n_bytes; /* of all its requests so far */
        uint64_t client;            /* the number of the session's first channel, which names the client to workers */
        uint32_t n_statements;      /* that its worker keeps for it */
        bool released;              /* LEAVING, DRAINING, CLOSING: another one has replaced it, so it no longer counts. Not a
                                     * state: it can end for another reason after that */
        bool reads;                 /* its last worker said so; see placement.h */
        ChannelRun run;
        sd_event_source *io, *timer;
        bool spared;                /* see clock_timer_was_late(). Not a state: it is about the supervisor, which was late */
        Grace grace;                /* since the worker was last told to cancel or close */
        GList session_link, worker_link, group_link;
        GList cached_link;          /* its client allows that it is released: in the user's cached_channels; data NULL: not
                                     * in it */
} Channel;

/* Makes a channel that rests. `memory`: it gets memory, if there is some for it. `cached`: it may be released.
 * `*ret_client_fd` is the client's end, blocking; the caller owns it. LIMITS_EXCEEDED; -errno.
 *
 * If the user may have no more, this first releases the cached channel of the same user that was not used for the longest
 * time, and has no request. If its worker has to close it, it does not count until then (quota_may_release_channel()). For a
 * cached channel none is released that was used within the last second, because clients that take turns would open channels
 * all the time; they use the bus instead. Nor is, for any, such a channel that can write and has no memory: a request that
 * its client sends at that moment would be lost, and the client could not know whether it was carried out. */
int channel_new(Session *s, Database *d, uint32_t page_size, bool memory, bool cached, Channel **ret, int *ret_client_fd,
                Refusal *refusal);

/* Ends the channel; each reason has its manner (channel-life.h). May free it. */
void channel_end(Channel *c, ChannelEndReason reason);

/* Hands a WAITING or RESTING channel to the worker. Returns 0 if the worker has it now, or if it was closed because it
 * cannot be handed over; -EAGAIN if that worker does not read at the moment, or is dead. */
int channel_hand_over(Channel *c, Worker *w);

/* Cancels the run under way, with this error. A worker that does not react is killed a second later. */
void channel_cancel(Channel *c, ErrorNumber error, const char *sentence);

/* True if its run wants a CPU, as far as the supervisor knows. */
static inline bool channel_is_runnable(const Channel *c) {
        return c->run.state == CHANNEL_RUN_RUNNING;
}

/* True if its worker may begin or go on with a request of it. */
static inline bool channel_is_served(const Channel *c) {
        return c->state == CHANNEL_AT_WORKER || c->state == CHANNEL_LEAVING;
}

/* True if its socket or its memory holds bytes that have not been read. */
bool channel_has_unread(const Channel *c);

/* Closes the channel if no request came for StatementIdleSec=. */
void channel_check_idle(Channel *c);

/* ---- What its worker reports ---- */
void channel_on_progress(Channel *c, const ChannelProgress *progress);
void channel_on_rested(Channel *c, const ChannelEnd *end);
void channel_on_closed(Channel *c, const ChannelEnd *end);

/* ---- All channels ---- */

/* Databases were unpublished: closes the channels on them. If a client lost the right to write by that, its request under
 * way is cancelled, since it may still wait for its turn to write. */
void channels_on_reload(Context *context);
/* polkit's answers may have changed: closes the channels of users who were let in, or may write, by polkit alone. They must
 * ask again. A request under way on one that can write is cancelled, as by a reload. */
void channels_on_policy_changed(Context *context);
/* polkit lets this client write: closes the channels that it opened before, which cannot write. */
void channels_on_write_granted(Context *context, const char *client);

#endif
