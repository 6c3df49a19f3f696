/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers that clients and the status line show. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_COUNTS_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_COUNTS_H

#include "daemon/supervisor/base/context.h"

/* counts_runs(): all runs that the service knows, on pipes and on channels: also those that wait for a worker, and those
 * that have ended but are not read to the end. counts_parked(): those of them that are parked. */
uint64_t counts_runs(const Context *context);
uint64_t counts_parked(const Context *context);

#endif
