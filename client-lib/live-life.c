/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a live query (live-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/live-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[LIVE_STATE_MAX] = {
        [LIVE_WAITING] = 1u << LIVE_RUNNING | 1u << LIVE_OVER,
        [LIVE_RUNNING] = 1u << LIVE_WAITING | 1u << LIVE_TELLING | 1u << LIVE_OVER,
        [LIVE_TELLING] = 1u << LIVE_WAITING | 1u << LIVE_OVER,
};

bool live_life_permits(LiveState from, LiveState to) {
        return transitions[from] & 1u << to;
}

void live_life_move(LiveState *state, LiveState to) {
        assert(live_life_permits(*state, to));
        *state = to;
}
