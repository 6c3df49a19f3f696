/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a statement: its states, and the events between them. Pure.
 *
 *      PREPARING --> READY --> LOST
 *           \          \--> ENDING
 *            \--------------^
 *
 * These are all transitions; statement_life_move() makes no others. A statement is freed in any state: if it is finalized,
 * if its PREPARE fails, and if its client leaves the bus.
 *
 *      from       to      when
 *      PREPARING  READY   STARTED: its SQL is compiled
 *      PREPARING  ENDING  its database was unpublished
 *      READY      LOST    a worker was lost in a run of it, so its pipe may hold half a page
 *      READY      ENDING  its database was unpublished while it runs
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_STATEMENT_LIFE_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_STATEMENT_LIFE_H

#include <stdbool.h>

typedef enum StatementState {
        STATEMENT_PREPARING, /* not known to its client yet */
        STATEMENT_READY,
        STATEMENT_LOST,      /* it can only be finalized */
        STATEMENT_ENDING,    /* its client cannot use it any more; it is freed once its run is over */
        STATEMENT_STATE_MAX,
} StatementState;

bool statement_life_permits(StatementState from, StatementState to);

/* Changes `*state` to `to`, which must be permitted. */
void statement_life_move(StatementState *state, StatementState to);

#endif
