/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service that is measured: the connection, and what it tells about itself. Owns its own bus connection and lends it to
 * the library, so that process id and properties are those of the daemon that the library talks to.
 */
#ifndef BENCH_SERVICE_H
#define BENCH_SERVICE_H

#include <systemd/sd-bus.h>

#include "copy.h"
#include "options.h"
#include "report.h"
#include "sqlipc.h"

typedef struct Service {
        sd_bus *bus;
        sqlipc_connection *connection;
        pid_t pid; /* of the daemon */
        uid_t uid;
        char *version;
} Service;

/** Opens the bus that the service is on, for a connection of its own. */
int service_open_bus(const BenchOptions *options, sd_bus **ret);
/** Connects to the bus that the options say, and has the daemon started where it does not run. Says on stderr what fails. */
int service_open(const BenchOptions *options, Service *ret);
void service_close(Service *service);
/** Reads a property of the manager that counts something. */
int service_get_count(Service *service, const char *property, uint64_t *ret);
/** Tells the library's last error. Returns `r`. */
int service_failed(Service *service, int r, const char *what);
/** Adds the row that `cursor` is at. */
void service_copy_row(sqlipc_cursor *cursor, unsigned n_columns, Copy *copy);
/** Runs a query and copies every value of its result. Says on stderr what fails. */
int service_copy(Service *service, const char *database, const char *sql, Copy *copy);
/** Who serves, what is asked. */
void service_report(const Service *service, const BenchOptions *options, Report *report);

#endif
