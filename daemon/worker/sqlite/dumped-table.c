/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See dumped-table.h. SQLITE_DBCONFIG_DEFENSIVE is off only while the row for sqlite_schema is inserted, whose
 * SQL is made here, and while the number of the schema is set.
 */
#include "daemon/worker/sqlite/dumped-table.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/sqlite/sqlite-connection.h"
#include "daemon/worker/sqlite/trusted-schema.h"

struct DumpedTable {
        DumpedTable *next;
        char module[64];
        char *create; /* points behind the name */
        char name[];
};

typedef struct DumpLine {
        char *name, *create; /* owned */
        const char *tail;
} DumpLine;

/* ---- the statement ---- */

static bool skip(const char **sql, const char *text) {
        size_t n = strlen(text);

        if (strncmp(*sql, text, n) != 0)
                return false;
        *sql += n;
        return true;
}

/* Moves past a literal. Returns its end, without the quote; NULL: there is none. */
static const char *skip_literal(const char **sql) {
        const char *end = **sql == '\'' ? strchr(*sql + 1, '\'') : NULL;

        while (end && end[1] == '\'')
                end = strchr(end + 2, '\'');
        if (end)
                *sql = end + 1;
        return end;
}

/* The caller frees it. NULL: no memory. */
static char *read_literal(const char *literal, const char *end) {
        char *text = malloc((size_t) (end - literal)), *to = text;

        for (const char *from = literal + 1; text && from < end; from += *from == '\'' ? 2 : 1)
                *to++ = *from;
        if (text)
                *to = 0;
        return text;
}

/* sqlite3 before 3.33 writes sqlite_master. */
static bool skip_to_values(const char **sql) {
        return (skip(sql, "INSERT INTO sqlite_schema") || skip(sql, "INSERT INTO sqlite_master")) &&
               skip(sql, "(type,name,tbl_name,rootpage,sql)VALUES('table',");
}

/* *ret may be NULL: then the line is only looked at. False: it is another statement, or there is no memory. */
static bool read_line(const char *sql, DumpLine *ret) {
        const char *name, *name_end, *again, *again_end, *create, *create_end;

        if (!skip_to_values(&sql))
                return false;
        name = sql;
        name_end = skip_literal(&sql);
        if (!name_end || !skip(&sql, ","))
                return false;
        again = sql;
        again_end = skip_literal(&sql);
        if (!again_end || again_end - again != name_end - name || memcmp(name, again, (size_t) (name_end - name)) != 0 ||
            !skip(&sql, ",0,"))
                return false;
        create = sql;
        create_end = skip_literal(&sql);
        if (!create_end || !skip(&sql, ")"))
                return false;
        sql += strspn(sql, " \t\r\n");
        if (*sql && *sql != ';')
                return false;
        if (!ret)
                return true;
        *ret = (DumpLine) { .name = read_literal(name, name_end), .create = read_literal(create, create_end), .tail = sql };
        return ret->name && ret->create;
}

bool dumped_table_is(const char *sql) {
        return read_line(sql, NULL);
}

/* ---- the row of sqlite_schema ---- */

static bool fail_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static bool refuse_other_row(const DumpLine *line, SqlError *error) {
        return sql_error_set(error, ERROR_NOT_ALLOWED,
                             "a direct change of sqlite_schema is not allowed: of a dump, only the row of a virtual table "
                             "with its CREATE VIRTUAL TABLE is taken, and that of \"%s\" is another", line->name);
}

/* Compiles the CREATE VIRTUAL TABLE, by which SQLite finds if the name is free. Sets access.created.module. */
static bool check_create(SqliteConnection *c, const DumpLine *line, SqlError *error) {
        static const char begin[] = "CREATE VIRTUAL TABLE ";
        sqlite3_stmt *stmt;
        const char *tail;
        int rc;

        c->access.created = (AccessCreated) { .name = line->name };
        rc = sqlite3_prepare_v2(c->db, line->create, -1, &stmt, &tail);
        c->access.created.name = NULL;
        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        (void) sqlite3_finalize(stmt);
        if (!access_may_change(&c->access))
                return sqlite_connection_fail(c, SQLITE_AUTH, 0, error);
        return (strncmp(line->create, begin, strlen(begin)) == 0 && !*tail && c->access.created.module[0]) ||
               refuse_other_row(line, error);
}

/* SQLite looks for the module only when it runs the CREATE VIRTUAL TABLE. */
static bool check_module(SqliteConnection *c, SqlError *error) {
        const char *module = c->access.created.module;
        sqlite3_stmt *stmt = NULL;
        bool found;

        if (sqlite3_prepare_v2(c->db, "SELECT 1 FROM pragma_module_list WHERE name = ?1 COLLATE NOCASE", -1, &stmt, NULL) !=
            SQLITE_OK)
                return fail_memory(error);
        (void) sqlite3_bind_text(stmt, 1, module, -1, SQLITE_STATIC);
        found = sqlite3_step(stmt) == SQLITE_ROW;
        (void) sqlite3_finalize(stmt);
        return found || sql_error_set(error, ERROR_MISSING_MODULE, "no such module: %s", module);
}

