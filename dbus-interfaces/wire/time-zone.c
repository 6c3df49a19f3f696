/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time zone of a client (time-zone.h). Pure. */
#include "dbus-interfaces/wire/time-zone.h"

#include <string.h>

bool time_zone_is_valid(const char *zone, size_t size) {
        static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/.,:<>";

        if (size > TIME_ZONE_SIZE_MAX || (size > 0 && (*zone == '/' || *zone == ':')))
                return false;
        for (size_t i = 0; i < size; i++)
                if (zone[i] == 0 || !strchr(allowed, zone[i]) || (zone[i] == '.' && i + 1 < size && zone[i + 1] == '.'))
                        return false;
        return true;
}
