/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a load: its states, and the changes from one to another. Library. Pure.
 *
 *      BEGINNING --> OPEN --> ENDING --> OVER
 *          |          |  \       |         ^
 *          |          |   v      v         |
 *          |          |    BROKEN ---------+
 *          |          |                    |
 *          \----------+--------------------/
 *
 * These are all transitions; load_life_move() makes no others.
 *
 *      from       to         when
 *      BEGINNING  OPEN       Load was answered, and Wait was sent
 *      BEGINNING  OVER       Load failed, was interrupted, or the program or its connection closed the load
 *      OPEN       ENDING     the program has no more rows
 *      OPEN       BROKEN     the service closed the pipe, and has not said why yet
 *      OPEN       OVER       Wait was answered, with an error, or it was interrupted or closed
 *      ENDING     BROKEN     the service closed the pipe before END was in it
 *      ENDING     OVER       Wait was answered, or it was interrupted or closed
 *      BROKEN     OVER       Wait was answered, or it was interrupted or closed
 */
#ifndef SQLIPC_CLIENT_LIB_LOAD_LIFE_H
#define SQLIPC_CLIENT_LIB_LOAD_LIFE_H

#include <stdbool.h>

typedef enum LoadState {
        LOAD_BEGINNING,
        LOAD_OPEN,
        LOAD_ENDING,
        LOAD_BROKEN,
        LOAD_OVER,      /* the answer is kept */
        LOAD_STATE_MAX,
} LoadState;

/* True if the list above has the transition. */
bool load_life_permits(LoadState from, LoadState to);

/* Changes `*state`. The list above must have the transition. */
void load_life_move(LoadState *state, LoadState to);

#endif
