/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. The entry point that load_extension('sqlipc') finds in sqlipc.so.
 */
#include <sqlite3ext.h>

#include "client-lib/extension/module.h"

SQLITE_EXTENSION_INIT1

/* sqlite3_vtab_in(), sqlite3_vtab_rhs_value() and sqlite3_vtab_distinct() came with 3.38. An older library ends its list of
 * functions before them. */
#define SQLITE_VERSION_NEEDED 3038000

__attribute__((visibility("default"))) int sqlite3_sqlipc_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);

int sqlite3_sqlipc_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
        SQLITE_EXTENSION_INIT2(api);
        if (sqlite3_libversion_number() < SQLITE_VERSION_NEEDED) {
                *error = sqlite3_mprintf("sqlipc needs SQLite 3.38 or later, and this program has %s", sqlite3_libversion());
                return SQLITE_ERROR;
        }
        return module_register(db);
}
