/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.sqlipc1.Database.Limits: the limits of the caller on a database, so that a client can know them before it meets them.
 * Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_LIMITS_BUS_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_LIMITS_BUS_H

#include <systemd/sd-bus.h>

#include "daemon/supervisor/base/quota.h"

/* Appends a{st} with the limits of `user` on `d`. */
int limits_append(sd_bus_message *m, const User *user, const Database *d);

#endif
