/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a database shows: tables and views with their columns, as the running service tells the caller. */
#ifndef CTL_EXPOSED_H
#define CTL_EXPOSED_H

#include "bus.h"

/** The objects, aa{sv}: "name", "kind" ("table", "view"; absent where it cannot be told), "columns" (as) or the "problem"
 * that kept the service from telling them; those of `expose`, or all of the database where that is empty. `ask`: the service
 * may be asked. `*ret_problem`: why all of them cannot be told, or NULL; caller frees. Floating. */
GVariant *exposed_objects(Context *c, const char *database, char **expose, bool ask, char **ret_problem);

#endif
