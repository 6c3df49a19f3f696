/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Publishes the databases of a configuration, and ends what the one before allowed and this one does not. Supervisor.
 *
 * Databases that did not change keep their object. Runs under way are not touched: a database that is removed ends after
 * them.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_PUBLICATION_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_PUBLICATION_H

#include "daemon/supervisor/base/context.h"

/* Takes `config`, which is in force from now on, and frees the one before. Returns the table of the databases that were
 * published until now, for publication_free(). */
GHashTable *publication_replace(Context *context, Config *config);

/* Empties and frees a table of databases. */
void publication_free(GHashTable *databases);

#endif
