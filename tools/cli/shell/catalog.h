/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names that completion offers: databases of the bus; tables, columns and functions of the open database. The service is
 * asked for them on first use, and again if they are older than a few seconds or another database has been opened. A request
 * takes at most CATALOG_WAIT_USEC, which is enough to start the service. Errors are not reported: without an answer the list
 * is empty.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_CATALOG_H
#define SQLIPC_TOOLS_CLI_SHELL_CATALOG_H

#include "tools/cli/shell/session.h"

/* The objects of the database, and the TEMP ones of the connection, in SQLite's dialect: schema ("main" or "temp"), prefix
 * ("" or "temp."), number (their order), and the columns of sqlite_schema. */
#define CATALOG_OBJECTS                                                                                                 \
        "(SELECT 'main' AS schema, '' AS prefix, rowid AS number, * FROM sqlite_schema "                                \
        "UNION ALL SELECT 'temp', 'temp.', rowid, * FROM temp.sqlite_schema) AS s"

#define CATALOG_WAIT_USEC ((uint64_t) 2 * 1000 * 1000)

typedef struct Catalog Catalog;

Catalog *catalog_new(Session *session);
/** NULL is allowed. Returns NULL. */
Catalog *catalog_free(Catalog *catalog);

/** Names, sorted unless stated otherwise, NULL-terminated, borrowed until the next catalog_*(); never NULL. */
const char *const *catalog_databases(Catalog *catalog);
const char *const *catalog_tables(Catalog *catalog);    /* tables and views, without sqlite_* */
const char *const *catalog_columns(Catalog *catalog, const char *table);
/* The columns of all tables; those that occur in most tables come first. */
const char *const *catalog_all_columns(Catalog *catalog);
const char *const *catalog_functions(Catalog *catalog);

#endif
