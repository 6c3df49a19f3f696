/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives the place of a worker to the groups that want one more than their bounds allow (group.h). Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_PLACES_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_PLACES_H

#include "daemon/supervisor/base/context.h"

/* A worker may have become idle, or a turn may be over: starved groups check if they can have a worker. */
void places_offer(Context *context);

/* A worker was reaped, or is given up as undead: starved groups try again, in the order in which they began to wait. */
void places_on_worker_gone(Context *context);

#endif
