/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GetObjects: databases as catalogs, their tables, columns and constraints. ADBC driver.
 *
 * Patterns match without regard to the case of ASCII letters, as names do in SQLite. CHECK constraints are left out: SQLite
 * tells them only as a part of the SQL. If a database cannot be read and the filter names no single one, its schemas are
 * null.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_CONNECTION_OBJECTS_H
#define SQLIPC_CLIENT_LIB_ADBC_CONNECTION_OBJECTS_H

#include <stdbool.h>

#include "client-lib/adbc/adbc-abi.h"

/* True if the name matches a pattern of "%" (any characters) and "_" (one character); NULL matches any. */
bool connection_objects_match(const char *pattern, const char *name);

/* A function of the driver's table. */
AdbcStatusCode connection_objects_get(struct AdbcConnection *connection, int depth, const char *catalog,
                                      const char *db_schema, const char *table, const char **table_types, const char *column,
                                      struct ArrowArrayStream *ret_stream, struct AdbcError *error);

#endif
