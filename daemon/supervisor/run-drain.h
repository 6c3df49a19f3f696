/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A run that has ended, and whose reader is slow: its worker is free, and we write its last bytes (unread.h). Supervisor.
 *
 * They are kept as long as a statement may be idle (StatementIdleSec=), or for ParkTimeoutSec= if the client has left the
 * bus. Then, or if the administrator cancels the run, they are dropped and the reader finds the end of the file. A service
 * that stops waits a second for such readers.
 */
#ifndef SQLIPC_RUN_DRAIN_H
#define SQLIPC_RUN_DRAIN_H

#include "protocol.h"
#include "sqlipc-errors.h"

typedef struct Run Run;

/* Takes `bytes` over from the worker. May free the run. */
void run_drain_begin(Run *run, Bytes bytes);

/* Drops what is unread, and so ends the run; `error` and a sentence are for a RowReader. May free the run. */
void run_drain_drop(Run *run, ErrorNumber error, const char *sentence);

/* The run is about to be freed. */
void run_drain_done(Run *run);

#endif
