/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters of queries: parses NAME=VALUE of a command line, and binds the values that a statement needs. Pure.
 *
 * NAME is a parameter's name with or without its prefix (:id, @id, $id, id), or a number for its position (2, the same
 * as ?2). If a name is given both with and without prefix, the one with prefix is used.
 *
 * VALUE is read as SQL reads a literal, and anything else is text, so that ordinary words need no quotes:
 *
 *      12  -7              INTEGER (past 64 bits: REAL, as in SQL)
 *      1.5  .5  1e9        REAL
 *      x'00ff'             BLOB
 *      null                NULL, in any case
 *      '12'  'it''s'       TEXT without its quotes, '' for a quote
 *      anything else       TEXT verbatim, the empty string too
 */
#ifndef SQLIPC_TOOLS_CLI_SQL_PARAMETER_H
#define SQLIPC_TOOLS_CLI_SQL_PARAMETER_H

#include <glib.h>
#include <stdbool.h>

#include "client-lib/sqlipc.h"
#include "tools/cli/sql/sql-scan.h"

typedef struct ParameterList ParameterList;

ParameterList *parameter_list_new(void);
/** NULL is allowed. Returns NULL. */
ParameterList *parameter_list_free(ParameterList *list);
void parameter_list_freep(ParameterList **list);

/** Adds NAME=VALUE. Returns -EINVAL, and a sentence in `ret_message`, which the caller frees, if it cannot be read or NAME
 * is in the list already. */
int parameter_list_add(ParameterList *list, const char *argument, char **ret_message);

/** Sets NAME to VALUE, and replaces an earlier value. A NAME without prefix replaces that name with any prefix. Returns
 * -EINVAL, and a sentence in `ret_message`, which the caller frees, if one of them cannot be read. */
int parameter_list_set(ParameterList *list, const char *name, const char *value, char **ret_message);

/** Removes NAME, which is given as it was set, without its prefix or by its position. Returns false if there was none. */
bool parameter_list_unset(ParameterList *list, const char *name);

void parameter_list_clear(ParameterList *list);

/** Returns a copy of the list and its parameters. */
ParameterList *parameter_list_copy(const ParameterList *list);

/** Marks the parameters of `list` as used that are used in `copy`. */
void parameter_list_note_use(ParameterList *list, const ParameterList *copy);

/** All parameters: first the positions in their order, then the names in the order in which they were set. Each has its
 * name, "?2" for a position. Borrowed until the list changes or is freed, or the next call of this or of
 * parameter_list_for(). */
const sqlipc_parameter *parameter_list_get(ParameterList *list, size_t *ret_n);

/** Makes the array that sqlipc_query_with() takes for `sql`: a value for each parameter of the statement; NULL if the list
 * has none, as in sqlite3's shell. Borrowed as from parameter_list_get(). The parameters that are found count as used. */
const sqlipc_parameter *parameter_list_for(ParameterList *list, SqlDialect dialect, const char *sql, size_t *ret_n);

/** The first parameter of parameter_list_add() that parameter_list_for() has not found in any statement, borrowed; NULL:
 * there is none. Parameters of parameter_list_set() are ignored, because a later statement may need them. */
const char *parameter_list_unused(const ParameterList *list);

#endif
