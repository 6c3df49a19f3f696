/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may read a database, by names: the ids of its configuration, resolved, with the members of the groups. */
#ifndef CTL_ACCESS_LIST_H
#define CTL_ACCESS_LIST_H

#include "configuration.h"

/** Adds to a dictionary that is being built: "everybody" (b), "users" (aa{sv}: "uid", "name"), "groups" (aa{sv}: "gid",
 * "name", "members" as) and "polkit" (b). `config` was resolved. */
void access_list(const DatabaseConfig *config, GVariantBuilder *document);

#endif
