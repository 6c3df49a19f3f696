/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service that is measured: options that say where it is, the connection, and what it tells about itself. Owns its
 * own bus connection and lends it to the library, so that process id and properties are those of the daemon that the
 * library talks to.
 */
#ifndef BENCH_SERVICE_H
#define BENCH_SERVICE_H

#include <glib.h>
#include <systemd/sd-bus.h>

#include "copy.h"
#include "report.h"
#include "sqlipc.h"

/* Options of every workload that talks to the service; `file` is the same database, for SQLite in process. */
typedef struct ServiceOptions {
        gboolean system, user, json;
        char *address, *database, *file, *sql; /* owned */
        int n_runs;
} ServiceOptions;

typedef struct Service {
        sd_bus *bus;
        sqlipc_connection *connection;
        pid_t pid; /* of the daemon */
        uid_t uid;
        char *version;
} Service;

/** Reads the options of argv, those of `extra` too (may be NULL); says on stderr what is wrong. -EINVAL where
 * something is. */
int service_options_parse(ServiceOptions *options, const GOptionEntry *extra, const char *summary, int argc, char **argv);
void service_options_done(ServiceOptions *options);

/** Connects, and has the daemon started where it does not run. Says on stderr what fails. */
int service_open(const ServiceOptions *options, Service *ret);
void service_close(Service *service);
/** Reads a property of the manager that counts something. */
int service_get_count(Service *service, const char *property, uint64_t *ret);
/** Tells the library's last error. Returns `r`. */
int service_failed(Service *service, int r, const char *what);
/** Adds the row that `cursor` is at. */
void service_copy_row(sqlipc_cursor *cursor, unsigned n_columns, Copy *copy);
/** Who serves, with which SQLite beside it, what is asked. */
void service_report(const Service *service, const ServiceOptions *options, Report *report);

#endif
