/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of runs and channels for groups and workers. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_WORK_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_WORK_H

#include "daemon/supervisor/workers/work-events.h"

/* For the context's `work`. */
extern const WorkEvents work_events;

#endif
