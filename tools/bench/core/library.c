/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libsqlipc as a side of a comparison, see library.h. */
#include "tools/bench/core/library.h"

#include <glib.h>
#include <stdio.h>
#include <unistd.h>

int library_open(const BenchOptions *options, sqlipc_transport transport, sqlipc_connection **ret) {
        bool system = options->system || (!options->user && geteuid() == 0);
        sqlipc_connection *connection;
        int r;

        if (options->address)
                r = sqlipc_open_address(options->address, &connection);
        else
                r = system ? sqlipc_open_system(&connection) : sqlipc_open_user(&connection);
        if (r < 0) {
                fprintf(stderr, "sqlipc-bench: cannot reach the bus: %s\n", g_strerror(-r));
                return r;
        }
        r = sqlipc_set_transport(connection, transport);
        if (r < 0) {
                library_failed(connection, r, "sqlipc_set_transport()");
                sqlipc_close(connection);
                return r;
        }
        *ret = connection;
        return 0;
}

int library_failed(sqlipc_connection *connection, int r, const char *what) {
        const char *message = sqlipc_error_message(connection);

        fprintf(stderr, "sqlipc-bench: %s: %s\n", what, *message ? message : g_strerror(-r));
        return r;
}

int library_copy_rows(sqlipc_cursor *cursor, Copy *copy) {
        int r;

        while ((r = sqlipc_cursor_next(cursor)) > 0)
                bench_service_copy_row(cursor, sqlipc_column_count(cursor), copy);
        return r;
}

bool library_service_has_channels(Service *service) {
        g_auto(GStrv) features = NULL;

        if (sd_bus_get_property_strv(service->bus, "org.sqlipc1", "/org/sqlipc1", "org.sqlipc1.Manager", "Features", NULL,
                                     &features) < 0 || !features) /* none */
                return false;
        return g_strv_contains((const char *const *) features, "channel");
}

pid_t library_bus_pid(Service *service) {
        sd_bus_creds *creds = NULL;
        pid_t pid = 0;

        if (sd_bus_get_name_creds(service->bus, "org.freedesktop.DBus", SD_BUS_CREDS_PID, &creds) >= 0)
                (void) sd_bus_creds_get_pid(creds, &pid);
        sd_bus_creds_unref(creds);
        return pid;
}
