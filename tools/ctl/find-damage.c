/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite's checks of a database, see find-damage.h. */
#include "tools/ctl/find-damage.h"

enum { ORPHANS_MAX = 100 }; /* as many as PRAGMA integrity_check reports */

/* Text of the statement as valid UTF-8; the caller frees it. */
static char *text(sqlite3_stmt *statement, int column) {
        const char *value = (const char *) sqlite3_column_text(statement, column);

        return g_utf8_make_valid(value ?: "", value ? sqlite3_column_bytes(statement, column) : 0);
}

static int end(sqlite3 *db, sqlite3_stmt *statement, GPtrArray *problems) {
        int rc = sqlite3_finalize(statement);

        if ((rc & 0xff) != SQLITE_CORRUPT && (rc & 0xff) != SQLITE_NOTADB)
                return rc;
        g_ptr_array_add(problems, g_strdup(sqlite3_errmsg(db)));
        return SQLITE_OK;
}

static int prepare(sqlite3 *db, const char *sql, GPtrArray *problems, sqlite3_stmt **ret) {
        int rc = sqlite3_prepare_v2(db, sql, -1, ret, NULL);

        if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB) {
                g_ptr_array_add(problems, g_strdup(sqlite3_errmsg(db)));
                return SQLITE_OK;
        }
        return rc;
}

int find_damage(sqlite3 *db, const char *pragma, GPtrArray *problems) {
        g_autofree char *sql = g_strconcat("PRAGMA ", pragma, NULL);
        sqlite3_stmt *statement = NULL;
        int rc = prepare(db, sql, problems, &statement);

        while (statement && sqlite3_step(statement) == SQLITE_ROW) {
                g_autofree char *line = text(statement, 0);

                if (!g_str_equal(line, "ok"))
                        g_ptr_array_add(problems, g_steal_pointer(&line));
        }
        return statement ? end(db, statement, problems) : rc;
}

int find_orphans(sqlite3 *db, GPtrArray *problems) {
        sqlite3_stmt *statement = NULL;
        int rc = prepare(db, "PRAGMA foreign_key_check", problems, &statement), n = 0;

        while (statement && sqlite3_step(statement) == SQLITE_ROW) {
                g_autofree char *table = text(statement, 0), *row = text(statement, 1), *parent = text(statement, 2);

                if (n++ == ORPHANS_MAX) {
                        g_ptr_array_add(problems, g_strdup("more rows refer to missing rows"));
                        break;
                }
                g_ptr_array_add(problems, g_strdup_printf("%s %s of table %s refers to a missing row of table %s",
                                                          *row ? "row" : "a", *row ? row : "row", table, parent));
        }
        return statement ? end(db, statement, problems) : rc;
}
