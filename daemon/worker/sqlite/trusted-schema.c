/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See trusted-schema.h.
 */
#include "daemon/worker/sqlite/trusted-schema.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/exposed/exposed-collation.h"
#include "daemon/worker/exposed/exposed-table.h"
#include "daemon/worker/sqlite/access.h"

/* SQLite does not flag these as innocuous, but all that they do is to compute. Those of FTS and R-Tree need a row of such a
 * table, or the bytes of a node. Not listed: rtreecheck(), which reads the tables that it is told; and load_extension() and
 * fts3_tokenizer(), which are SQLITE_DIRECTONLY. */
static const char *const harmless[] = {
        "->", "->>", "bm25", "fts5", "fts5_source_id", "highlight", "json", "json_array", "json_array_length",
        "json_extract", "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch", "json_quote",
        "json_remove", "json_replace", "json_set", "json_type", "json_valid", "match", "matchinfo", "offsets",
        "optimize", /* refused by access.c wherever it has a table to write to */
        "rtreedepth", "rtreenode", "snippet",
};

/* Those of SQLite itself that read and write only the database, and those of the service: of the exposed connection, and of
 * sqlite-counts.h, which no schema and no client can use. dbstat is SQLITE_VTAB_DIRECTONLY. Not listed: sqlite_stmt and
 * bytecode, which show the SQL of other sessions, and sqlite_dbpage. */
static const char *modules[] = {
        "dbstat", "fts3", "fts3tokenize", "fts4", "fts4aux", "fts5", "fts5vocab", "geopoly", "json_each", "json_tree",
        "jsonb_each", "jsonb_tree", "rtree", "rtree_i32", EXPOSED_MODULE, EXPOSED_COLLATION_MODULE,
        ACCESS_COUNTS_TABLE, NULL,
};

/* The functions of this SQLite that must be replaced. A worker has one thread, and the functions of a new connection are
 * always the same, so SQLite is asked once. */
static struct {
        bool known;
        size_t n;
        struct {
                char *name;
                int n_arguments;
        } *list;
} replaced;

static bool is_harmless(const char *name) {
        for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
                if (sqlite3_stricmp(harmless[i], name) == 0)
                        return true;
        return false;
}

static void fail(sqlite3_context *context, int n, sqlite3_value **values) {
        (void) n;
        (void) values;
        sqlite3_result_error(context, "the service does not have this function", -1);
}

static int add(const char *name, int n_arguments) {
        void *list = reallocarray(replaced.list, replaced.n + 1, sizeof *replaced.list);

        if (!list)
                return SQLITE_NOMEM;
        replaced.list = list;
        replaced.list[replaced.n].n_arguments = n_arguments;
        replaced.list[replaced.n].name = name ? strdup(name) : NULL;
        if (!replaced.list[replaced.n].name)
                return SQLITE_NOMEM;
        replaced.n++;
        return SQLITE_OK;
}

/* Columns: name, builtin, type, enc, narg, flags. */
static int find_functions(sqlite3 *db) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, "PRAGMA function_list", -1, &stmt, NULL), failed = SQLITE_OK;

        if (rc != SQLITE_OK)
                return rc;
        while (replaced.n > 0) /* of an attempt that has failed */
                free(replaced.list[--replaced.n].name);
        while (failed == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
                const char *name = (const char *) sqlite3_column_text(stmt, 0);

                if (!name)
                        failed = SQLITE_NOMEM;
                else if (!(sqlite3_column_int(stmt, 5) & (SQLITE_INNOCUOUS | SQLITE_DIRECTONLY)) && !is_harmless(name))
                        failed = add(name, sqlite3_column_int(stmt, 4));
        }
        rc = sqlite3_finalize(stmt);
        replaced.known = rc == SQLITE_OK && failed == SQLITE_OK;
        return rc == SQLITE_OK ? failed : rc;
}

/* A function with the same number of arguments takes the place of SQLite's. */
int trusted_schema_set_up(sqlite3 *db) {
        int rc = replaced.known ? SQLITE_OK : find_functions(db);

        for (size_t i = 0; rc == SQLITE_OK && i < replaced.n; i++)
                rc = sqlite3_create_function_v2(db, replaced.list[i].name, replaced.list[i].n_arguments,
                                                SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, fail, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
                rc = sqlite3_drop_modules(db, modules);
        return rc == SQLITE_OK ? sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL) : rc;
}
