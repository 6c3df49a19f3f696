/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a watch: its states, and the changes from one to another. Library. Pure.
 *
 *      OPENING --> OPEN <--> LOST
 *         |         |          |
 *         \---------+----------+--> OVER
 *
 * These are all transitions; watch_life_move() makes no others.
 *
 *      from     to     when
 *      OPENING  OPEN   Watch or WaitChange was answered
 *      OPENING  OVER   it failed, was interrupted, or the program or its connection closed the watch
 *      OPEN     LOST   the service ended the watch, or the service or the bus was lost
 *      OPEN     OVER   the service sent something that the interface does not allow, or the watch was closed
 *      LOST     OPEN   Watch or WaitChange was answered again, which counts as a change
 *      LOST     OVER   it failed for a reason that will not pass by itself, or the watch was closed
 */
#ifndef SQLIPC_CLIENT_LIB_WATCH_LIFE_H
#define SQLIPC_CLIENT_LIB_WATCH_LIFE_H

#include <stdbool.h>

typedef enum WatchState {
        WATCH_OPENING,
        WATCH_OPEN,
        WATCH_LOST,
        WATCH_OVER,      /* the error is kept */
        WATCH_STATE_MAX,
} WatchState;

/* True if the list above has the transition. */
bool watch_life_permits(WatchState from, WatchState to);

/* Changes `*state`. The list above must have the transition. */
void watch_life_move(WatchState *state, WatchState to);

#endif
