/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a statement (prepared-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/prepared-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[STATEMENT_STATE_MAX] = {
        [STATEMENT_PREPARING] = 1u << STATEMENT_READY | 1u << STATEMENT_FAILED | 1u << STATEMENT_LOST,
        [STATEMENT_READY] = 1u << STATEMENT_FAILED | 1u << STATEMENT_LOST,
        [STATEMENT_FAILED] = 1u << STATEMENT_LOST,
        [STATEMENT_LOST] = 1u << STATEMENT_PREPARING | 1u << STATEMENT_READY | 1u << STATEMENT_FAILED,
};

bool prepared_life_permits(StatementState from, StatementState to) {
        return transitions[from] & 1u << to;
}

void prepared_life_move(StatementState *state, StatementState to) {
        assert(prepared_life_permits(*state, to));
        *state = to;
}
