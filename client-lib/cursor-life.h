/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a cursor: its states, and the changes from one to another. Library. Pure.
 *
 *                       .------------------------.
 *                       v                        |
 *      DRAINING <--> WAITING <--> RUNNING --> ASKING
 *         |             |            |           |
 *         \-------------+------------+-----------+--> DONE
 *
 * These are all transitions; cursor_life_move() makes no others.
 *
 *      from      to        when
 *      WAITING   DRAINING  the pipe that is to carry the run still has bytes of an earlier one to come
 *      DRAINING  WAITING   more of them may have come
 *      DRAINING  DONE      cursor_end() was called
 *      WAITING   RUNNING   Fetch, Query or OpenRows was sent, over the bus or a channel
 *      WAITING   DONE      the request cannot be sent, or cursor_end() was called for another reason
 *      RUNNING   WAITING   the request was not served, and is to be sent again
 *      RUNNING   ASKING    the source ended without END or ERROR, or the service did before it answered
 *      RUNNING   DONE      END or ERROR was read, an error reply came, or cursor_end() was called for another reason
 *      ASKING    WAITING   the statement changes nothing, and runs again
 *      ASKING    DONE      the daemon answered or did not, or cursor_end() was called for another reason
 */
#ifndef SQLIPC_CLIENT_LIB_CURSOR_LIFE_H
#define SQLIPC_CLIENT_LIB_CURSOR_LIFE_H

#include <stdbool.h>

typedef enum CursorState {
        CURSOR_WAITING,  /* the statement is compiled, a transaction begins, or a channel opens */
        CURSOR_DRAINING, /* the statement's pipe is read up to the end of an earlier run, and is polled for that */
        CURSOR_RUNNING,  /* rows come, maybe before the reply */
        CURSOR_ASKING,   /* asks if the daemon instance lives, or if the statement may have changed anything */
        CURSOR_DONE,     /* the answer is kept */
        CURSOR_STATE_MAX,
} CursorState;

/* True if the list above has the transition. */
bool cursor_life_permits(CursorState from, CursorState to);

/* Changes `*state`. The list above must have the transition. */
void cursor_life_move(CursorState *state, CursorState to);

#endif
