/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libsqlipc as a side of a comparison uses it: connections of its own, opened as a program would. */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include <stdbool.h>

#include "copy.h"
#include "options.h"
#include "service.h"
#include "sqlipc.h"

/** Opens the bus that the options name. The caller closes it with sqlipc_close(). Says on stderr what fails. */
int library_open(const BenchOptions *options, sqlipc_transport transport, sqlipc_connection **ret);
/** Tells the connection's last error. Returns `r`. */
int library_failed(sqlipc_connection *connection, int r, const char *what);
/** Adds all rows that are still to come, each when it is there; -EAGAIN: not all are. Nothing is said. */
int library_copy_rows(sqlipc_cursor *cursor, Copy *copy);

/** Whether the service hands out channels. */
bool library_service_has_channels(Service *service);
/** The process of the bus itself; 0: nobody tells. */
pid_t library_bus_pid(Service *service);

#endif
