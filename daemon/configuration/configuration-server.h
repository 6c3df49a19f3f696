/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keys of [Database] about the engine: the address of a database's server, and the login of the service there. Pure.
 *
 * No key takes a password: what a file of the configuration holds is shown by sqlipcctl, and told in messages.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_SERVER_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_SERVER_H

#include "daemon/configuration/configuration-source.h"

/* Sets the values for keys that the files do not set. */
void server_set_defaults(DatabaseConfig *d);

/* The keys. */
extern const DatabaseKey server_keys[];

/* Checks the keys of all texts against each other and against Path=, and completes them. False: the database must not be
 * published, and the reason was added to c->broken. `file` and `line`: where its section begins. */
bool server_check(Config *c, DatabaseConfig *d, const char *file, unsigned line);

/* True if both are the same engine with the same connection. */
bool server_shows_same(const DatabaseConfig *a, const DatabaseConfig *b);

/* True if all keys are equal. */
bool server_equal(const DatabaseConfig *a, const DatabaseConfig *b);

#endif
