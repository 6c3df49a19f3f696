/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a watch (watch-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/watch-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[WATCH_STATE_MAX] = {
        [WATCH_OPENING] = 1u << WATCH_OPEN | 1u << WATCH_OVER,
        [WATCH_OPEN] = 1u << WATCH_LOST | 1u << WATCH_OVER,
        [WATCH_LOST] = 1u << WATCH_OPEN | 1u << WATCH_OVER,
};

bool watch_life_permits(WatchState from, WatchState to) {
        return transitions[from] & 1u << to;
}

void watch_life_move(WatchState *state, WatchState to) {
        assert(watch_life_permits(*state, to));
        *state = to;
}
