/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One worker process: starting it, messages to and from it, its end. Its states are in worker-life.h. Supervisor.
 *
 * A killed worker that waits in the kernel (for a disk, a file server) dies late. After two seconds its runs are lost, and
 * it counts only among the workers of its own uid: other uids must not wait for its place. There are at most half as many
 * such workers as WorkersTotalMax= allows.
 *
 * Messages from a worker are decoded as hostile: a message that protocol.h does not define, or about a job that the worker
 * does not have, ends the worker. Only runs of its own user end with it.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_H

#include <systemd/sd-event.h>

#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/workers/grace.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker-life.h"
#include "daemon/supervisor/workers/worker-priority.h"
#include "daemon/supervisor/workers/worker-process.h"

/* A PING and its answer, PONG (worker-channels.h). */
typedef enum WorkerPing {
        PING_NONE,
        PING_UNSENT, /* it is due, but its socket was full */
        PING_SENT,
        PING_REPEAT, /* sent, and another one follows its answer */
} WorkerPing;

struct Worker {
        Context *context;         /* not owned */
        Group *group;             /* reference */
        Limits limits;            /* that it was started with */
        WorkerProcess process;
        /* connections.h */
        uint64_t n_connections;   /* to the server, that it may have; 0: the database is a file */
        bool connection_wanted, connection_asked; /* it wants one more; it was asked for one */
        WorkerState state;
        WorkerEndReason end;      /* the reason for which it was last told to end, or killed */
        WorkerSettings settings;
        int control_fd;           /* -1: CLOSED */
        GQueue runs;              /* of Run, by worker_link: taken, and not DRAINING */
        GQueue channels;          /* of Channel, by worker_link */
        bool holds_no_place;      /* not a state: of the UNDEAD ones, only so many give their place back */
        bool ended_well;          /* it ended by itself, after it had told everything. Not a state: of reaped ones */
        bool distrusted;          /* nothing more is read from it. Not a state: it must be known until it is reaped */
        uint64_t n_said;          /* number of messages from it */
        uint64_t started_usec;
        uint64_t idle_usec;       /* since when it has had no run and no channel */
        uint64_t turn_usec;       /* when its turn began (group.h), whether or not that is over */
        uint64_t busy_usec;       /* when it began to compute, after it had computed nothing, whether or not that is over */
        /* worker-channels.h */
        WorkerPing ping;
        uint64_t ping_number;     /* number of the PING under way, or of the next one */
        uint64_t ping_usec;       /* since when that PING is due */
        Grace grace;              /* for the answer to PING */
        uint64_t stuck_until_usec;
        bool spared, end_spared;  /* see clock_timer_was_late(): for `watch`; for `idle_timer`, which may fire in the same
                                   * turn. Not states: they are about the supervisor, which was late */
        WorkerPriority priority;
        struct Lease *lease;      /* that it has or waits for (lease.h); not owned; NULL: neither */
        GList lease_link;
        bool lease_is_taken;      /* not a state: while it waits for the lease, it was told that the holder keeps it */
        uint64_t wrote_usec;      /* when it last began to commit */
        sd_event_source *io, *idle_timer, *watch;
        GList group_link, context_link;
};

/* Starts to watch the priorities of workers (worker-priority.h). -errno. */
int worker_start_priorities(Context *context);

/* Starts a worker for the group. It is freed once its process has been reaped. -errno. */
int worker_new(Group *g);

/* Reads the messages that it has sent until now, at most as many as a turn of the loop may read, and none after it is idle.
 * Runs and channels may be freed inside. */
void worker_process(Worker *w);

/* A run or channel left the worker: its idle time may begin. */
void worker_on_work_over(Worker *w);

/* True if the worker is up and idle, so that a job can be sent to it directly instead of into the job socket. */
bool worker_takes_job(const Worker *w);

/* Tells the worker to end a run, or the run of a channel. If it does not react, the timer of this run or channel kills it.
 * -errno: the message could not be sent. */
int worker_cancel(Worker *w, uint64_t number, ErrorNumber error, const char *sentence);

/* Ends the worker; each reason has its manner (worker-life.h). Returns false if nothing was done because the worker is busy.
 *
 * EXIT: it gives its channels back first; those with a request under way after that is answered. A run that lasts is ended.
 * GIVE_WAY: it does the same, but if a channel has begun a run that the supervisor has not heard of yet, and that run lasts,
 * the worker stays after some seconds and goes on as before.
 *
 * A worker is busy if a job may be on its way to it, or if a run is known to be under way. If it is outdated it ends after
 * its runs. */
bool worker_end(Worker *w, WorkerEndReason reason);

/* True if runs on the database of `g`, which is of the same user, have the limits of this worker. */
bool worker_has_limits_of(const Worker *w, const Group *g);

/* For a worker that is outdated and busy: its outdated channels are closed after their runs, so that no run begins on them
 * under the old settings. It takes no new job either, if there can be another worker for it. */
void worker_retire(Worker *w);

/* The number of the run or channel that the message is about; 0: none. */
uint64_t worker_message_number(const Message *m);

/* The worker took a job, or sent another valid message. */
void worker_on_sign_of_life(Worker *w);

/* Ends the worker that has been idle for longest: of `u`, or (NULL) of the uid with the most workers that has an idle one;
 * on `d`, or (NULL) anywhere. If none is idle, picks a worker that has only channels, none of them with a known run: it
 * gives them back and ends as soon as no request is under way. False: there is no such worker. */
bool worker_end_idle(Context *context, const User *u, const Database *d);

/* Frees a worker that has no run and no channel. Kills and reaps its process, if there still is one; an undead one is not
 * waited for. */
void worker_free(Worker *w);

static inline bool worker_stays(const Worker *w) {
        return w->state <= WORKER_RUNNING;
}

/* True if it has no socket any more. */
static inline bool worker_is_closed(const Worker *w) {
        return w->state >= WORKER_CLOSED;
}

/* True if it has no run and no channel. */
bool worker_is_idle(const Worker *w);

/* The number of runs that want a CPU, including known runs on channels. */
unsigned worker_n_runnable(const Worker *w);

/* The number of workers with such a run, of all users. Workers for servers count only for groups of servers: they wait for
 * the network, and so keep no CPU from a worker for a file. */
unsigned worker_n_busy(const Group *g);

/* True if it is a worker for a file, and in its turn (group.h). */
bool worker_is_in_turn(const Worker *w);

/* The number of workers for files that are in their turn, of the user or (NULL) of all. */
unsigned worker_n_in_turn(const Context *context, const User *u);

#endif
