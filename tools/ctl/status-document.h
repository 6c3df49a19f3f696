/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The data of `sqlipcctl status`, as documents (a{sv}); command-status.c prints them. */
#ifndef SQLIPC_TOOLS_CTL_STATUS_DOCUMENT_H
#define SQLIPC_TOOLS_CTL_STATUS_DOCUMENT_H

#include "tools/ctl/bus.h"

/* Each function prints an error if it fails, and returns an exit code. The caller unrefs the documents. */

/** The service: "running" (b) and "bus", and if it runs "pid", "uid", "since" (t, seconds since 1970, 0 if
 * unknown), "clients" (u), "databases" (u), the properties of the manager as properties_of() names them, and
 * "broken" (a{ss}) if the caller may see it. This does not start the service. */
int status_of_service(Context *c, GVariant **ret);

/** One database: "name", "object", all data of ListDatabases, "statements", "runs" and "channels" (aa{sv}), and from the
 * configuration files: "path", "immutable", "allow-users", "allow-groups", "polkit", "expose"; without the latter
 * if the files cannot be read. */
int status_of_database(Context *c, const char *name, GVariant **ret);

#endif
