/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a run. Pure. */
#include <assert.h>

#include "daemon/supervisor/runs/run-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[RUN_STATE_MAX] = {
        [RUN_NEW] = 1u << RUN_WAITING,
        [RUN_WAITING] = 1u << RUN_SENT | 1u << RUN_TAKEN,
        [RUN_SENT] = 1u << RUN_WAITING | 1u << RUN_TAKEN | 1u << RUN_MISSING,
        [RUN_MISSING] = 1u << RUN_TAKEN | 1u << RUN_WAITING,
        [RUN_TAKEN] = 1u << RUN_WAITING | 1u << RUN_STARTED,
        [RUN_STARTED] = 1u << RUN_PARKED | 1u << RUN_ENDED | 1u << RUN_OVER,
        [RUN_PARKED] = 1u << RUN_STARTED | 1u << RUN_ENDED | 1u << RUN_OVER,
        [RUN_ENDED] = 1u << RUN_DRAINING | 1u << RUN_OVER,
        [RUN_DRAINING] = 1u << RUN_OVER,
};

bool run_life_permits(RunState from, RunState to) {
        return transitions[from] & 1u << to;
}

void run_life_move(RunState *state, RunState to) {
        assert(run_life_permits(*state, to));
        *state = to;
}
