/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.sqlipc1.Database on the bus, and the tree of these objects. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_DATABASE_BUS_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_DATABASE_BUS_H

#include "daemon/supervisor/base/context.h"

/* Puts the objects on the bus, which need not be connected to the loop yet. -errno. */
int database_bus_export(Context *context);

#endif
