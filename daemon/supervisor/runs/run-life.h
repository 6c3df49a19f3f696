/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a run: its states, the events between them, and the reasons for which it ends. Pure.
 *
 *      NEW --> WAITING --> SENT --> TAKEN --> STARTED --> ENDED --> DRAINING --> OVER
 *                           |         ^          ^          ^
 *                           \-> MISSING          \-> PARKED-/
 *
 * These are all transitions; run_life_move() makes no others. A run is freed in any state: if it is cancelled in NEW or
 * WAITING, if its worker reports the end or is dead, and if nothing of it is left to be read.
 *
 *      from      to        when
 *      NEW       WAITING   it was submitted
 *      WAITING   SENT      the job socket has room, and the run need not wait for another one (group-jobs.c)
 *      WAITING   TAKEN     a worker is idle, or has the run's transaction, so the job went to its own socket
 *      SENT      WAITING   its job was taken back out of the socket, to be sent again
 *      SENT      TAKEN     TAKEN
 *      SENT      MISSING   the socket was emptied, and its job was not there: a worker is taking it, or took it and died
 *      MISSING   TAKEN     TAKEN
 *      MISSING   WAITING   its job was in the socket all the same: it could not be read before
 *      TAKEN     WAITING   its worker ended before it began the job
 *      TAKEN     STARTED   STARTED
 *      STARTED   PARKED    PARKED: its reader does not read
 *      STARTED   ENDED     ENDED
 *      STARTED   OVER      its worker is dead, and its RowReader or Wait learns that with the next call
 *      PARKED    STARTED   PARKED, with false: its reader has read
 *      PARKED    ENDED     ENDED
 *      PARKED    OVER      as from STARTED
 *      ENDED     DRAINING  DRAINED, with the last bytes
 *      ENDED     OVER      ENDED or DRAINED without such bytes, or its worker is dead, and its RowReader has not read to the
 *                          end; or it is a load, and Wait has not asked for its result
 *      DRAINING  OVER      the last bytes are written or dropped, and its RowReader has not read to the end
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_LIFE_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_LIFE_H

#include <stdbool.h>

/* In this order: until MISSING no worker is known to have it, from TAKEN to ENDED one has it. */
typedef enum RunState {
        RUN_NEW,      /* not submitted */
        RUN_WAITING,  /* in the group's queue */
        RUN_SENT,     /* in the job socket */
        RUN_MISSING,  /* as SENT, but the job is not in the socket any more */
        RUN_TAKEN,
        RUN_STARTED,
        RUN_PARKED,
        RUN_ENDED,    /* SQLite is reset, but the reader has not read everything; it keeps its worker for a moment only */
        RUN_DRAINING, /* the supervisor has the last bytes (run-drain.h) */
        RUN_OVER,     /* only its RowReader has not read to the end, or Wait has not asked for its result */
        RUN_STATE_MAX,
} RunState;

/* Why run_end() is called. */
typedef enum RunEndReason {
        RUN_END_CANCELLED,        /* its client cancels it, or a limit or deadline ends it */
        RUN_END_BY_ADMINISTRATOR, /* CancelRun: if it has ended already, its reader gets no more bytes */
        RUN_END_CLIENT_GONE,      /* its client has left the bus, or gives it up */
        RUN_END_FAILED,           /* it cannot be started */
        RUN_END_REVOKED,          /* its client lost the right to the database, or to write, before it did so */
        RUN_END_WORKER_LOST,      /* its worker is dead, or no worker will ever take it */
} RunEndReason;

bool run_life_permits(RunState from, RunState to);

/* Changes `*state` to `to`, which must be permitted. */
void run_life_move(RunState *state, RunState to);

#endif
