/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-compile.h. The size that SQLite is given includes the NUL after the SQL: then it compiles in
 * place, without a copy.
 */
#include "daemon/worker/sqlite/sqlite-compile.h"

#include <sqlite3.h>

#include "daemon/worker/core/compile-limit.h"

/* True if anything except white space, comments and semicolons follows: SQLite finds a statement or an error in it. */
static bool has_more(sqlite3 *db, const char *sql, const char *end) {
        while (sql < end) {
                sqlite3_stmt *stmt = NULL;
                const char *tail = end;
                int rc = sqlite3_prepare_v3(db, sql, (int) (end - sql) + 1, 0, &stmt, &tail);

                (void) sqlite3_finalize(stmt);
                if (rc != SQLITE_OK || stmt)
                        return true;
                if (tail <= sql)
                        break;
                sql = tail;
        }
        return false;
}

static bool check_compiled(SqliteConnection *c, sqlite3_stmt *stmt, const char *tail, const char *end, SqlError *error) {
        if (!stmt)
                return sql_error_set(error, ERROR_EMPTY_STATEMENT,
                                     "there is no statement in this SQL, only space or comments");
        if (c->exposed && sqlite3_stmt_isexplain(stmt))
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "EXPLAIN is not allowed where Expose= publishes a part of the database");
        if (!access_only_reads(&c->access, stmt))
                return sql_error_set(
                        error, ERROR_READ_ONLY,
                        "this statement writes, and the database is shared read-only: write as the program that owns it");
        if (has_more(c->db, tail, end))
                return sql_error_set(error, ERROR_SEVERAL_STATEMENTS,
                                     "there is more than one statement in this SQL: send them one by one");
        if (sqlite3_column_count(stmt) == 0)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "this statement returns no rows, so there is nothing to fetch");
        return true;
}

/* SQLite returns SQLITE_NOMEM for a program of too many steps as well. But if memory really ran out, much of it was in use:
 * the last allocation asked for at most twice the size of the largest block. */
static bool too_many_steps(const SqliteConnection *c, const SqlError *error) {
        return error->error == ERROR_OUT_OF_MEMORY && (uint64_t) sqlite3_memory_highwater(0) < c->setup->heap_size_max / 4;
}

static bool compile(SqliteConnection *c, const char *sql, size_t sql_size, sqlite3_stmt **ret,
                    SqlError *error) {
        const char *start = sql, *tail = sql, *end = sql + sql_size;
        sqlite3_stmt *stmt = NULL;

        (void) sqlite3_memory_highwater(1);
        while (!stmt && tail < end) { /* SQLite gives no statement for a lone ";" or comment: continue after it */
                int rc;

                start = tail;
                rc = sqlite3_prepare_v3(c->db, start, (int) (end - start) + 1, SQLITE_PREPARE_PERSISTENT, &stmt,
                                        &tail);
                if (rc != SQLITE_OK) {
                        (void) sqlite_connection_fail(c, rc, (size_t) (start - sql), error);
                        return too_many_steps(c, error)
                                       ? sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                                       "the statement compiles to more than the %u steps of VdbeOpsMax=: "
                                                       "make it simpler", c->setup->vdbe_ops_max)
                                       : false;
                }
                if (tail <= start)
                        break;
        }
        if (!check_compiled(c, stmt, tail, end, error)) {
                (void) sqlite3_finalize(stmt);
                return false;
        }
        *ret = stmt;
        return true;
}

bool sqlite_compile(SqliteConnection *c, const char *sql, size_t sql_size, sqlite3_stmt **ret, SqlError *error) {
        bool ok;

        access_narrow(c->db, c->setup);
        compile_limit_begin();
        ok = compile(c, sql, sql_size, ret, error);
        compile_limit_end();
        access_widen(c->db);
        return ok;
}
