/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls that the service never began, by their errors, for the library and sqlipcctl.
 *
 * An instance that is shutting down refuses a call, and gives up its name; or the bus had no service to give the call to,
 * because that was killed while it started. The same call to the service's name reaches the next instance.
 */
#ifndef SQLIPC_DBUS_INTERFACES_NEVER_BEGAN_H
#define SQLIPC_DBUS_INTERFACES_NEVER_BEGAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "dbus-interfaces/sqlipc-errors.h"

/* A call that never began is sent again so many times: a service may refuse it each time. */
#define NEVER_BEGAN_REPEATS_MAX 2u

/* True if a call that may start the service, and ended with this error, never began. */
static inline bool never_began(const char *error) {
        static const char *const errors[] = { SQLIPC_ERROR_PREFIXED(ShuttingDown),
                                              "org.freedesktop.DBus.Error.NameHasNoOwner",
                                              "org.freedesktop.DBus.Error.Spawn.ChildSignaled" };

        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
                if (strcmp(error, errors[i]) == 0)
                        return true;
        return false;
}

#endif
