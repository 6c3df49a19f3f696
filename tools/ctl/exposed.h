/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The objects that a database exposes: tables and views with their columns, as the running service shows them to the
 * caller. */
#ifndef SQLIPC_TOOLS_CTL_EXPOSED_H
#define SQLIPC_TOOLS_CTL_EXPOSED_H

#include "tools/ctl/bus.h"

/** The objects, aa{sv}: "name", "kind" ("table", "view"; absent if it is unknown), "columns" (as) or the "problem"
 * because of which they are unknown. The objects are those of `expose`, or all of the database if that is empty. `ask`: the
 * service may be called. `*ret_problem`: why nothing is known, or NULL; the caller frees it. The result is floating. */
GVariant *exposed_objects(Context *c, const char *database, char **expose, bool ask, char **ret_problem);

#endif
