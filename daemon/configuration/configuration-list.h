/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values of [Database] that are lists: of users, groups or tables. Pure.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_LIST_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_LIST_H

#include "daemon/configuration/configuration-source.h"

/* For DatabaseKey.set: adds the words of `value` to the list, and reports each word that no list of this kind may have; an
 * empty value empties the list. */
void list_set_users(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d);
void list_set_groups(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d);
void list_set_tables(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d);

bool list_equal(char **a, char **b);
bool list_ids_equal(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b);

#endif
