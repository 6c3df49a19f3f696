/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A child that works on a database with the rights of the service's user, so that neither a link in a folder of this user
 * nor the SQL in a database can use root's rights. It has a session of its own, no terminal to read from, and none of the
 * caller's descriptors.
 */
#ifndef SQLIPC_TOOLS_CTL_SERVICE_CHILD_H
#define SQLIPC_TOOLS_CTL_SERVICE_CHILD_H

#include <stdint.h>

#include "tools/ctl/service-user.h"

typedef struct ServiceChild {
        const ServiceUser *user; /* borrowed */
        int kept_fd;             /* the only descriptor that the child has beside its output; -1: none */
        uint64_t heap_max;       /* of SQLite, in a child that reads a database: it has the limits and the filter of a
                                  * worker. 0: it needs more */
} ServiceChild;

/** Runs `function` in a child, and returns its exit code; negative if the child could not be started or was killed, which
 * has been printed; -EINTR if a signal to the caller did so. Ctrl-C and SIGTERM end the child, not the caller, so that the
 * caller can clean up. The child's output is flushed. */
int service_child_run(const ServiceChild *options, int (*function)(void *userdata), void *userdata);

/** The user that works on a database: the service's for root, else the caller. Returns -1 if it is unknown, which has been
 * printed. `name`: NULL for the default. */
int service_child_user(const char *name, bool system, const ServiceUnit *unit, ServiceUser *ret);

#endif
