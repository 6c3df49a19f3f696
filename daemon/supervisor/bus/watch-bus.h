/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The methods Watch, Unwatch and WaitChange of org.sqlipc1.Database: unpack, call, reply. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_WATCH_BUS_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_WATCH_BUS_H

#include <systemd/sd-bus.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/refusal.h"

/* Each is what BUS_METHOD() takes (bus-error.h). */
int watch_bus_watch(sd_bus_message *m, Database *d, Refusal *refusal);
int watch_bus_unwatch(sd_bus_message *m, Database *d, Refusal *refusal);
int watch_bus_wait_change(sd_bus_message *m, Database *d, Refusal *refusal);

#endif
