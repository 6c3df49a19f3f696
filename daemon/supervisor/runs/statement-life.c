/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a statement. Pure. */
#include <assert.h>

#include "daemon/supervisor/runs/statement-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[STATEMENT_STATE_MAX] = {
        [STATEMENT_PREPARING] = 1u << STATEMENT_READY | 1u << STATEMENT_ENDING,
        [STATEMENT_READY] = 1u << STATEMENT_LOST | 1u << STATEMENT_ENDING,
};

bool statement_life_permits(StatementState from, StatementState to) {
        return transitions[from] & 1u << to;
}

void statement_life_move(StatementState *state, StatementState to) {
        assert(statement_life_permits(*state, to));
        *state = to;
}
