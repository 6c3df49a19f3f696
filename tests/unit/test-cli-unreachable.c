/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/shell/unreachable: the message if the bus or the service cannot be reached, and its advice. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "tools/cli/shell/unreachable.h"

#define BUS "the user's bus"

static void says(char *sentence, const char *what, const char *advice) {
        g_assert_nonnull(sentence);
        if (!strstr(sentence, what) || !strstr(sentence, advice))
                g_error("it says \"%s\", and not \"%s\" with \"%s\"", sentence, what, advice);
        g_assert_null(strstr(sentence, "org.freedesktop"));
        g_free(sentence);
}

static void test_bus(void) {
        const BusChoice user = { .kind = BUS_USER }, system = { .kind = BUS_SYSTEM };
        const BusChoice address = { .kind = BUS_ADDRESS, .address = (char *) "nonsense" };
        const BusChoice remote = { .kind = BUS_SYSTEM, .host = (char *) "-x" };

        says(unreachable_bus(&user, BUS, -ENOMEDIUM), "DBUS_SESSION_BUS_ADDRESS", "log in again");
        says(unreachable_bus(&system, BUS, -ENOMEDIUM), "no address", "--address");
        says(unreachable_bus(&user, BUS, -EINVAL), "is wrong", "correct DBUS_SESSION_BUS_ADDRESS");
        says(unreachable_bus(&system, BUS, -EINVAL), "is wrong", "correct DBUS_SYSTEM_BUS_ADDRESS");
        says(unreachable_bus(&address, BUS, -EINVAL), "nonsense is no D-Bus address", "unix:path=");
        says(unreachable_bus(&remote, BUS, -EINVAL), "cannot reach", "[USER@]HOST");
        says(unreachable_bus(&user, BUS, -ENOENT), "no bus listens", "start it");
        says(unreachable_bus(&user, BUS, -ECONNREFUSED), "no bus listens", "--address");
        says(unreachable_bus(&user, BUS, -EACCES), "does not let you connect", "ask its owner");
        says(unreachable_bus(&user, BUS, -EOPNOTSUPP), "passes no descriptors", "auto and dbus");
        says(unreachable_bus(&user, BUS, -EIO), "cannot reach " BUS, "error");
}

static void test_service(void) {
        static const struct {
                const char *name, *what, *advice;
        } errors[] = {
                { "org.freedesktop.DBus.Error.ServiceUnknown", "not installed on " BUS, "install it" },
                { "org.freedesktop.DBus.Error.AccessDenied", "does not let you", "ask its administrator" },
                { "org.freedesktop.DBus.Error.NoReply", "ended before it answered", "try again" },
                { "org.freedesktop.DBus.Error.Timeout", "does not answer", "try again" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(errors); i++)
                says(unreachable_service(BUS, errors[i].name), errors[i].what, errors[i].advice);
        g_assert_null(unreachable_service(BUS, NULL));
        g_assert_null(unreachable_service(BUS, "org.sqlipc1.Error.AccessDenied"));
        g_assert_null(unreachable_service(BUS, "org.freedesktop.systemd1.UnitMasked")); /* the library says it */
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/unreachable/bus", test_bus);
        g_test_add_func("/unreachable/service", test_service);
        return g_test_run();
}
