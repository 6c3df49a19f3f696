/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a fetch: its states, and the changes from one to another. Library. Pure.
 *
 *      IDLE <--> RUNNING --> CANCELLING --> CANCELLED
 *        ^          |            |           ^  |
 *        |          \------------|-----------/  |
 *        \-----------------------+--------------/
 *
 * These are all transitions; fetch_life_move() makes no others.
 *
 *      from        to          when
 *      IDLE        RUNNING     a run was requested
 *      RUNNING     IDLE        END or ERROR was read, an error reply came, the source ended, or the run was forgotten
 *      RUNNING     CANCELLING  it is cancelled or abandoned before its number is known
 *      RUNNING     CANCELLED   it is cancelled or abandoned
 *      CANCELLING  IDLE        as from RUNNING
 *      CANCELLING  CANCELLED   a reply or COLUMNS had the number, and Cancel for the call was answered; if the service could
 *                              not cancel the call, Cancel is sent for the number
 *      CANCELLED   IDLE        as from RUNNING
 */
#ifndef SQLIPC_CLIENT_LIB_FETCH_LIFE_H
#define SQLIPC_CLIENT_LIB_FETCH_LIFE_H

#include <stdbool.h>

typedef enum FetchState {
        FETCH_IDLE,       /* no run is in progress */
        FETCH_RUNNING,    /* a run was requested; neither END nor ERROR was read */
        FETCH_CANCELLING, /* the same; Cancel was sent for the call, and may have to be sent for the number */
        FETCH_CANCELLED,  /* the same; the service was told */
        FETCH_STATE_MAX,
} FetchState;

/* True if the list above has the transition. */
bool fetch_life_permits(FetchState from, FetchState to);

/* Changes `*state`. The list above must have the transition. */
void fetch_life_move(FetchState *state, FetchState to);

#endif
