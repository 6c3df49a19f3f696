/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values of [Database] that are lists: of users, groups or tables. Pure.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_LIST_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_LIST_H

#include "daemon/configuration/configuration-source.h"

typedef enum ListKind { LIST_USERS, LIST_GROUPS, LIST_TABLES } ListKind;

/* Adds the words of `value` to `list`, and reports each word that no list of this kind may have; an empty value empties the
 * list. `places` (or NULL) gets the place of each word. */
void list_add_words(Place *p, ListKind kind, const char *key, const char *value, char ***list, char ***places);

bool list_equal(char **a, char **b);
bool list_ids_equal(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b);

#endif
