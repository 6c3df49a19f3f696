/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The users who may use a database: names for the ids of its configuration, and the members of its groups. */
#ifndef SQLIPC_TOOLS_CTL_ACCESS_LIST_H
#define SQLIPC_TOOLS_CTL_ACCESS_LIST_H

#include "daemon/configuration/configuration.h"

/** Adds these entries to a dictionary that is being built: "everybody" (b), "users" (aa{sv}: "uid", "name"), "groups"
 * (aa{sv}: "gid", "name", "members" as) and "polkit" (b). The names in `config` must have been resolved. */
void access_list(const DatabaseConfig *config, GVariantBuilder *document);

/** Adds "writable" (b), and if that is true "write-all" (b), "write-users" and "write-groups" as above, "write-tables" (as,
 * empty: all) and "write-schema" (b). */
void access_list_writers(const DatabaseConfig *config, GVariantBuilder *document);

#endif
