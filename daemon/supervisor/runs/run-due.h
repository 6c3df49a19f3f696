/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends the runs whose deadline has passed. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_DUE_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_DUE_H

#include <stdint.h>

/* The handler for run_timer_start(); `context` is a Context. Returns the earliest deadline that is left; UINT64_MAX:
 * none. */
uint64_t run_due(void *context, uint64_t now);

#endif
