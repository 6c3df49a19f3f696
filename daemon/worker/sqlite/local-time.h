/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The time zone of the process, which SQLite's `localtime` and `utc` ask the C library for.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_LOCAL_TIME_H
#define SQLIPC_DAEMON_WORKER_SQLITE_LOCAL_TIME_H

#include <stdbool.h>

/* Sets the zone (time-zone.h); NULL: that with which the process was started. False: it could not be read now, because
 * memory or descriptors are short. It costs nothing if it is the same zone as before. */
bool local_time_set_zone(const char *zone);

#endif
