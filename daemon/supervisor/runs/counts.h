/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers that clients and the status line show. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_COUNTS_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_COUNTS_H

#include "daemon/supervisor/base/context.h"

/* The runs that are under way, on pipes and on channels, and those of them that are parked. */
uint64_t counts_runs(const Context *context);
uint64_t counts_parked(const Context *context);

#endif
