/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service that is measured, see bench-service.h. */
#include "tools/bench/core/bench-service.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define BUS_NAME "org.sqlipc1"
#define MANAGER_PATH "/org/sqlipc1"
#define MANAGER_INTERFACE "org.sqlipc1.Manager"

int bench_service_open_bus(const BenchOptions *options, sd_bus **ret) {
        bool system = options->system || (!options->user && geteuid() == 0);
        int r;

        if (!options->address)
                return system ? sd_bus_open_system(ret) : sd_bus_open_user(ret);

        r = sd_bus_new(ret);
        if (r >= 0)
                r = sd_bus_set_address(*ret, options->address);
        if (r >= 0)
                r = sd_bus_set_bus_client(*ret, 1);
        if (r >= 0)
                r = sd_bus_start(*ret);
        return r;
}

/* Makes the first call, which starts the daemon, then asks the bus for the daemon's identity. */
static int identify(Service *service) {
        g_autofree char *version = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_creds *creds = NULL;
        int r;

        r = sd_bus_get_property_string(service->bus, BUS_NAME, MANAGER_PATH, MANAGER_INTERFACE, "DaemonVersion", &error,
                                       &version);
        if (r < 0) {
                fprintf(stderr, "sqlipc-bench: the service does not answer: %s\n", error.message ?: g_strerror(-r));
                sd_bus_error_free(&error);
                return r;
        }
        service->version = g_strdup(version);

        r = sd_bus_get_name_creds(service->bus, BUS_NAME, SD_BUS_CREDS_PID | SD_BUS_CREDS_EUID, &creds);
        if (r >= 0)
                r = sd_bus_creds_get_pid(creds, &service->pid);
        if (r >= 0)
                r = sd_bus_creds_get_euid(creds, &service->uid);
        sd_bus_creds_unref(creds);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: the bus does not say who the service is: %s\n", g_strerror(-r));
        return r;
}

int bench_service_open(const BenchOptions *options, Service *ret) {
        Service service = {};
        int r;

        r = bench_service_open_bus(options, &service.bus);
        if (r >= 0)
                r = sqlipc_open_bus(service.bus, &service.connection);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: cannot reach the bus: %s\n", g_strerror(-r));
        else
                r = identify(&service);
        if (r < 0) {
                bench_service_close(&service);
                return r;
        }
        *ret = service;
        return 0;
}

void bench_service_close(Service *service) {
        service->connection = sqlipc_close(service->connection);
        service->bus = sd_bus_flush_close_unref(service->bus);
        g_clear_pointer(&service->version, g_free);
}

int bench_service_get_count(Service *service, const char *property, uint64_t *ret) {
        return sd_bus_get_property_trivial(service->bus, BUS_NAME, MANAGER_PATH, MANAGER_INTERFACE, property, NULL, 't',
                                           ret);
}

int bench_service_failed(Service *service, int r, const char *what) {
        const char *message = sqlipc_error_message(service->connection);

        fprintf(stderr, "sqlipc-bench: %s: %s\n", what, *message ? message : g_strerror(-r));
        return r;
}

int bench_service_copy(Service *service, const char *database, const char *sql, Copy *copy) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        unsigned n_columns = 0;
        int r = sqlipc_query(service->connection, database, sql, &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                if (n_columns == 0)
                        n_columns = sqlipc_column_count(cursor);
                bench_service_copy_row(cursor, n_columns, copy);
        }
        return r < 0 ? bench_service_failed(service, r, sql) : 0;
}

void bench_service_copy_row(sqlipc_cursor *cursor, unsigned n_columns, Copy *copy) {
        for (unsigned i = 0; i < n_columns; i++) {
                sqlipc_type type = sqlipc_column_type(cursor, i);
                const void *bytes;
                size_t size;

                switch (type) {
                case SQLIPC_INTEGER:
                        copy_integer(copy, sqlipc_column_int64(cursor, i));
                        break;
                case SQLIPC_REAL:
                        copy_real(copy, sqlipc_column_double(cursor, i));
                        break;
                case SQLIPC_TEXT:
                case SQLIPC_BLOB:
                        bytes = sqlipc_column_blob(cursor, i, &size);
                        copy_bytes(copy, type, bytes, size);
                        break;
                case SQLIPC_NULL:
                        copy_null(copy);
                        break;
                }
        }
        copy->n_rows++;
}
