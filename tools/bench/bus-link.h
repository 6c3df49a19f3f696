/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* D-Bus between us and a child that serves there: through a bus, or straight over the socket pair of child_start(). */
#ifndef BENCH_BUS_LINK_H
#define BENCH_BUS_LINK_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "child.h"
#include "options.h"

/** Answers a message, or leaves it alone. What is negative is answered for it, as an errno. */
typedef int (*BusLinkAnswer)(sd_bus_message *message, void *userdata);

/** In the child, whose end of the socket pair is `fd`: serves until the other end, or the connection, is closed. */
int bus_link_serve_on_bus(const BenchOptions *options, int fd, BusLinkAnswer answer, void *userdata);
int bus_link_serve_direct(int fd, BusLinkAnswer answer, void *userdata);

/** Here: a connection of our own to the bus that the child is on, and the child's name there, to be freed. */
int bus_link_connect_on_bus(const BenchOptions *options, Child *child, sd_bus **ret, char **ret_name);
/** Makes a connection of the socket pair, which is the child's no more. */
int bus_link_connect_direct(Child *child, sd_bus **ret);

#endif
