/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `sqlipcctl status` tells, as documents (a{sv}); command-status.c prints them. */
#ifndef CTL_STATUS_DOCUMENT_H
#define CTL_STATUS_DOCUMENT_H

#include "bus.h"

/* Each says why it fails and returns an exit code; caller unrefs. */

/** The service: "running" (b) and "bus", and where it runs "pid", "uid", "since" (t, seconds since 1970, 0 where it cannot
 * be told), "clients" (u), "databases" (u), the properties of the manager as properties_of() names them, and
 * "broken" (a{ss}) if the caller may see it. It is not started for this. */
int status_of_service(Context *c, GVariant **ret);

/** One database: "name", "object", all that ListDatabases says, "statements", "runs" and "channels" (aa{sv}), and what the
 * configuration's files say: "path", "immutable", "allow-users", "allow-groups", "polkit", "expose"; without these where
 * they cannot be read. */
int status_of_database(Context *c, const char *name, GVariant **ret);

#endif
