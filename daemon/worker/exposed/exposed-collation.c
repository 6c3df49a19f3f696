/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See exposed-collation.h. The virtual table is eponymous, has no rows, and is never read: to compile a
 * statement is enough.
 */
#include "daemon/worker/exposed/exposed-collation.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* Result of the compile under way. A worker has one thread, and exposed_collation() sets and reads it within one call. */
static char answer[256];

static int see_constraints(sqlite3_vtab *table, sqlite3_index_info *info) {
        (void) table;
        for (int i = 0; i < info->nConstraint; i++)
                if (info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ)
                        sqlite3_snprintf(sizeof answer, answer, "%s", sqlite3_vtab_collation(info, i));
        return SQLITE_OK;
}

static int connect_table(sqlite3 *db, void *userdata, int argc, const char *const *argv, sqlite3_vtab **ret, char **error) {
        int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(value)");

        (void) userdata;
        (void) argc;
        (void) argv;
        (void) error;
        if (rc != SQLITE_OK)
                return rc;
        *ret = sqlite3_malloc(sizeof **ret);
        if (!*ret)
                return SQLITE_NOMEM;
        **ret = (sqlite3_vtab) {};
        return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table) {
        sqlite3_free(table);
        return SQLITE_OK;
}

int exposed_collation_setup(sqlite3 *db) {
        static const sqlite3_module module = {
                .xConnect = connect_table,
                .xBestIndex = see_constraints,
                .xDisconnect = disconnect_table,
        };

        return sqlite3_create_module_v2(db, EXPOSED_COLLATION_MODULE, &module, NULL, NULL);
}

int exposed_collation(sqlite3 *db, const char *view, const char *column, char **ret) {
        char *sql = sqlite3_mprintf("SELECT 1 FROM main.\"%w\" AS o, " EXPOSED_COLLATION_MODULE " AS q "
                                    "WHERE o.\"%w\" = q.value", view, column);
        sqlite3_stmt *stmt = NULL;
        int rc;

        if (!sql)
                return SQLITE_NOMEM;
        answer[0] = 0;
        rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
        (void) sqlite3_finalize(stmt);
        sqlite3_free(sql);
        if (rc != SQLITE_OK)
                return rc;
        *ret = strdup(answer[0] ? answer : "BINARY");
        return *ret ? SQLITE_OK : SQLITE_NOMEM;
}
