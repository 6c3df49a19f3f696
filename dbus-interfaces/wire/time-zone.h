/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time zone of a client, for SQL's `localtime` and `utc`. Pure.
 *
 * It is a value of the environment variable TZ without the colon before it: a name in the system's folder of time zones
 * (Europe/Berlin), or a rule of POSIX (CET-1CEST,M3.5.0,M10.5.0/3). The C library opens a file of that name, so a path
 * that leaves the folder is no zone.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_TIME_ZONE_H
#define SQLIPC_DBUS_INTERFACES_WIRE_TIME_ZONE_H

#include <stdbool.h>
#include <stddef.h>

#define TIME_ZONE_SIZE_MAX ((size_t) 127)

/* True if the `size` bytes may be a zone. It need not exist: the C library then takes UTC. None: the service's. */
bool time_zone_is_valid(const char *zone, size_t size);

#endif
