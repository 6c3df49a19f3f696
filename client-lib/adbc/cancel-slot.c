/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The target of AdbcStatementCancel() (cancel-slot.h). ADBC driver. */
#include "client-lib/adbc/cancel-slot.h"

void cancel_slot_init(CancelSlot *slot) {
        *slot = (CancelSlot) { .busy = false };
        (void) pthread_mutex_init(&slot->mutex, NULL);
}

void cancel_slot_done(CancelSlot *slot) { (void) pthread_mutex_destroy(&slot->mutex); }

void cancel_slot_enter(CancelSlot *slot) {
        (void) pthread_mutex_lock(&slot->mutex);
        slot->busy = true;
        slot->cancelled = false;
        slot->cursor = NULL;
        (void) pthread_mutex_unlock(&slot->mutex);
}

void cancel_slot_leave(CancelSlot *slot) {
        (void) pthread_mutex_lock(&slot->mutex);
        slot->busy = false;
        slot->cursor = NULL;
        (void) pthread_mutex_unlock(&slot->mutex);
}

void cancel_slot_set(CancelSlot *slot, sqlipc_cursor *cursor) {
        (void) pthread_mutex_lock(&slot->mutex);
        slot->cursor = cursor;
        if (cursor && slot->cancelled)
                (void) sqlipc_cursor_cancel(cursor);
        (void) pthread_mutex_unlock(&slot->mutex);
}

bool cancel_slot_is_cancelled(CancelSlot *slot) {
        bool cancelled;

        (void) pthread_mutex_lock(&slot->mutex);
        cancelled = slot->cancelled;
        (void) pthread_mutex_unlock(&slot->mutex);
        return cancelled;
}

bool cancel_slot_cancel(CancelSlot *slot, sqlipc_connection *connection) {
        bool busy;

        (void) pthread_mutex_lock(&slot->mutex);
        busy = slot->busy;
        if (busy) {
                slot->cancelled = true;
                if (slot->cursor)
                        (void) sqlipc_cursor_cancel(slot->cursor);
                else
                        (void) sqlipc_interrupt(connection);
        }
        (void) pthread_mutex_unlock(&slot->mutex);
        return busy;
}
