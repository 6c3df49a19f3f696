/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See shadow-schema.h.
 */
#include "daemon/worker/rqlite/shadow-schema.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define CREATE_OPCODES_MAX 1000000 /* a table of full-text search takes some thousands */

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

/* ---- life ---- */

/* Makes what sqlite_connection_look() steps. */
static int prepare_probe(SqliteConnection *c) {
        return sqlite3_prepare_v2(c->file, "SELECT 1 FROM sqlite_schema LIMIT 1", -1, &c->probe, NULL);
}

static int open_database(SqliteConnection *c, const Setup *setup) {
        sqlite3 *db;
        int rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

        *c = (SqliteConnection) { .setup = setup, .db = db, .file = db, .writes = setup->writes };
        if (rc == SQLITE_OK)
                rc = sqlite3_extended_result_codes(db, 1);
        if (rc == SQLITE_OK)
                rc = access_install(db, setup, &c->access);
        if (rc == SQLITE_OK)
                rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, setup->writes && setup->foreign_keys, NULL);
        c->access.is_shadow = true;
        return rc == SQLITE_OK ? prepare_probe(c) : rc;
}

bool shadow_schema_new(const Setup *setup, int64_t version, ShadowSchema **ret, SqlError *error) {
        ShadowSchema *s = calloc(1, sizeof *s);

        if (!s)
                return out_of_memory(error);
        s->version = version;
        s->n_references = 1;
        statement_cache_init(&s->cache, &s->sqlite);
        if (open_database(&s->sqlite, setup) != SQLITE_OK) {
                (void) shadow_schema_unref(s);
                return out_of_memory(error);
        }
        *ret = s;
        return true;
}

ShadowSchema *shadow_schema_ref(ShadowSchema *s) {
        s->n_references++;
        return s;
}

ShadowSchema *shadow_schema_unref(ShadowSchema *s) {
        if (!s || --s->n_references > 0)
                return NULL;
        statement_cache_clear(&s->cache);
        (void) sqlite3_finalize(s->sqlite.probe);
        (void) sqlite3_close(s->sqlite.db);
        engine_tables_done(&s->missing);
        free(s);
        return NULL;
}

/* ---- objects ---- */

/* SQLite makes these tables itself, the statistics when it is asked to. */
static int add_system_table(sqlite3 *db, const char *name) {
        return strncmp(name, "sqlite_stat", strlen("sqlite_stat")) == 0 ? sqlite3_exec(db, "ANALYZE", NULL, NULL, NULL)
                                                                       : SQLITE_OK;
}

static bool exists(sqlite3 *db, const char *name) {
        sqlite3_stmt *stmt = NULL;
        bool found = sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema WHERE name = ?1", -1, &stmt, NULL) == SQLITE_OK &&
                     sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;

        (void) sqlite3_finalize(stmt);
        return found;
}

static int stop(void *userdata) {
        (void) userdata;
        return 1;
}

/* The server is not trusted: the text must be one statement that makes an object, and no work. */
static int create(sqlite3 *db, const char *sql) {
        sqlite3_stmt *stmt = NULL;
        const char *tail = NULL;
        int rc = sqlite3_strnicmp(sql, "CREATE ", strlen("CREATE ")) == 0
                         ? sqlite3_prepare_v2(db, sql, -1, &stmt, &tail)
                         : SQLITE_ERROR;

        if (rc == SQLITE_OK && tail && *tail)
                rc = SQLITE_ERROR;
        sqlite3_progress_handler(db, CREATE_OPCODES_MAX, stop, NULL);
        if (rc == SQLITE_OK)
                (void) sqlite3_step(stmt);
        if (rc == SQLITE_OK)
                rc = sqlite3_reset(stmt);
        sqlite3_progress_handler(db, 0, NULL, NULL);
        (void) sqlite3_finalize(stmt);
        return rc;
}

/* The authorizer is the one for clients, but these are statements of ours: the server's schema was allowed by the server.
 * A virtual table makes tables of its own, so some of the rows say what is there already. */
