/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a transaction (transact-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/transact-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[TRANSACTION_STATE_MAX] = {
        [TRANSACTION_BEGINNING] = 1u << TRANSACTION_OPEN | 1u << TRANSACTION_OVER,
        [TRANSACTION_OPEN] = 1u << TRANSACTION_ENDING | 1u << TRANSACTION_OVER,
        [TRANSACTION_ENDING] = 1u << TRANSACTION_OPEN | 1u << TRANSACTION_OVER,
};

bool transact_life_permits(TransactionState from, TransactionState to) {
        return transitions[from] & 1u << to;
}

void transact_life_move(TransactionState *state, TransactionState to) {
        assert(transact_life_permits(*state, to));
        *state = to;
}
