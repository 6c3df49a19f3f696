/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters of a query, as they stand on a command line: NAME=VALUE. Pure.
 *
 * NAME is a parameter's name with or without its prefix (:id, @id, $id, id), or a number for its position (2, the same
 * as ?2).
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

#include "sqlipc.h"

typedef struct ParameterList ParameterList;

ParameterList *parameter_list_new(void);
/** NULL is allowed. Returns NULL. */
ParameterList *parameter_list_free(ParameterList *list);
void parameter_list_freep(ParameterList **list);

/** Adds NAME=VALUE. -EINVAL, and a sentence in `ret_message` to be freed, where it cannot be read or NAME was there
 * before. */
int parameter_list_add(ParameterList *list, const char *argument, char **ret_message);

/** What sqlipc_query_with() takes: positions 1..n first and nameless as far as they are complete, then the rest by
 * name. Borrowed until the list changes or goes. */
const sqlipc_parameter *parameter_list_get(ParameterList *list, size_t *ret_n);

#endif
