/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See watched-tables.h.
 */
#include "daemon/worker/sqlite/watched-tables.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define KIND_OF_TABLE "SELECT type FROM pragma_table_list(?1) WHERE schema = 'main'"

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static bool add_all(EngineTables *to, const EngineTables *from, SqlError *error) {
        for (size_t i = 0; i < from->n; i++)
                if (engine_tables_add(to, from->names[i]) < 0)
                        return out_of_memory(error);
        return true;
}

/* ---- the names that the client may see ---- */

static bool add_statement(StatementCache *cache, const char *sql, size_t sql_size, EngineTables *names, SqlError *error) {
        EngineTables read, written;
        SqliteStatement *s;
        bool ok;

        if (!statement_cache_compile(cache, sql, sql_size, NULL, &s, error))
                return false;
        if (!sqlite3_stmt_readonly(s->stmt)) { /* clients run it again after each change */
                sqlite_statement_release(s);
                return sql_error_set(error, ERROR_NOT_ALLOWED, "a statement that writes cannot be watched: give its tables");
        }
        ok = sqlite_statement_tables(s, &read, &written, error);
        sqlite_statement_release(s);
        if (!ok)
                return false;
        ok = add_all(names, &read, error);
        engine_tables_done(&read);
        engine_tables_done(&written);
        return ok;
}

/* All columns, so that SQLite resolves each name in a view. */
static char *select_all(const char *name) {
        return sqlite3_mprintf("SELECT * FROM \"%w\"", name);
}

static bool add_table(StatementCache *cache, const char *name, EngineTables *names, SqlError *error) {
        char *sql = select_all(name);
        bool ok = sql ? add_statement(cache, sql, strlen(sql), names, error) : out_of_memory(error);

        sqlite3_free(sql);
        return ok;
}

static bool find_names(StatementCache *cache, const char *sql, size_t sql_size, bool names, EngineTables *ret,
                       SqlError *error) {
        const char *end = sql + sql_size;
        bool ok = true;

        if (!names)
                return add_statement(cache, sql, sql_size, ret, error);
        for (const char *name = sql; ok && name < end; name += strlen(name) + 1)
                ok = add_table(cache, name, ret, error);
        return ok;
}

/* ---- the tables of the file ---- */

/* Of an exposed table or view. The file's connection compiles this as the worker's own SQL. */
static bool add_exposed(SqliteConnection *c, const char *name, EngineTables *tables, SqlError *error) {
        AccessTables found = {};
        sqlite3_stmt *stmt = NULL;
        char *sql = select_all(name);
        bool ok = sql != NULL;

        c->file_access.tables = &found;
        if (ok && sqlite3_prepare_v2(c->file, sql, -1, &stmt, NULL) != SQLITE_OK)
                ok = false;
        c->file_access.tables = NULL;
        (void) sqlite3_finalize(stmt);
        sqlite3_free(sql);
        ok = ok && !found.failed && add_all(tables, &found.read, error);
        engine_tables_done(&found.read);
        engine_tables_done(&found.written);
        return ok;
}

/* 1: a change of the table is named; 0: it is no table of the file; -1: any change may matter. */
static int kind_of(SqliteConnection *c, sqlite3_stmt *stmt, const char *name) {
        const char *type;
        int kind = -1;

        if (sqlite3_strnicmp(name, "sqlite_", strlen("sqlite_")) == 0)
                return -1;
        (void) sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
        switch (sqlite3_step(stmt)) {
        case SQLITE_ROW:
                type = (const char *) sqlite3_column_text(stmt, 0);
                kind = type && (strcmp(type, "table") == 0 || strcmp(type, "view") == 0) ? 1 : -1;
                break;
        case SQLITE_DONE:
                kind = 0;
                break;
        default:
                break;
        }
        (void) sqlite3_reset(stmt);
        return kind;
}

static bool keep_named(SqliteConnection *c, EngineTables *tables) {
        bool any;
        sqlite3_stmt *stmt = NULL;
        size_t n = 0;

        any = sqlite3_prepare_v2(c->file, KIND_OF_TABLE, -1, &stmt, NULL) != SQLITE_OK;
        for (size_t i = 0; i < tables->n; i++) {
                int kind = any ? 0 : kind_of(c, stmt, tables->names[i]);

                any = any || kind < 0;
                if (kind > 0)
                        tables->names[n++] = tables->names[i];
                else
                        free(tables->names[i]);
        }
        tables->n = n;
        (void) sqlite3_finalize(stmt);
        return !any;
}

static void follow(SqliteConnection *c, EngineWatched *w) {
        SqlError error = SQL_ERROR_INIT;
        bool ok = true;

        for (size_t i = 0; ok && i < w->names.n; i++)
                ok = c->exposed ? add_exposed(c, w->names.names[i], &w->tables, &error)
                                : engine_tables_add(&w->tables, w->names.names[i]) == 0;
        sql_error_done(&error);
        ok = ok && keep_named(c, &w->tables);
        if (!ok)
                engine_tables_done(&w->tables);
}

bool watched_tables_find(StatementCache *cache, const char *sql, size_t sql_size, bool names, EngineWatched *ret,
                         SqlError *error) {
        EngineWatched w = {};

        if (!find_names(cache, sql, sql_size, names, &w.names, error)) {
                engine_tables_done(&w.names);
                return false;
        }
        follow(cache->connection, &w);
        *ret = w;
        return true;
}
