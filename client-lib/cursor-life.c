/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a cursor (cursor-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/cursor-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[CURSOR_STATE_MAX] = {
        [CURSOR_WAITING] = 1u << CURSOR_DRAINING | 1u << CURSOR_RUNNING | 1u << CURSOR_DONE,
        [CURSOR_DRAINING] = 1u << CURSOR_WAITING | 1u << CURSOR_DONE,
        [CURSOR_RUNNING] = 1u << CURSOR_WAITING | 1u << CURSOR_ASKING | 1u << CURSOR_DONE,
        [CURSOR_ASKING] = 1u << CURSOR_WAITING | 1u << CURSOR_DONE,
};

bool cursor_life_permits(CursorState from, CursorState to) {
        return transitions[from] & 1u << to;
}

void cursor_life_move(CursorState *state, CursorState to) {
        assert(cursor_life_permits(*state, to));
        *state = to;
}
