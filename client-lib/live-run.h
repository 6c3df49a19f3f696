/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One run of a live query (live.h). Library.
 */
#ifndef SQLIPC_CLIENT_LIB_LIVE_RUN_H
#define SQLIPC_CLIENT_LIB_LIVE_RUN_H

#include "client-lib/live.h"

/* Sends the statement. 0, or the failure, of which the connection then has the details. */
int live_run_begin(sqlipc_live *l);

/* Reads rows. 1: the result is there, and `changes` has the differences; -EAGAIN; or the failure, of which the connection
 * then has the details. */
int live_run_read(sqlipc_live *l);

/* Ends the run, and drops its rows. */
void live_run_end(sqlipc_live *l);

/* The differences were told: the new result becomes the last one. */
void live_run_settle(sqlipc_live *l);

#endif
