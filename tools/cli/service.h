/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service says about itself and us, over the library's own bus connection: org.sqlipc1.Manager, and properties. */
#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include <systemd/sd-bus.h>

#include "shell.h"

/* A call waits no longer, which is as long as the library's do: a service that has to be started may need some of it. */
#define SERVICE_WAIT_USEC ((uint64_t) 25 * 1000 * 1000)

/** The bus that the session is on, borrowed until the next query. Nothing is told. */
int service_bus(Shell *shell, sd_bus **ret);

/** Calls a method of the manager that takes a{sv} only. Nothing is told. The reply is the caller's. */
int service_call(Shell *shell, const char *method, sd_bus_message **ret);

/** A property of the manager, or with `of_database` of the open database. The reply, inside its variant of `type`, is the
 * caller's. Nothing is told. */
int service_property(Shell *shell, bool of_database, const char *name, const char *type, sd_bus_message **ret);

/** Says why the last of these calls gave `r`. */
void service_complain(Shell *shell, int r);

/** A limit of the open database, by its key in the property Limits; `otherwise` where the service does not say. */
uint64_t service_limit(Shell *shell, const char *key, uint64_t otherwise);

#endif
