/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Logs what an administrator must know about the end of a run: a database that cannot be read, a query that was slow.
 * Supervisor.
 *
 * A client's mistakes are not logged here, and its SQL never is: the debug log has it under the number of the run.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_LOG_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_LOG_H

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/log.h"

/* A run (or a PREPARE) as the log names it. */
typedef struct RunLogFacts {
        LogFields fields;     /* without error, time and rows */
        bool is_prepare;
        uint64_t waited_usec; /* for its reader */
        uint64_t slow_usec;   /* SlowQuerySec= */
} RunLogFacts;

/* The worker reported the end of the run. */
void run_log_end(const RunLogFacts *facts, const Ended *ended);

#endif
