/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the service manager says of the system's unit, drop-ins included: whom the service runs as, in which groups, and
 * which folders are not there for it. It is what holds at the next start, whether the service runs or not.
 */
#ifndef CTL_SERVICE_UNIT_H
#define CTL_SERVICE_UNIT_H

#include <glib.h>
#include <stdbool.h>

typedef struct ServiceUnit {
        char *user;          /* User= */
        char **groups;       /* SupplementaryGroups=; NULL */
        char *protect_home;  /* ProtectHome= */
        bool private_tmp;    /* PrivateTmp= */
        GPtrArray *bound;    /* of char *: the folders that BindPaths= and BindReadOnlyPaths= make */
        bool is_outdated;    /* the service runs, and since before a drop-in was written */
} ServiceUnit;

/** The unit as it is; as it is installed where no service manager can be asked, or knows none. */
ServiceUnit *service_unit_new(void);
ServiceUnit *service_unit_free(ServiceUnit *unit);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ServiceUnit, service_unit_free)

/** The setting that hides `path` from the service; NULL where none does. */
const char *service_unit_hides(const ServiceUnit *unit, const char *path);

#endif
