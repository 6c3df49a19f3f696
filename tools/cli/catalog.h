/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names that completion offers: databases of the bus; tables, columns and functions of the open database. Asked of the
 * service when first wanted, and again once they are older than a few seconds or another database is open; never for
 * longer than CATALOG_WAIT_USEC, which a service that has to be started may take, and never with a complaint: no answer, no
 * names, of any kind.
 */
#ifndef CLI_CATALOG_H
#define CLI_CATALOG_H

#include "session.h"

#define CATALOG_WAIT_USEC ((uint64_t) 2 * 1000 * 1000)

typedef struct Catalog Catalog;

Catalog *catalog_new(Session *session);
/** NULL is allowed. Returns NULL. */
Catalog *catalog_free(Catalog *catalog);

/** Names, sorted if nothing else is said, NULL-terminated, borrowed until the next catalog_*(); never NULL. */
const char *const *catalog_databases(Catalog *catalog);
const char *const *catalog_tables(Catalog *catalog);    /* tables and views, without sqlite_* */
const char *const *catalog_columns(Catalog *catalog, const char *table);
/* Of all tables, those first that most tables have. */
const char *const *catalog_all_columns(Catalog *catalog);
const char *const *catalog_functions(Catalog *catalog);

#endif
