/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The user of the service, and the files that this user may use, as far as owner and mode tell. */
#ifndef SQLIPC_TOOLS_CTL_SERVICE_USER_H
#define SQLIPC_TOOLS_CTL_SERVICE_USER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "tools/ctl/service-unit.h"

typedef struct ServiceUser {
        char *name;
        uid_t uid;
        gid_t gid;             /* the primary group */
        gid_t *gids;           /* all groups */
        size_t n_gids;
} ServiceUser;

/** The user `name`, with the groups that `unit` (or NULL) adds. If `name` is NULL: for the system's service the unit's user
 * or SERVICE_USER, for a user's own service the caller. If there is no such user it prints that, and returns -ESRCH. */
int service_user_find(const char *name, bool system, const ServiceUnit *unit, ServiceUser *ret);
void service_user_done(ServiceUser *user);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ServiceUser, service_user_done)

/** True if `user` has the access `wanted` (one of R_OK, W_OK, X_OK) to a file with this owner and mode. */
bool service_user_may(const ServiceUser *user, const struct stat *st, int wanted);

#endif
