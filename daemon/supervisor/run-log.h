/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the end of a run tells the administrator: a database that cannot be read, a query that was slow. Supervisor.
 *
 * A client's mistakes are not among it, and never its SQL: the number of the run finds that in the debug log.
 */
#ifndef SQLIPC_RUN_LOG_H
#define SQLIPC_RUN_LOG_H

#include "protocol.h"
#include "run.h"

/* The worker said that `run`, a PREPARE too, has ended. */
void run_log_end(const Run *run, const Ended *ended);

#endif
