/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whom the service runs as, and what files he may use, as far as owner and mode tell. */
#ifndef CTL_SERVICE_USER_H
#define CTL_SERVICE_USER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "service-unit.h"

/* The user of the unit, and of its sysusers file. */
#define SERVICE_USER "sqlipc"

typedef struct ServiceUser {
        char *name;
        uid_t uid;
        gid_t *gids;
        size_t n_gids;
} ServiceUser;

/** The user `name`, with the groups that `unit` (or NULL) adds; where that is NULL, the unit's user or SERVICE_USER for the
 * system's service, and the caller for his own. Says why there is none; -ESRCH then. */
int service_user_find(const char *name, bool system, const ServiceUnit *unit, ServiceUser *ret);
void service_user_done(ServiceUser *user);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ServiceUser, service_user_done)

/** Whether `user` may do `wanted` (R_OK, W_OK, X_OK; one of them) with a file of this owner and mode. */
bool service_user_may(const ServiceUser *user, const struct stat *st, int wanted);

#endif
