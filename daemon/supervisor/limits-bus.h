/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.sqlipc1.Database.Limits: what holds for the caller on a database, told before it is met. Supervisor.
 */
#ifndef SQLIPC_LIMITS_BUS_H
#define SQLIPC_LIMITS_BUS_H

#include <systemd/sd-bus.h>

#include "quota.h"

/* Appends the a{st} of what `user` may on `d`. */
int limits_append(sd_bus_message *m, const User *user, const Database *d);

#endif
