/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a worker process: its states, the events between them, and the reasons for which it ends. Pure.
 *
 *      STARTING --> RUNNING --GIVE_WAY--> ASKED --EXIT--> ENDING --it ends--> CLOSED --it is reaped--> freed
 *                      ^-------STAY---------/                                   \--it does not die--> UNDEAD --> freed
 *      each of the first four --SIGKILL--> KILLED --> CLOSED
 *
 * These are all transitions; worker_life_move() makes no others. If the loop ends, a worker is freed in any state.
 *
 *      from      to        when
 *      STARTING  RUNNING   it took a job, or sent another valid message
 *      STARTING  ASKED     GIVE_WAY was sent
 *      STARTING  ENDING    EXIT was sent
 *      STARTING  KILLED    a deadline passed, or it sent an invalid message
 *      STARTING  CLOSED    it crashed
 *      RUNNING   ASKED     GIVE_WAY was sent: it has channels, and another group needs its place, its settings no longer
 *                          hold, or its priority cannot be raised
 *      RUNNING   ENDING    EXIT was sent: it was idle for WorkerIdleSec=, or is idle in a case of GIVE_WAY; or the service
 *                          stops
 *      RUNNING   KILLED    a deadline passed, or it sent an invalid message
 *      RUNNING   CLOSED    it crashed
 *      ASKED     RUNNING   it sent STAY, because a run on one of its channels lasts
 *      ASKED     ENDING    EXIT was sent: now it must end in any case
 *      ASKED     KILLED    it did not end in time, or it sent an invalid message
 *      ASKED     CLOSED    it ended
 *      ENDING    KILLED    it did not end in time, or it sent an invalid message
 *      ENDING    CLOSED    it ended
 *      KILLED    CLOSED    it is dead, or it waits in the kernel and its runs are given up
 *      CLOSED    UNDEAD    it is not dead after KILLED_USEC: it waits in the kernel, for a disk or a file server
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_LIFE_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_LIFE_H

#include <stdbool.h>

typedef enum WorkerState {
        WORKER_STARTING, /* no message came from it yet */
        WORKER_RUNNING,
        WORKER_ASKED,    /* it ends, unless a run on one of its channels lasts */
        WORKER_ENDING,   /* it ends */
        WORKER_KILLED,   /* it is dying; the messages that it sent before are still read */
        WORKER_CLOSED,   /* it has no socket, run or channel any more; it is dead or as good as dead, but not reaped */
        WORKER_UNDEAD,   /* as CLOSED, but it may take hours until it is dead */
        WORKER_STATE_MAX,
} WorkerState;

/* Do the settings that it was started with still hold? A worker whose settings do not hold goes through the same states as
 * any other. This only goes forward: from CURRENT to OUTDATED, and from there to RETIRED. */
typedef enum WorkerSettings {
        WORKER_CURRENT,
        WORKER_OUTDATED, /* a reload changed them: it ends once its runs are over */
        WORKER_RETIRED,  /* as OUTDATED, and it was told to take no more jobs */
        WORKER_SETTINGS_MAX,
} WorkerSettings;

/* Why worker_end() is called. */
typedef enum WorkerEndReason {
        WORKER_END_NONE,             /* it was not told to end */
        WORKER_END_IDLE,             /* WorkerIdleSec= has passed */
        WORKER_END_STOPPING,         /* the service stops */
        WORKER_END_PLACE,            /* another group needs its place */
        WORKER_END_OUTDATED,         /* a reload changed the settings that it was started with */
        WORKER_END_PRIORITY,         /* it has a low priority that cannot be raised again */
        WORKER_END_GOES_ON,          /* it was told to end, and did not */
        WORKER_END_SOCKET_FULL,      /* it does not read EXIT or GIVE_WAY */
        WORKER_END_DEAF,             /* it answers no PING */
        WORKER_END_KEEPS_JOB,        /* it does not obey the CANCEL of a job that it has not started */
        WORKER_END_KEEPS_RUN,        /* it does not obey the CANCEL of a run */
        WORKER_END_KEEPS_PIPE,       /* the same, of a run that only waits for its reader */
        WORKER_END_KEEPS_REQUEST,    /* the same, of a request on a channel */
        WORKER_END_KEEPS_CHANNEL,    /* it does not close a channel */
        WORKER_END_KEEPS_LEASE,      /* it does not return the lease (lease.h) */
        WORKER_END_INVALID_PAGE,     /* it broke the page format */
        WORKER_END_INVALID_MESSAGE,  /* it broke the protocol */
        WORKER_END_UNREADABLE,       /* its messages cannot be received */
        WORKER_END_MAX,
} WorkerEndReason;

/* How a worker ends for a reason. In this order: in the first three it ends by itself. */
typedef enum WorkerEndManner {
        WORKER_ENDS_BY_EXIT,         /* EXIT: runs that last are ended */
        WORKER_ENDS_BY_GIVE_WAY,     /* GIVE_WAY: it may send STAY */
        WORKER_ENDS_UNLESS_BUSY,     /* GIVE_WAY, and that only if it is known to have nothing to do */
        WORKER_ENDS_BY_KILL,         /* SIGKILL */
        WORKER_ENDS_UNREAD,          /* SIGKILL, and nothing more is read from it */
} WorkerEndManner;

bool worker_life_permits(WorkerState from, WorkerState to);
bool worker_life_permits_settings(WorkerSettings from, WorkerSettings to);

/* Changes `*state` to `to`, which must be permitted. */
void worker_life_move(WorkerState *state, WorkerState to);
void worker_life_move_settings(WorkerSettings *settings, WorkerSettings to);

WorkerEndManner worker_life_manner(WorkerEndReason reason);

/* True if a worker that ends for this reason was told to, not only killed: if it exits with status 0, it has written all
 * that it had to write. */
bool worker_life_is_told(WorkerEndReason reason);

/* Why the worker is killed, for the log; NULL: it is not killed for this reason. */
const char *worker_life_sentence(WorkerEndReason reason);

#endif
