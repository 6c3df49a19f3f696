/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libsqlipc as a side of a comparison. It opens its own connections, as a program would. */
#ifndef SQLIPC_TOOLS_BENCH_CORE_LIBRARY_H
#define SQLIPC_TOOLS_BENCH_CORE_LIBRARY_H

#include <stdbool.h>

#include "client-lib/sqlipc.h"
#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/copy.h"

/** Opens the bus that the options name. The caller closes it with sqlipc_close(). Reports errors on stderr. */
int library_open(const BenchOptions *options, sqlipc_transport transport, sqlipc_connection **ret);
/** Reports the connection's last error on stderr. Returns `r`. */
int library_failed(sqlipc_connection *connection, int r, const char *what);
/** Adds all remaining rows that are available. Returns -EAGAIN if there will be more. Prints no error. */
int library_copy_rows(sqlipc_cursor *cursor, Copy *copy);

/** Returns true if the service offers channels. */
bool library_service_has_channels(Service *service);
/** Returns the process of the bus itself; 0 if it is unknown. */
pid_t library_bus_pid(Service *service);

#endif
