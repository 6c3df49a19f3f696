/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a fetch (fetch-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/fetch-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[FETCH_STATE_MAX] = {
        [FETCH_IDLE] = 1u << FETCH_RUNNING,
        [FETCH_RUNNING] = 1u << FETCH_IDLE | 1u << FETCH_CANCELLING | 1u << FETCH_CANCELLED,
        [FETCH_CANCELLING] = 1u << FETCH_IDLE | 1u << FETCH_CANCELLED,
        [FETCH_CANCELLED] = 1u << FETCH_IDLE,
};

bool fetch_life_permits(FetchState from, FetchState to) {
        return transitions[from] & 1u << to;
}

void fetch_life_move(FetchState *state, FetchState to) {
        assert(fetch_life_permits(*state, to));
        *state = to;
}
