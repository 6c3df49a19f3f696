/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service that is measured: the connection to it and its properties. A Service owns its bus connection and lends it to
 * the library, so that process id and properties belong to the same daemon that the library talks to.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_BENCH_SERVICE_H
#define SQLIPC_TOOLS_BENCH_CORE_BENCH_SERVICE_H

#include <systemd/sd-bus.h>

#include "client-lib/sqlipc.h"
#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/copy.h"

typedef struct Service {
        sd_bus *bus;
        sqlipc_connection *connection;
        pid_t pid; /* of the daemon */
        uid_t uid;
        char *version;
} Service;

/** Opens another connection to the bus that the service is on. */
int bench_service_open_bus(const BenchOptions *options, sd_bus **ret);
/** Connects to the bus that the options name, and starts the daemon if it is not running. Reports errors on stderr. */
int bench_service_open(const BenchOptions *options, Service *ret);
void bench_service_close(Service *service);
/** Reads a property of the manager whose value is a number. */
int bench_service_get_count(Service *service, const char *property, uint64_t *ret);
/** Reports the library's last error on stderr. Returns `r`. */
int bench_service_failed(Service *service, int r, const char *what);
/** Adds the current row of `cursor` to `copy`. */
void bench_service_copy_row(sqlipc_cursor *cursor, unsigned n_columns, Copy *copy);
/** Runs a query and copies every value of its result. Reports errors on stderr. */
int bench_service_copy(Service *service, const char *database, const char *sql, Copy *copy);

#endif
