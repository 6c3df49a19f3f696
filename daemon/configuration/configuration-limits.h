/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers of the configuration: the table of limits with defaults and ranges, and [Service]'s. Pure.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_LIMITS_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_LIMITS_H

#include "daemon/configuration/configuration-source.h"

/* The values for everything that the files do not set. */
ServiceConfig service_config_default(void);
Limits limits_default(void);
DatabaseLimits database_limits_default(void);

/* The default of WorkersTotalMax=: as many workers as fit into half of the machine's memory if all use HeapMax=; at least
 * 2, at most 32. */
uint64_t limits_workers_total(uint64_t memory_size, uint64_t heap_max);

/* The limits for runs of one uid on `d`: those of `c`, overridden by those of `d`. */
Limits config_limits(const Config *c, const DatabaseConfig *d);

bool database_limits_equal(const DatabaseLimits *a, const DatabaseLimits *b);

/* Sizes of [Database]. */
void database_sizes_set_defaults(DatabaseConfig *d);
void database_size_set(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d); /* for DatabaseKey.set */

/* For SectionRow.key_at. */
const char *service_config_key(size_t i);
const char *limits_key(size_t i);
const char *database_limits_key(size_t i);

/* For SectionRow.set: [Service] into a Config, [Limits] into a Config, and [Limits] of a database into its
 * DatabaseConfig. */
KeyKind service_config_set(Place *p, void *config, const char *key, char *value);
KeyKind limits_set(Place *p, void *config, const char *key, char *value);
KeyKind database_limits_set(Place *p, void *database, const char *key, char *value);

#endif
