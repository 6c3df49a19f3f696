/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters of queries: as they stand on a command line, NAME=VALUE, and as a statement wants them. Pure.
 *
 * NAME is a parameter's name with or without its prefix (:id, @id, $id, id), or a number for its position (2, the same
 * as ?2). Given both with and without prefix, the one with it counts.
 *
 * VALUE is read the way SQL reads a literal, and everything else is text, so that ordinary words need no quotes:
 *
 *      12  -7              INTEGER (past 64 bits: REAL, as in SQL)
 *      1.5  .5  1e9        REAL
 *      x'00ff'             BLOB
 *      null                NULL, in any case
 *      '12'  'it''s'       TEXT without its quotes, '' for a quote
 *      anything else       TEXT as it stands, the empty string too
 */
#ifndef CLI_PARAMETER_H
#define CLI_PARAMETER_H

#include <glib.h>
#include <stdbool.h>

#include "sqlipc.h"

typedef struct ParameterList ParameterList;

ParameterList *parameter_list_new(void);
/** NULL is allowed. Returns NULL. */
ParameterList *parameter_list_free(ParameterList *list);
void parameter_list_freep(ParameterList **list);

/** Adds NAME=VALUE. -EINVAL, and a sentence in `ret_message` to be freed, where it cannot be read or NAME was there
 * before. */
int parameter_list_add(ParameterList *list, const char *argument, char **ret_message);

/** Sets NAME to VALUE, whatever it was before; without its prefix NAME stands for all that have one. -EINVAL, and a
 * sentence in `ret_message` to be freed, where either cannot be read. */
int parameter_list_set(ParameterList *list, const char *name, const char *value, char **ret_message);

/** Forgets NAME, which is said as it was set, without its prefix or by its position. False: there was none. */
bool parameter_list_unset(ParameterList *list, const char *name);

void parameter_list_clear(ParameterList *list);

/** The same parameters once more. */
ParameterList *parameter_list_copy(const ParameterList *list);

/** What of a copy was used counts as used in the list that it is of. */
void parameter_list_note_use(ParameterList *list, const ParameterList *copy);

/** All of them, in the order of their positions, and then as they were set; each has its name, "?2" for a position.
 * Borrowed until the list changes or goes, or the next call of this or of parameter_list_for(). */
const sqlipc_parameter *parameter_list_get(ParameterList *list, size_t *ret_n);

/** What sqlipc_query_with() takes for `sql`: a value for each parameter that it names; NULL for what is not in the
 * list, as in sqlite3's shell. Borrowed as from parameter_list_get(). Who was found counts as used. */
const sqlipc_parameter *parameter_list_for(ParameterList *list, const char *sql, size_t *ret_n);

/** The first of parameter_list_add() that parameter_list_for() has not found in any statement, borrowed; NULL: there is
 * none. Those of parameter_list_set() may wait for a statement yet to come. */
const char *parameter_list_unused(const ParameterList *list);

#endif
