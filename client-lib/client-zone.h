/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time zone of this process, as a name that the service can look up (time-zone.h): $TZ, or the zone that /etc/localtime
 * links to. Library.
 *
 * A file that is no link, or lies elsewhere, has no name that the service knows. Then the service's own zone
 * holds. For containers that get /etc/localtime of their host in this way, it is the right one.
 */
#ifndef SQLIPC_CLIENT_LIB_CLIENT_ZONE_H
#define SQLIPC_CLIENT_LIB_CLIENT_ZONE_H

#include "dbus-interfaces/wire/time-zone.h"

typedef struct ClientZone {
        char *variable; /* owned: $TZ when `name` was found, "" if it was not set; NULL: not found yet */
        bool was_set;   /* $TZ was set */
        char name[TIME_ZONE_SIZE_MAX + 1];
} ClientZone;

/* Returns the zone, borrowed until the next call; "": the service's own. As in a C library, a program may change $TZ at any
 * time, but /etc/localtime is read once. */
const char *client_zone_get(ClientZone *z);

void client_zone_done(ClientZone *z);

#endif
