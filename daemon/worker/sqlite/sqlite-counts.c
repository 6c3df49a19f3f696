/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-counts.h. From top to bottom: the virtual table, the functions, the client, a statement.
 */
#include "daemon/worker/sqlite/sqlite-counts.h"

#include <sqlite3.h>
#include <string.h>

#define COUNTED_MAX 100000

/* ---- the virtual table, which has no rows ---- */

/* The authorizer knows the table by its name, so a database has none of this module with another name. */
static int table_connect(sqlite3 *db, void *userdata, int argc, const char *const *argv, sqlite3_vtab **ret, char **error) {
        int rc = strcmp(argv[2], ACCESS_COUNTS_TABLE) == 0 ? sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY) : SQLITE_ERROR;

        if (rc == SQLITE_OK)
                rc = sqlite3_declare_vtab(db, "CREATE TABLE x(n)");
        *ret = rc == SQLITE_OK ? sqlite3_malloc(sizeof **ret) : NULL;
        if (!*ret)
                return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
        **ret = (sqlite3_vtab) {};
        return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *table) {
        sqlite3_free(table);
        return SQLITE_OK;
}

static int table_plan(sqlite3_vtab *table, sqlite3_index_info *plan) {
        return SQLITE_CONSTRAINT; /* it is not read */
}

/* SQLite counts the row. */
static int table_update(sqlite3_vtab *table, int argc, sqlite3_value **argv, sqlite3_int64 *ret_rowid) {
        return SQLITE_OK;
}

static const sqlite3_module module = {
        .xConnect = table_connect,
        .xDisconnect = table_disconnect,
        .xBestIndex = table_plan,
        .xUpdate = table_update,
};

/* Schema "temp" is empty, except on pins, so SQLite takes no table of the database for it that has the same name. */
static const char count_sql[] =
        "INSERT INTO temp.\"" ACCESS_COUNTS_TABLE "\" WITH RECURSIVE c(n) AS "
        "(SELECT 1 WHERE ?1 > 0 UNION ALL SELECT n + 1 FROM c WHERE n < ?1) SELECT n FROM c";

/* Makes sqlite3_changes64() equal `n`. Returns an SQLite result code. */
static int count(SqliteCounts *k, int64_t n) {
        int rc = SQLITE_OK;

        if (!k->count)
                rc = sqlite3_prepare_v3(k->file, count_sql, -1, SQLITE_PREPARE_PERSISTENT, &k->count, NULL);
        if (rc == SQLITE_OK)
                rc = sqlite3_bind_int64(k->count, 1, n);
        if (rc != SQLITE_OK)
                return rc;
        (void) sqlite3_step(k->count);
        return sqlite3_reset(k->count);
}

/* ---- the functions ---- */

static int64_t counted(const SqliteCounts *k) {
        return sqlite3_total_changes64(k->file) - k->total_before;
}

static void total_changes(sqlite3_context *context, int argc, sqlite3_value **argv) {
        const SqliteCounts *k = sqlite3_user_data(context);

        sqlite3_result_int64(context, k->client.n_total + counted(k));
}

/* `before` is the smaller number. A trigger's statement may have changed as many rows; then so many were counted. */
static void changes(sqlite3_context *context, int argc, sqlite3_value **argv) {
        const SqliteCounts *k = sqlite3_user_data(context);
        int64_t now = sqlite3_changes64(k->file);

        if (k->own || now != k->before)
                sqlite3_result_int64(context, now);
        else if (!k->changing || counted(k) < now)
                sqlite3_result_int64(context, k->client.n_changes);
        else
                sqlite3_result_error(context, "changes() is not known here: call it in a statement of its own before", -1);
}

static int replace(SqliteCounts *k, sqlite3 *db) {
        const int flags = SQLITE_UTF8 | SQLITE_INNOCUOUS; /* as SQLite's own, so schemas may call them */
        int rc = sqlite3_create_function_v2(db, "changes", 0, flags, k, changes, NULL, NULL, NULL);

        if (rc == SQLITE_OK)
                rc = sqlite3_create_function_v2(db, "total_changes", 0, flags, k, total_changes, NULL, NULL, NULL);
        return rc;
}

int sqlite_counts_install(SqliteCounts *k, sqlite3 *file, sqlite3 *db, Access *access, bool writes) {
        int rc;

        *k = (SqliteCounts) { .file = file, .db = db, .access = access, .writes = writes };
        rc = replace(k, file);
        if (rc == SQLITE_OK && db != file)
                rc = replace(k, db);
        if (rc == SQLITE_OK && writes)
                rc = sqlite3_create_module_v2(file, ACCESS_COUNTS_TABLE, &module, NULL, NULL);
        return rc;
}

