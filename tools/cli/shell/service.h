/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls the service besides queries, over the library's own bus connection: methods and properties of
 * org.sqlipc1.Manager. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_SERVICE_H
#define SQLIPC_TOOLS_CLI_SHELL_SERVICE_H

#include <systemd/sd-bus.h>

#include "tools/cli/shell/shell.h"

/* The time limit of a call, the same as the library's: it is enough to start the service. */
#define SERVICE_WAIT_USEC ((uint64_t) 25 * 1000 * 1000)

/** The bus that the session is on, borrowed until the next query. Reports no errors. */
int service_bus(Shell *shell, sd_bus **ret);

/** Calls a method of the manager that takes only a{sv}. Reports no errors. The caller owns the reply. */
int service_call(Shell *shell, const char *method, sd_bus_message **ret);

/** Reads a property of the manager, or with `of_database` of the open database. The caller owns the reply, which is
 * positioned inside its variant of `type`. Reports no errors. */
int service_property(Shell *shell, bool of_database, const char *name, const char *type, sd_bus_message **ret);

/** Reports the error `r` of the last of these calls. */
void service_complain(Shell *shell, int r);

/** Returns a limit of the open database, by its key in the property Limits; `otherwise` if the service does not report
 * it. */
uint64_t service_limit(Shell *shell, const char *key, uint64_t otherwise);

#endif
