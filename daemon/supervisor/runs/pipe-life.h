/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a pipe: its states, and the events between them. Pure.
 *
 *      IN_USE --> RESTING --> WATCHED --> freed
 *         \--> BROKEN --> freed
 *
 * These are all transitions; pipe_life_move() makes no others. A pipe is freed if it has no reader any more, or if it is
 * broken and unused; if the loop ends, in any state.
 *
 *      from     to       when
 *      IN_USE   BROKEN   a worker was lost, or the reader may get no more: the write end was closed
 *      IN_USE   RESTING  the last reference is gone: the pipe is retired
 *      RESTING  WATCHED  100 ms have passed, and its reader still has its end
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_PIPE_LIFE_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_PIPE_LIFE_H

#include <stdbool.h>

typedef enum PipeState {
        PIPE_IN_USE,  /* by a statement or a run */
        PIPE_BROKEN,  /* as IN_USE, but it has no write end: its reader sees end-of-file, and it counts no more */
        PIPE_RESTING, /* retired a moment ago */
        PIPE_WATCHED, /* retired: freed once its reader closes it; of a load: a while after its writer has closed it */
        PIPE_STATE_MAX,
} PipeState;

bool pipe_life_permits(PipeState from, PipeState to);

/* Changes `*state` to `to`, which must be permitted. */
void pipe_life_move(PipeState *state, PipeState to);

#endif