void sqlite_counts_done(SqliteCounts *k) {
        (void) sqlite3_finalize(k->count);
        k->count = NULL;
}

/* ---- the client ---- */

/* From now on the connection has the numbers of k->client. */
static void begin(SqliteCounts *k) {
        k->before = sqlite3_changes64(k->file);
        k->total_before = sqlite3_total_changes64(k->file);
        k->own = k->before == k->client.n_changes;
        sqlite3_set_last_insert_rowid(k->db, k->client.last_rowid);
        if (k->db != k->file) /* its views are computed there */
                sqlite3_set_last_insert_rowid(k->file, k->client.last_rowid);
}

/* If it fails, the functions still give the numbers of k->client. */
static void count_in_temp(const SqliteCounts *k) {
        static const char format[] =
                "SAVEPOINT \"" ACCESS_COUNTS_TABLE "\"; CREATE TEMP TABLE \"" ACCESS_COUNTS_TABLE "\"(n);"
                "INSERT INTO temp.\"" ACCESS_COUNTS_TABLE "\" WITH RECURSIVE c(n) AS "
                "(SELECT 1 WHERE %lld > 0 UNION ALL SELECT n + 1 FROM c WHERE n < %lld) SELECT n FROM c;"
                "DROP TABLE temp.\"" ACCESS_COUNTS_TABLE "\"; RELEASE \"" ACCESS_COUNTS_TABLE "\"";
        static const char undo[] = "ROLLBACK TO \"" ACCESS_COUNTS_TABLE "\"; RELEASE \"" ACCESS_COUNTS_TABLE "\"";
        char *sql = sqlite3_mprintf(format, (long long) k->client.n_changes, (long long) k->client.n_changes);

        if (sql && sqlite3_exec(k->file, sql, NULL, NULL, NULL) != SQLITE_OK)
                (void) sqlite3_exec(k->file, undo, NULL, NULL, NULL);
        sqlite3_free(sql);
}

void sqlite_counts_enter(SqliteCounts *k, const ClientCounts *counts) {
        k->client = *counts;
        begin(k);
        if (!k->is_pin || k->own || k->client.n_changes > COUNTED_MAX)
                return;
        count_in_temp(k);
        begin(k);
}

/* A statement that does not change rows by itself may do so all the same: DROP TABLE deletes them with foreign keys, and
 * modules write to their tables. */
ClientCounts sqlite_counts_leave(const SqliteCounts *k) {
        int64_t now = sqlite3_changes64(k->file);

        return (ClientCounts) {
                .last_rowid = sqlite3_last_insert_rowid(k->db),
                .n_changes = k->own || now != k->before || counted(k) > 0 ? now : k->client.n_changes,
                .n_total = k->client.n_total + counted(k),
        };
}

/* ---- a statement ---- */

/* Before its first step. Returns an SQLite result code. */
static int put_in_place(SqliteCounts *k, bool changes_rows, bool asks_changes) {
        int64_t n, now = sqlite3_changes64(k->file);
        int rc = SQLITE_OK;

        k->client = sqlite_counts_leave(k);
        n = k->client.n_changes;
        if (changes_rows && !asks_changes)
                n = now > 0 ? now : 1;
        else if (n > COUNTED_MAX)
                n = COUNTED_MAX;
        if (n != now)
                rc = count(k, n);
        begin(k);
        return rc;
}

/* A statement that could not be compiled again has not run, and has set nothing. */
static int step(SqliteCounts *k, sqlite3_stmt *stmt, bool changes_rows) {
        int n_runs = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_RUN, 0), rc;

        k->changing = true;
        rc = access_step(k->access, stmt);
        k->changing = false;
        k->own = k->own || (changes_rows && sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_RUN, 0) != n_runs);
        return rc;
}

int sqlite_counts_step(SqliteCounts *k, sqlite3_stmt *stmt, bool changes_rows, bool asks_changes) {
        int rc = SQLITE_OK;

        if (!k->writes || k->own || k->is_pin || sqlite3_stmt_readonly(stmt))
                return access_step(k->access, stmt);
        if (!sqlite3_stmt_busy(stmt))
                rc = put_in_place(k, changes_rows, asks_changes);
        return rc == SQLITE_OK ? step(k, stmt, changes_rows) : rc;
}
