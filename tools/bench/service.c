/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service that is measured, see service.h. */
#include "service.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "baseline.h"

#define BUS_NAME "org.sqlipc1"
#define MANAGER_PATH "/org/sqlipc1"
#define MANAGER_INTERFACE "org.sqlipc1.Manager"

int service_options_parse(ServiceOptions *options, const GOptionEntry *extra, const char *summary, int argc, char **argv) {
        const GOptionEntry entries[] = {
                { "system", 0, 0, G_OPTION_ARG_NONE, &options->system, "Use the system bus, root's default", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &options->user, "Use the user's bus, everybody else's default", NULL },
                { "address", 0, 0, G_OPTION_ARG_STRING, &options->address, "Use the bus at this D-Bus address", "ADDRESS" },
                { "database", 0, 0, G_OPTION_ARG_STRING, &options->database,
                  "The database as the service calls it", "NAME" },
                { "file", 0, 0, G_OPTION_ARG_FILENAME, &options->file,
                  "The same database's file, for SQLite in process", "PATH" },
                { "sql", 0, 0, G_OPTION_ARG_STRING, &options->sql, "The query, SELECT * FROM study", "SQL" },
                { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Write JSON", NULL },
                {},
        };
        g_autoptr(GOptionContext) context = g_option_context_new(NULL);
        g_autoptr(GError) error = NULL;

        g_option_context_set_summary(context, summary);
        g_option_context_add_main_entries(context, entries, NULL);
        if (extra)
                g_option_context_add_main_entries(context, extra, NULL);
        if (!g_option_context_parse(context, &argc, &argv, &error))
                fprintf(stderr, "sqlipc-bench: %s\n", error->message);
        else if (argc != 1 || !options->database || !options->file)
                fprintf(stderr, "sqlipc-bench: --database=NAME and --file=PATH are needed, and no other words.\n");
        else if (options->system + options->user + (options->address != NULL) > 1)
                fprintf(stderr, "sqlipc-bench: --system, --user and --address exclude each other.\n");
        else {
                if (!options->sql)
                        options->sql = g_strdup("SELECT * FROM study");
                return 0;
        }
        return -EINVAL;
}

void service_options_done(ServiceOptions *options) {
        g_clear_pointer(&options->address, g_free);
        g_clear_pointer(&options->database, g_free);
        g_clear_pointer(&options->file, g_free);
        g_clear_pointer(&options->sql, g_free);
}

static int open_bus(const ServiceOptions *options, sd_bus **ret) {
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

/* The first call, which has the bus start the daemon; then who that is. */
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

int service_open(const ServiceOptions *options, Service *ret) {
        Service service = {};
        int r;

        r = open_bus(options, &service.bus);
        if (r >= 0)
                r = sqlipc_open_bus(service.bus, &service.connection);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: cannot reach the bus: %s\n", g_strerror(-r));
        else
                r = identify(&service);
        if (r < 0) {
                service_close(&service);
                return r;
        }
        *ret = service;
        return 0;
}

void service_close(Service *service) {
        service->connection = sqlipc_close(service->connection);
        service->bus = sd_bus_flush_close_unref(service->bus);
        g_clear_pointer(&service->version, g_free);
}

int service_get_count(Service *service, const char *property, uint64_t *ret) {
        return sd_bus_get_property_trivial(service->bus, BUS_NAME, MANAGER_PATH, MANAGER_INTERFACE, property, NULL, 't',
                                           ret);
}

int service_failed(Service *service, int r, const char *what) {
        const char *message = sqlipc_error_message(service->connection);

        fprintf(stderr, "sqlipc-bench: %s: %s\n", what, *message ? message : g_strerror(-r));
        return r;
}

void service_report(const Service *service, const ServiceOptions *options, Report *report) {
        report_fact(report, "daemon", "%s, uid %u; client uid %u", service->version, service->uid, geteuid());
        report_fact(report, "SQLite in process", "%s", baseline_version());
        report_fact(report, "database", "%s, %s", options->database, options->file);
        report_fact(report, "query", "%s", options->sql);
}

void service_copy_row(sqlipc_cursor *cursor, unsigned n_columns, Copy *copy) {
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
