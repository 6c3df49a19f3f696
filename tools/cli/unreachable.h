/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why the service cannot be reached, and what the user can do about it. Pure. What is returned is to be freed. */
#ifndef CLI_UNREACHABLE_H
#define CLI_UNREACHABLE_H

#include "session.h"

/** A sentence for `r`, with which connecting to the bus failed. `bus`: its name for users. */
char *unreachable_bus(const BusChoice *choice, const char *bus, int r);

/** A sentence for the D-Bus error `name` (NULL: none) with which the bus, or systemd, answered in place of the service.
 * `message`: what came with it. NULL: the service itself answered, or the error says enough. */
char *unreachable_service(const char *bus, const char *name, const char *message);

#endif
