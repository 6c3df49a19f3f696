/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a load (load-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/load-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[LOAD_STATE_MAX] = {
        [LOAD_BEGINNING] = 1u << LOAD_OPEN | 1u << LOAD_OVER,
        [LOAD_OPEN] = 1u << LOAD_ENDING | 1u << LOAD_BROKEN | 1u << LOAD_OVER,
        [LOAD_ENDING] = 1u << LOAD_BROKEN | 1u << LOAD_OVER,
        [LOAD_BROKEN] = 1u << LOAD_OVER,
};

bool load_life_permits(LoadState from, LoadState to) {
        return transitions[from] & 1u << to;
}

void load_life_move(LoadState *state, LoadState to) {
        assert(load_life_permits(*state, to));
        *state = to;
}
