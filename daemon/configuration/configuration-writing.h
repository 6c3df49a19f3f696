/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keys of [Database] for Mode=read-write: the users who may write, what they may write, and how. Pure.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_WRITING_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_WRITING_H

#include "daemon/configuration/configuration-source.h"

/* Sets the values for keys that the files do not set. */
void writing_set_defaults(DatabaseConfig *d);

/* The keys. */
extern const DatabaseKey writing_keys[];

/* Checks the keys of all texts against each other. Warns of a key that does nothing; returns false, and adds the reason to
 * c->broken, if the database must not be published. `file` and `line`: where its section begins. */
bool writing_check(Config *c, const DatabaseConfig *d, const char *file, unsigned line);

/* True if users who may write to both may do the same in both. */
bool writing_allows_same(const DatabaseConfig *a, const DatabaseConfig *b);

/* True if all keys are equal, and the ids that the lists resolved to. */
bool writing_equal(const DatabaseConfig *a, const DatabaseConfig *b);

#endif