static void set_defensive(SqliteConnection *c, bool on) {
        (void) sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, on, NULL);
        (void) sqlite3_db_config(c->db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, !on, NULL);
}

static bool compile_row(SqliteConnection *c, const DumpLine *line, sqlite3_stmt **ret, SqlError *error) {
        char *sql = sqlite3_mprintf("INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table',%Q,%Q,0,%Q)",
                                    line->name, line->name, line->create);
        int rc;

        if (!sql)
                return fail_memory(error);
        set_defensive(c, false);
        rc = sqlite3_prepare_v2(c->db, sql, -1, ret, NULL);
        set_defensive(c, true);
        sqlite3_free(sql);
        access_forget(&c->access);
        c->access.changes = c->access.changes_schema = true;
        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

static bool is_noted(const SqliteConnection *c, const DumpLine *line) {
        for (const DumpedTable *table = c->dumped; table; table = table->next)
                if (strcmp(table->name, line->name) == 0 && strcmp(table->create, line->create) == 0)
                        return true;
        return false;
}

/* A connection that reads only finds by the compile that the statement writes. */
static bool note(SqliteConnection *c, const DumpLine *line, SqlError *error) {
        size_t name_size = strlen(line->name) + 1, create_size = strlen(line->create) + 1;
        DumpedTable *table;

        if (!c->writes || is_noted(c, line))
                return true;
        table = malloc(sizeof *table + name_size + create_size);
        if (!table)
                return fail_memory(error);
        table->next = c->dumped;
        (void) memcpy(table->module, c->access.created.module, sizeof table->module);
        (void) memcpy(table->name, line->name, name_size);
        table->create = memcpy(table->name + name_size, line->create, create_size);
        c->dumped = table;
        c->access.keeps_names = true;
        return true;
}

bool dumped_table_compile(SqliteConnection *c, const char *sql, sqlite3_stmt **ret, const char **ret_tail, SqlError *error) {
        DumpLine line = {};
        bool ok = read_line(sql, &line) || fail_memory(error);

        ok = ok && check_create(c, &line, error) && check_module(c, error) && note(c, &line, error) &&
             compile_row(c, &line, ret, error);
        *ret_tail = line.tail;
        free(line.name);
        free(line.create);
        return ok;
}

/* SQLite compiles it again, because the settings were others meanwhile. */
int dumped_table_step(SqliteConnection *c, sqlite3_stmt *stmt) {
        int rc;

        set_defensive(c, false);
        rc = access_step(&c->access, stmt);
        set_defensive(c, true);
        return rc;
}

void dumped_tables_forget(SqliteConnection *c) {
        c->access.keeps_names = false;
        while (c->dumped) {
                DumpedTable *table = c->dumped;

                c->dumped = table->next;
                free(table);
        }
}

/* ---- the check ---- */

/* Sets *ret to the first column of the first row; there may be none. Frees `sql`, which may be NULL: no memory. Returns an
 * SQLite result code. */
static int ask(SqliteConnection *c, char *sql, char **ret) {
        sqlite3_stmt *stmt = NULL;
        int rc = sql ? sqlite3_prepare_v2(c->file, sql, -1, &stmt, NULL) : SQLITE_NOMEM;

        sqlite3_free(sql);
        if (rc != SQLITE_OK)
                return rc;
        if (sqlite3_step(stmt) == SQLITE_ROW && ret) {
                *ret = sqlite3_mprintf("%s", sqlite3_column_text(stmt, 0));
                rc = *ret ? SQLITE_OK : SQLITE_NOMEM;
        }
        return sqlite3_finalize(stmt) ?: rc;
}

/* Has this connection, and those of all programs, read the schema again. The authorizer would refuse these PRAGMAs. */
static int read_schema_again(SqliteConnection *c) {
        char *version = NULL;
        int rc;

        access_pause(c->file, &c->access, true);
        set_defensive(c, false);
        rc = ask(c, sqlite3_mprintf("PRAGMA main.schema_version"), &version);
        if (rc == SQLITE_OK)
                rc = ask(c, sqlite3_mprintf("PRAGMA main.schema_version = %d", atoi(version ? version : "0") + 1), NULL);
        if (rc == SQLITE_OK)
                rc = ask(c, sqlite3_mprintf("PRAGMA writable_schema = RESET"), NULL);
        set_defensive(c, true);
        access_pause(c->file, &c->access, false);
        sqlite3_free(version);
        return rc;
}

/* The R-Tree and its tables have the same rows, each of which is found by its rowid, and each node but the root has a
 * parent. A column may have the name "rowid", but the first one is the rowid. */
static int check_boxes(SqliteConnection *c, const DumpedTable *table, char **found) {
        const char *name = table->name;
        char *id = NULL;
        int rc = ask(c, sqlite3_mprintf("SELECT iif(lower(%Q) = 'geopoly', 'rowid', name) "
                                        "FROM pragma_table_info(%Q, 'main') WHERE cid = 0", table->module, name), &id);

        if (rc == SQLITE_OK)
                rc = ask(c, sqlite3_mprintf(
                        "SELECT 1 WHERE (SELECT count(*) FROM main.\"%w\") <> (SELECT count(*) FROM main.\"%w_rowid\") "
                        "OR (SELECT count(*) FROM main.\"%w_node\") <> 1 + (SELECT count(*) FROM main.\"%w_parent\") "
                        "OR EXISTS (SELECT 1 FROM main.\"%w_rowid\" AS r WHERE NOT EXISTS "
                        "(SELECT 1 FROM main.\"%w\" AS t WHERE t.\"%w\" = r.rowid))",
                        name, name, name, name, name, name, id ? id : "rowid"), found);
        sqlite3_free(id);
        return rc;
}

static bool has_module(const DumpedTable *table, const char *module) {
        return sqlite3_stricmp(table->module, module) == 0;
}

/* Sets *found if something is wrong for which SQLite has no code. */
static int check(SqliteConnection *c, const DumpedTable *table, char **found) {
        const char *name = table->name;

        if (has_module(table, "fts5") || has_module(table, "fts4") || has_module(table, "fts3"))
                return ask(c, sqlite3_mprintf("INSERT INTO main.\"%w\"(\"%w\") VALUES('integrity-check')", name, name),
                           NULL);
        if (has_module(table, "rtree") || has_module(table, "rtree_i32") || has_module(table, "geopoly"))
                return check_boxes(c, table, found);
        return ask(c, sqlite3_mprintf("SELECT 1 FROM main.\"%w\" LIMIT 0", name), NULL); /* it can be connected */
}

/* ---- the tables of its content ---- */

/* Nothing else may belong to such a table: a trigger, a view or a foreign key would change the content later, in spite of
 * DEFENSIVE. */
static int compare_object(SqliteConnection *c, sqlite3_stmt *made, char **found) {
        const char *name = (const char *) sqlite3_column_text(made, 0), *sql = (const char *) sqlite3_column_text(made, 1);

        if (!name || !sql)
                return SQLITE_NOMEM;
        return ask(c, sqlite3_mprintf(
                "SELECT 1 WHERE 1 <> (SELECT count(*) FROM main.sqlite_schema WHERE tbl_name = %Q COLLATE NOCASE AND "
                "sql IS NOT NULL) OR 1 <> (SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = %Q AND "
                "sql = %Q)", name, name, sql), found);
}

/* Makes the table in memory, to compare the schema. */
static int make_in_memory(const DumpedTable *table, sqlite3 **ret) {
        int rc = sqlite3_open_v2(":memory:", ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

        if (rc == SQLITE_OK)
                rc = trusted_schema_set_up(*ret);
        return rc == SQLITE_OK ? sqlite3_exec(*ret, table->create, NULL, NULL, NULL) : rc;
}

static int check_tables(SqliteConnection *c, const DumpedTable *table, char **found) {
        static const char sql[] = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND rootpage <> 0";
        sqlite3_stmt *made = NULL;
        sqlite3 *memory = NULL;
        int rc = make_in_memory(table, &memory);

        if (rc == SQLITE_OK)
                rc = sqlite3_prepare_v2(memory, sql, -1, &made, NULL);
        while (rc == SQLITE_OK && !*found && (rc = sqlite3_step(made)) == SQLITE_ROW)
                rc = compare_object(c, made, found);
        (void) sqlite3_finalize(made);
        (void) sqlite3_close(memory);
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The row may not have been inserted, or may have been taken back with a savepoint. */
static int exists(SqliteConnection *c, const DumpedTable *table, bool *ret) {
        char *found = NULL;
        int rc = ask(c, sqlite3_mprintf("SELECT 1 FROM main.sqlite_schema "
                                        "WHERE name = %Q AND type = 'table' AND rootpage = 0", table->name), &found);

        *ret = found;
        sqlite3_free(found);
        return rc;
}

static bool check_table(SqliteConnection *c, const DumpedTable *table, SqlError *error) {
        char *found = NULL;
        bool is_there = false;
        int rc = exists(c, table, &is_there);

        if (rc == SQLITE_OK && is_there)
                rc = check_tables(c, table, &found);
        if (rc == SQLITE_OK && is_there && !found)
                rc = check(c, table, &found);
        if (rc == SQLITE_OK && found)
                rc = SQLITE_CORRUPT_VTAB;
        sqlite3_free(found);
        if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_ERROR) {
                (void) sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "the virtual table \"%s\" of this dump does not pass its integrity-check, so nothing "
                                     "was written", table->name);
                error->extended_code = SQLITE_CORRUPT_VTAB;
                return false;
        }
        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

/* A rollback after this would not have SQLite forget the schema that it has read here, so the connection is closed after the
 * transaction. A commit that is tried again is not checked again. */
bool dumped_tables_check(SqliteConnection *c, SqlError *error) {
        const DumpedTable *table = c->dumped;
        int rc;

        if (!table)
                return true;
        c->doubtful = true;
        rc = read_schema_again(c);
        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        while (table && check_table(c, table, error))
                table = table->next;
        if (!table)
                dumped_tables_forget(c);
        return !table;
}
