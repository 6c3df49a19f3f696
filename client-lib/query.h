/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Queries of the library itself. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_QUERY_H
#define SQLIPC_CLIENT_LIB_QUERY_H

#include "client-lib/cursor.h"
#include "client-lib/parameter.h"

/* The same as sqlipc_query_with(), but never waits, and the run belongs to no transaction or pin of the connection. 0, or
 * the failure, of which the connection then has the details. */
int query_begin_alone(sqlipc_connection *connection, const char *database, const char *sql, const Parameter *parameters,
                      size_t n_parameters, sqlipc_cursor **ret_cursor);

#endif
