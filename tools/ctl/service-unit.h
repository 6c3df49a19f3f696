/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Settings of the system's unit, including drop-ins, from the service manager: the user and the groups of the service, and
 * the folders that are hidden from it or that it cannot write to. The settings are those of the next start, even if the
 * service runs.
 */
#ifndef SQLIPC_TOOLS_CTL_SERVICE_UNIT_H
#define SQLIPC_TOOLS_CTL_SERVICE_UNIT_H

#include <glib.h>
#include <stdbool.h>

/* The user of the installed unit, and of its sysusers file. */
#define SERVICE_USER "sqlipc"
/* Its StateDirectory=. */
#define SERVICE_STATE "/var/lib/sqlipc"

typedef struct ServiceUnit {
        char *user;          /* User= */
        char **groups;       /* SupplementaryGroups=; NULL */
        char *protect_home;  /* ProtectHome= */
        char *protect_system; /* ProtectSystem= */
        bool private_tmp;    /* PrivateTmp= */
        GPtrArray *bound;    /* of char *: the destinations of BindPaths= and BindReadOnlyPaths= */
        GPtrArray *writable; /* of char *: folders of ReadWritePaths=, StateDirectory= and BindPaths= */
        bool is_outdated;    /* the service runs, and was started before the last change of a drop-in */
} ServiceUnit;

/** The present unit. If no service manager answers or knows the unit, the settings are those of the installed unit. */
ServiceUnit *service_unit_new(void);
ServiceUnit *service_unit_free(ServiceUnit *unit);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ServiceUnit, service_unit_free)

/** The setting that hides `path` from the service; NULL if none does. */
const char *service_unit_hides(const ServiceUnit *unit, const char *path);
/** The setting that keeps the service from writing to `path`; NULL if none does. */
const char *service_unit_protects(const ServiceUnit *unit, const char *path);

#endif
