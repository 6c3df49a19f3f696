/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A child that works on a database with the rights of the service's user, so that neither a link in a folder of this user
 * nor the SQL in a database can use root's rights.
 */
#ifndef SQLIPC_TOOLS_CTL_SERVICE_CHILD_H
#define SQLIPC_TOOLS_CTL_SERVICE_CHILD_H

#include "tools/ctl/service-user.h"

/** Runs `function` in a child, and returns its exit code; -1 if the child could not be started or was killed, which has been
 * printed. Ctrl-C and SIGTERM end the child, not the caller, so that the caller can clean up. The child's output is
 * flushed. */
int service_child_run(const ServiceUser *user, int (*function)(void *userdata), void *userdata);

/** The user that works on a database: the service's for root, else the caller. Returns -1 if it is unknown, which has been
 * printed. `name`: NULL for the default. */
int service_child_user(const char *name, bool system, const ServiceUnit *unit, ServiceUser *ret);

#endif
