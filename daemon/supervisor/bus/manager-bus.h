/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.sqlipc1.Manager on the bus. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_MANAGER_BUS_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_MANAGER_BUS_H

#include "daemon/supervisor/base/context.h"

/* Puts the object on the bus. -errno. */
int manager_bus_export(Context *context);

#endif
