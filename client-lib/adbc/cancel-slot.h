/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The target of AdbcStatementCancel(), which may be called from any thread while another one executes the statement or reads
 * its result. ADBC driver.
 *
 * A slot is busy from the begin of an execution to the end of its result. Once the run has a cursor, cancelling affects only
 * that; before (while the statement is compiled, a transaction begins, or rows are loaded), it interrupts all that the
 * connection does.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_CANCEL_SLOT_H
#define SQLIPC_CLIENT_LIB_ADBC_CANCEL_SLOT_H

#include <pthread.h>
#include <stdbool.h>

#include "client-lib/sqlipc.h"

typedef struct CancelSlot {
        pthread_mutex_t mutex;
        bool busy;
        bool cancelled;
        sqlipc_cursor *cursor; /* borrowed; leave it before it is closed */
} CancelSlot;

void cancel_slot_init(CancelSlot *slot);
void cancel_slot_done(CancelSlot *slot);

void cancel_slot_enter(CancelSlot *slot);
void cancel_slot_leave(CancelSlot *slot);

/* Sets or, with NULL, forgets the cursor. A cursor that comes after its cancellation is cancelled at once. */
void cancel_slot_set(CancelSlot *slot, sqlipc_cursor *cursor);

/* True if the execution was cancelled: what has not begun yet must not begin. */
bool cancel_slot_is_cancelled(CancelSlot *slot);

/* Returns false if there is nothing to cancel. */
bool cancel_slot_cancel(CancelSlot *slot, sqlipc_connection *connection);

#endif
