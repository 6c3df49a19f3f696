/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Explains why the service cannot be reached (unreachable.h). */
#include "tools/cli/shell/unreachable.h"

#include <errno.h>
#include <glib.h>

#define DBUS_ERROR "org.freedesktop.DBus.Error."

static char *no_address(const BusChoice *choice) {
        if (choice->kind == BUS_USER)
                return g_strdup("you have no user bus here: DBUS_SESSION_BUS_ADDRESS and XDG_RUNTIME_DIR are not set; "
                                "log in again, or choose a bus with --address or --system");
        return g_strdup("the bus has no address: choose one with --address");
}

static char *not_an_address(const BusChoice *choice, const char *bus) {
        static const char example[] = "an address is written as unix:path=/run/user/1000/bus";

        if (choice->host)
                return g_strdup_printf("cannot reach %s: write the host as [USER@]HOST[:PORT]", bus);
        if (choice->kind == BUS_ADDRESS)
                return g_strdup_printf("%s is no D-Bus address: %s", choice->address, example);
        if (choice->kind == BUS_FOUND)
                return g_strdup("SQLIPC_BUS or the address of a bus is wrong: SQLIPC_BUS is user, system or an address");
        return g_strdup_printf("the address of %s is wrong: correct %s; %s", bus,
                               choice->kind == BUS_USER ? "DBUS_SESSION_BUS_ADDRESS" : "DBUS_SYSTEM_BUS_ADDRESS", example);
}

char *unreachable_bus(const BusChoice *choice, const char *bus, int r) {
        switch (r) {
        case -ENOMEDIUM:
                return no_address(choice);
        case -EINVAL:
                return not_an_address(choice, bus);
        case -ENOENT:
        case -ECONNREFUSED:
                return g_strdup_printf("cannot reach %s: no bus listens there; start it, or choose another one with "
                                       "--address", bus);
        case -EACCES:
        case -EPERM:
                return g_strdup_printf("%s does not let you connect: ask its owner for access, or choose another bus", bus);
        case -EOPNOTSUPP:
                return g_strdup_printf("%s passes no descriptors: transports other than auto and dbus need them", bus);
        default:
                return g_strdup_printf("cannot reach %s: %s", bus, g_strerror(-r));
        }
}

char *unreachable_service(const char *bus, const char *name) {
        if (!name)
                return NULL;
        if (g_str_equal(name, DBUS_ERROR "ServiceUnknown"))
                return g_strdup_printf("sqlipcd is not installed on %s: install it, or choose another bus", bus);
        if (g_str_equal(name, DBUS_ERROR "AccessDenied") || g_str_equal(name, DBUS_ERROR "AuthFailed"))
                return g_strdup_printf("the policy of %s does not let you use sqlipcd: ask its administrator for access",
                                       bus);
        if (g_str_equal(name, DBUS_ERROR "NoReply"))
                return g_strdup_printf("sqlipcd on %s ended before it answered: try again", bus);
        if (g_str_equal(name, DBUS_ERROR "Timeout") || g_str_equal(name, DBUS_ERROR "TimedOut"))
                return g_strdup_printf("sqlipcd on %s does not answer: try again later", bus);
        return NULL;
}
