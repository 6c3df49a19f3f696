/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way of a row to the program: sqlipc_cursor_next() and its relatives (sqlipc.h). Library.
 *
 * next_event() is the state machine and never waits; its callers add the waiting. While the decoder has rows, a row costs
 * one call of the decoder, without a system call or a look at the clock.
 */
#ifndef SQLIPC_CLIENT_LIB_CURSOR_NEXT_H
#define SQLIPC_CLIENT_LIB_CURSOR_NEXT_H

#include "client-lib/cursor.h"

/* Waits, within the connection's timeout, until the run has started or failed. Returns 0 or the failure, which the
 * connection then has, too. */
int cursor_next_wait_started(sqlipc_cursor *c);

#endif