bool shadow_schema_add(ShadowSchema *s, const char *name, const char *sql, SqlError *error) {
        sqlite3 *db = s->sqlite.db;
        int rc = SQLITE_OK;

        if (strncmp(name, "sqlite_", strlen("sqlite_")) == 0)
                rc = add_system_table(db, name);
        else if (sql && !exists(db, name))
                rc = create(db, sql);
        if ((rc & 0xff) == SQLITE_NOMEM)
                return out_of_memory(error);
        return rc == SQLITE_OK || engine_tables_add(&s->missing, name) == 0 || out_of_memory(error);
}

/* ---- compiles ---- */

/* The end of a message like "no such table: main.words". */
static bool is_about(const char *message, const char *name) {
        const char *subject = strstr(message, ": ");
        size_t size = strlen(name), message_size = strlen(message);

        return subject && message_size >= size && sqlite3_stricmp(message + message_size - size, name) == 0 &&
               (message[message_size - size - 1] == ' ' || message[message_size - size - 1] == '.');
}

/* The server has this table, although it could not be made here: "no such table" would be misleading. */
static bool explain(const ShadowSchema *s, SqlError *error) {
        for (size_t i = 0; i < s->missing.n && error->error == ERROR_SQL && error->message; i++)
                if (is_about(error->message, s->missing.names[i]))
                        return sql_error_set(
                                error, ERROR_MISSING_MODULE,
                                "\"%s\" needs a module, function or syntax that the service's SQLite %s lacks",
                                s->missing.names[i], sqlite3_libversion());
        return false;
}

/* Nodes do not enforce foreign keys unless they were started so, and a table or key that one refers to may be missing.
 * SQLite compiles a statement that writes only if it exists, or if keys are not enforced. Leaves the error as it was if that
 * is not the reason. */
static bool compile_without_keys(ShadowSchema *s, const char *sql, size_t sql_size, CompiledStatement *ret,
                                 SqlError *error) {
        SqlError other = SQL_ERROR_INIT;
        int enforced = 0;
        bool ok;

        (void) sqlite3_db_config(s->sqlite.db, SQLITE_DBCONFIG_ENABLE_FKEY, -1, &enforced);
        if (!enforced || error->error != ERROR_SQL)
                return false;
        (void) sqlite3_db_config(s->sqlite.db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
        ok = sqlite_compile(&s->sqlite, sql, sql_size, ret, &other);
        (void) sqlite3_db_config(s->sqlite.db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
        sql_error_done(ok ? error : &other);
        return ok;
}

bool shadow_schema_compile(ShadowSchema *s, const char *sql, size_t sql_size, CompiledStatement *ret, SqlError *error) {
        return sqlite_compile(&s->sqlite, sql, sql_size, ret, error) ||
               compile_without_keys(s, sql, sql_size, ret, error) || explain(s, error);
}

/* ---- keys ---- */

/* Counts the columns of the key of `table`, and those that `columns` names. */
bool shadow_schema_is_primary_key(ShadowSchema *s, const char *columns) {
        const char *dot = strchr(columns, '.');
        sqlite3_stmt *stmt = NULL;
        unsigned n = 1, n_key = 0, n_named = 0;

        if (!dot)
                return false;
        for (const char *at = columns; (at = strstr(at, ", ")); at += 2)
                n++;
        if (sqlite3_prepare_v2(s->sqlite.db,
                               "SELECT name FROM pragma_table_info(?1) WHERE pk > 0", -1, &stmt, NULL) == SQLITE_OK &&
            sqlite3_bind_text(stmt, 1, columns, (int) (dot - columns), SQLITE_STATIC) == SQLITE_OK)
                while (sqlite3_step(stmt) == SQLITE_ROW) {
                        char *full = sqlite3_mprintf(", %.*s.%s, ", (int) (dot - columns), columns,
                                                     (const char *) sqlite3_column_text(stmt, 0));
                        char *all = sqlite3_mprintf(", %s, ", columns);

                        n_key++;
                        n_named += full && all && strstr(all, full);
                        sqlite3_free(full);
                        sqlite3_free(all);
                }
        (void) sqlite3_finalize(stmt);
        return n_key == n && n_named == n;
}
