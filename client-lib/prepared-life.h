/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a statement: its states, and the changes from one to another. Library. Pure.
 *
 *      LOST --> PREPARING --> READY --> LOST
 *      LOST --> READY
 *      any other state --> FAILED --> LOST
 *
 * These are all transitions; prepared_life_move() makes no others.
 *
 *      from       to         when
 *      PREPARING  READY      a reply or a STATEMENT frame described it
 *      PREPARING  FAILED     it cannot be compiled, was interrupted, or the connection is closed
 *      PREPARING  LOST       it is compiled over the bus instead
 *      READY      FAILED     a channel could not compile it again, or the connection is closed
 *      READY      LOST       worker, daemon, channel or bus were lost
 *      FAILED     LOST       it is executed again
 *      LOST       PREPARING  it is executed, and was not compiled before or needs a pipe
 *      LOST       READY      it is executed on a channel, or by OpenRows, which compile it together with the run
 *      LOST       FAILED     no transport can serve it, or the connection is closed
 */
#ifndef SQLIPC_CLIENT_LIB_PREPARED_LIFE_H
#define SQLIPC_CLIENT_LIB_PREPARED_LIFE_H

#include <stdbool.h>

typedef enum StatementState {
        STATEMENT_PREPARING, /* it is compiled, or waits for a channel */
        STATEMENT_READY,     /* compiled, or to be compiled together with its run */
        STATEMENT_FAILED,    /* `error` has the reason */
        STATEMENT_LOST,      /* to be compiled again */
        STATEMENT_STATE_MAX,
} StatementState;

/* True if the list above has the transition. */
bool prepared_life_permits(StatementState from, StatementState to);

/* Changes `*state`. The list above must have the transition. */
void prepared_life_move(StatementState *state, StatementState to);

#endif
