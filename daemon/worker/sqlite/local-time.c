/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See local-time.h.
 */
#include "daemon/worker/sqlite/local-time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dbus-interfaces/wire/time-zone.h"

#define PREFIX "TZ="

/* The zone of a client is in the environment as this variable, because setenv() never frees the values of earlier calls. */
static char variable[sizeof PREFIX + TIME_ZONE_SIZE_MAX] = PREFIX;
static bool is_client, is_read = true; /* `variable` is in the environment; the C library has read the zone */

static int change_environment(const char *zone) {
        static const char *own; /* of the process, valid while `variable` is in its place */

        if (!zone)
                return own ? setenv("TZ", own, 1) : unsetenv("TZ");
        if (!is_client)
                own = getenv("TZ");
        memcpy(variable + strlen(PREFIX), zone, strlen(zone) + 1);
        return is_client ? 0 : putenv(variable);
}

bool local_time_set_zone(const char *zone) {
        bool same = zone ? is_client && strcmp(variable + strlen(PREFIX), zone) == 0 : !is_client;

        if (same && is_read)
                return true;
        is_read = false;
        if (change_environment(zone) != 0)
                return false;
        is_client = zone;
        errno = 0;
        tzset();
        /* It takes UTC if it cannot open the file of the zone. It would not try again for the same zone. */
        is_read = errno != EMFILE && errno != ENFILE && errno != ENOMEM;
        if (!is_read && change_environment("UTC0") == 0) {
                is_client = true;
                tzset();
        }
        return is_read;
}
