/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of a transaction: its states, and the changes from one to another. Library. Pure.
 *
 *      BEGINNING --> OPEN <-> ENDING --> OVER
 *          |           |                  ^
 *          \-----------+------------------/
 *
 * These are all transitions; transact_life_move() makes no others.
 *
 *      from       to         when
 *      BEGINNING  OPEN       Begin was answered
 *      BEGINNING  OVER       Begin failed, was interrupted, or the program or its connection closed the transaction
 *      OPEN       ENDING     Commit or Rollback was sent
 *      OPEN       OVER       the service ended it, the service or the bus was lost, or it was closed
 *      ENDING     OPEN       Commit was refused, because deferred foreign keys are violated, and the program is told
 *      ENDING     OVER       Commit or Rollback was answered otherwise, or it was closed
 */
#ifndef SQLIPC_CLIENT_LIB_TRANSACT_LIFE_H
#define SQLIPC_CLIENT_LIB_TRANSACT_LIFE_H

#include <stdbool.h>

typedef enum TransactionState {
        TRANSACTION_BEGINNING,
        TRANSACTION_OPEN,
        TRANSACTION_ENDING,
        TRANSACTION_OVER,      /* the answer is kept */
        TRANSACTION_STATE_MAX,
} TransactionState;

/* True if the list above has the transition. */
bool transact_life_permits(TransactionState from, TransactionState to);

/* Changes `*state`. The list above must have the transition. */
void transact_life_move(TransactionState *state, TransactionState to);

#endif
