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

struct DumpedTable {
        DumpedTable *next;
        char module[64];
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

static bool note(SqliteConnection *c, const DumpLine *line, SqlError *error) {
        size_t size = strlen(line->name) + 1;
        DumpedTable *table = malloc(sizeof *table + size);

        if (!table)
                return fail_memory(error);
        table->next = c->dumped;
        (void) memcpy(table->module, c->access.created.module, sizeof table->module);
        (void) memcpy(table->name, line->name, size);
        c->dumped = table;
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
        while (c->dumped) {
                DumpedTable *table = c->dumped;

                c->dumped = table->next;
                free(table);
        }
}

/* ---- the check ---- */

/* Sets *ret to the first column of the first row; there may be none. Frees `sql`, which
 * may be NULL: no memory. Returns an SQLite result code. */
static int ask(SqliteConnection *c, char *sql, char **ret) {
        sqlite3_stmt *stmt = NULL;
        int rc = sql ? sqlite3_prepare_v2(c->file, sql, -1, &stmt, NULL) : SQLITE_NOMEM;

        sqlite3_free(sql);
        if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW && ret)
                *ret = sqlite3_mprintf("%s", sqlite3_column_text(stmt, 0));
        return rc == SQLITE_OK ? sqlite3_finalize(stmt) : rc;
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

/* The R-Tree and its tables have the same rows; each row is found by its rowid, and by its box; each node but the root has a
 * parent. A coordinate has a type, and other columns have none. */
static int check_boxes(SqliteConnection *c, const char *name, char **found) {
        char *boxes = NULL;
        int rc = ask(c, sqlite3_mprintf(
                "SELECT 1 WHERE (SELECT count(*) FROM main.\"%w\") <> (SELECT count(*) FROM main.\"%w_rowid\") "
                "OR (SELECT count(*) FROM main.\"%w_node\") <> 1 + (SELECT count(*) FROM main.\"%w_parent\") "
                "OR EXISTS (SELECT 1 FROM main.\"%w_rowid\" AS r WHERE NOT EXISTS "
                "(SELECT 1 FROM main.\"%w\" AS t WHERE t.rowid = r.rowid))", name, name, name, name, name, name), found);

        if (rc == SQLITE_OK && !*found)
                rc = ask(c, sqlite3_mprintf(
                        "SELECT group_concat(printf(' AND b.\"%%w\" %%s a.\"%%w\"', "
                        "name, iif(cid %% 2, '<=', '>='), name), '') "
                        "FROM pragma_table_info(%Q) WHERE cid > 0 AND type IN ('REAL', 'INT')", name), &boxes);
        if (rc == SQLITE_OK && boxes)
                rc = ask(c, sqlite3_mprintf(
                        "SELECT 1 FROM main.\"%w\" AS a WHERE NOT EXISTS "
                        "(SELECT 1 FROM main.\"%w\" AS b WHERE +b.rowid = a.rowid%s)", name, name, boxes), found);
        sqlite3_free(boxes);
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
                return check_boxes(c, name, found);
        return ask(c, sqlite3_mprintf("SELECT 1 FROM main.\"%w\" LIMIT 1", name), NULL);
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

bool dumped_tables_check(SqliteConnection *c, SqlError *error) {
        const DumpedTable *table = c->dumped;
        int rc = table ? read_schema_again(c) : SQLITE_OK;

        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        while (table && check_table(c, table, error))
                table = table->next;
        return !table;
}
