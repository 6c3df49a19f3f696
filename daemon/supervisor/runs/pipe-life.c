/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a pipe. Pure. */
#include <assert.h>

#include "daemon/supervisor/runs/pipe-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[PIPE_STATE_MAX] = {
        [PIPE_IN_USE] = 1u << PIPE_BROKEN | 1u << PIPE_RESTING,
        [PIPE_RESTING] = 1u << PIPE_WATCHED,
};

bool pipe_life_permits(PipeState from, PipeState to) {
        return transitions[from] & 1u << to;
}

void pipe_life_move(PipeState *state, PipeState to) {
        assert(pipe_life_permits(*state, to));
        *state = to;
}
