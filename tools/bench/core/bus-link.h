/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* D-Bus between this process and a child that serves: through a bus, or directly over the socket pair of child_start(). */
#ifndef SQLIPC_TOOLS_BENCH_CORE_BUS_LINK_H
#define SQLIPC_TOOLS_BENCH_CORE_BUS_LINK_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/child.h"

/** Answers a message, or ignores it. If it returns a negative errno, the caller replies with that error. */
typedef int (*BusLinkAnswer)(sd_bus_message *message, void *userdata);

/** For the child, whose end of the socket pair is `fd`: serves until the other end or the connection is closed. */
int bus_link_serve_on_bus(const BenchOptions *options, int fd, BusLinkAnswer answer, void *userdata);
int bus_link_serve_direct(int fd, BusLinkAnswer answer, void *userdata);

/** For the parent: opens its own connection to the child's bus. The caller frees the child's bus name, `*ret_name`. */
int bus_link_connect_on_bus(const BenchOptions *options, Child *child, sd_bus **ret, char **ret_name);
/** Makes a connection from the socket pair. The connection takes over the descriptor from `child`. */
int bus_link_connect_direct(Child *child, sd_bus **ret);

#endif
