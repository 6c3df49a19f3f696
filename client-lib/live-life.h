/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a live query: its states, and the changes from one to another. Library. Pure.
 *
 *      WAITING <--> RUNNING --> TELLING
 *         |  ^         |         |   |
 *         |  \---------+---------/   |
 *         \------------+-------------+--> OVER
 *
 * These are all transitions; live_life_move() makes no others.
 *
 *      from     to       when
 *      WAITING  RUNNING  the statement is due: at first, after a change, or after a pause
 *      WAITING  OVER     the watch is over, or the connection was closed
 *      RUNNING  WAITING  the run failed, or its result is the same as before
 *      RUNNING  TELLING  the result differs
 *      RUNNING  OVER     the connection was closed
 *      TELLING  WAITING  the program has taken all differences
 *      TELLING  OVER     the connection was closed
 */
#ifndef SQLIPC_CLIENT_LIB_LIVE_LIFE_H
#define SQLIPC_CLIENT_LIB_LIVE_LIFE_H

#include <stdbool.h>

typedef enum LiveState {
        LIVE_WAITING,
        LIVE_RUNNING,
        LIVE_TELLING,
        LIVE_OVER,      /* the error is kept */
        LIVE_STATE_MAX,
} LiveState;

/* True if the list above has the transition. */
bool live_life_permits(LiveState from, LiveState to);

/* Changes `*state`. The list above must have the transition. */
void live_life_move(LiveState *state, LiveState to);

#endif
