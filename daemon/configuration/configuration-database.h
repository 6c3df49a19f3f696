/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One published database: reads its texts, and compares it with its former state. Pure. */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_DATABASE_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_DATABASE_H

#include "daemon/configuration/configuration.h"

/* Adds databases.d/NAME.conf and its drop-ins: a database, or an entry in c->broken. */
void config_add_database(Config *c, const char *name, const ConfigText *texts, size_t n_texts);

/* True if both describe the same database in the same way: its object and workers may stay. */
bool database_config_equal(const DatabaseConfig *a, const DatabaseConfig *b);

/* True if users with access to both read the same data in both, and may write the same. */
bool database_config_shows_same(const DatabaseConfig *a, const DatabaseConfig *b);

/* [A-Za-z0-9_-]{1,64} */
bool database_name_is_valid(const char *name);

#endif
