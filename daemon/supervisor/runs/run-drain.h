/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A run that has ended while its reader is slow. Its worker is free, and the supervisor writes the last bytes (unread.h).
 * Supervisor.
 *
 * The bytes are kept as long as a statement may be idle (StatementIdleSec=), or for ParkTimeoutSec= if the client has left
 * the bus. After that time, or if the administrator cancels the run, they are dropped and the reader finds the end of the
 * file. A service that stops waits a second for such readers.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_DRAIN_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_DRAIN_H

#include "daemon/protocol/protocol.h"
#include "dbus-interfaces/sqlipc-errors.h"

typedef struct Run Run;

/* Copies `bytes`, which the worker could not write, and writes them as the reader makes room. May free the run. */
void run_drain_begin(Run *run, Bytes bytes);

/* Drops the unread bytes, which ends the run. `error` and the sentence are for a RowReader. May free the run. */
void run_drain_drop(Run *run, ErrorNumber error, const char *sentence);

/* Frees what the run needed for draining; the run is about to be freed. */
void run_drain_done(Run *run);

#endif
