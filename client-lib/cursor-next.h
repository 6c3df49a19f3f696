/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way of a row to the program: sqlipc_cursor_next() and its relatives (sqlipc.h). Library.
 *
 *      sqlipc_cursor_next() --> cursor_next_now() --> fetch_next() (fetch.h) --> page_decoder_next(): a row that has come
 *               |                   |                  '--if there is none--> next() of the source (source.h): more bytes
 *               |                   '--> cursor_event() (cursor-event.h): makes it the current row, or ends the cursor
 *               '--> connection_wait(), if nothing has come
 *
 * cursor_next_now() is the state machine and never waits; its callers add the waiting. While the decoder has rows, a row
 * costs one call of the decoder, without a system call or a look at the clock. column.c then reads its values in place.
 */
#ifndef SQLIPC_CLIENT_LIB_CURSOR_NEXT_H
#define SQLIPC_CLIENT_LIB_CURSOR_NEXT_H

#include "client-lib/cursor.h"

/* The same as sqlipc_cursor_next(), but never waits, and arranges no wake-up: -EAGAIN if nothing has come. */
int cursor_next_now(sqlipc_cursor *c);

/* The descriptor that may bring news after -EAGAIN; fd -1: only the bus can. */
struct pollfd cursor_next_pollfd(const sqlipc_cursor *c);

/* After -EAGAIN: arranges that the program's loop wakes when there is news. Returns -EAGAIN, or the failure. */
int cursor_next_arm(sqlipc_cursor *c);

/* Waits, within the connection's timeout, until the run has started or failed. Returns 0 or the failure, which the
 * connection then has, too. */
int cursor_next_wait_started(sqlipc_cursor *c);

/* Waits, within the connection's timeout and also without blocking, until the run has ended, and drops its rows. Returns 0
 * or the failure, which the connection then has, too. */
int cursor_next_wait_ended(sqlipc_cursor *c);

#endif
