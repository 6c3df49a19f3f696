/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Explains why the service cannot be reached, and how the user can solve that. Pure. The caller frees the results. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_UNREACHABLE_H
#define SQLIPC_TOOLS_CLI_SHELL_UNREACHABLE_H

#include "tools/cli/shell/session.h"

/** A sentence for `r`, the error of connecting to the bus. `bus`: its name for users. */
char *unreachable_bus(const BusChoice *choice, const char *bus, int r);

/** A sentence for the D-Bus error `name` (NULL: none), if the bus sent it in place of the service, and the name of the bus
 * makes the sentence clearer. NULL: the service itself answered, or the error is clear enough. */
char *unreachable_service(const char *bus, const char *name);

#endif
