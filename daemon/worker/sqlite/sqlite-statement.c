/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-statement.h.
 */
#include "daemon/worker/sqlite/sqlite-statement.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/statement-frames.h"
#include "daemon/worker/sqlite/describe-statement.h"
#include "daemon/worker/sqlite/sqlite-compile.h"

void sqlite_statement_clear(SqliteStatement *s) {
        if (s->stmt)
                (void) access_reset(&s->connection->access, s->stmt);
        (void) sqlite3_finalize(s->stmt);
        free(s->sql);
        free(s->columns);
        engine_written_done(&s->written);
        *s = (SqliteStatement) { .connection = s->connection };
}

/* A statement that is given up in the middle ends now. If it changed a virtual table, that may write, and an interrupt of
 * this would roll back the transaction. */
static void reset(SqliteStatement *s) {
        if (s->writes)
                sqlite_connection_set_progress(s->connection, false);
        /* returns the error of the last step again, which has been handled */
        (void) access_reset(&s->connection->access, s->stmt);
        if (s->writes)
                sqlite_connection_set_progress(s->connection, true);
}

void sqlite_statement_release(SqliteStatement *s) {
        static uint64_t use;

        reset(s);
        if (!s->sql) {
                sqlite_statement_clear(s);
                return;
        }
        (void) sqlite3_clear_bindings(s->stmt);
        s->used = ++use;
}

static bool make_columns(SqliteStatement *s, uint32_t page_size, SqlError *error) {
        EngineDescription d;
        bool ok;

        if (!describe_statement(s->stmt, &d, error))
                return false;
        ok = statement_frames_columns(&d, page_size, &s->columns, &s->columns_size, error);
        free(d.strings);
        return ok;
}

bool sqlite_statement_columns(SqliteStatement *s, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                              SqlError *error) {
        if (sqlite3_stmt_status(s->stmt, SQLITE_STMTSTATUS_REPREPARE, 1) > 0) {
                s->outdated = true;
                free(s->columns);
                s->columns = NULL;
        }
        if (!s->columns && !make_columns(s, page_size, error))
                return false;
        statement_frames_set_page_size(s->columns, page_size);
        *ret_payload = s->columns;
        *ret_size = s->columns_size;
        return true;
}

bool sqlite_statement_tables(SqliteStatement *s, EngineTables *ret_read, EngineTables *ret_written, SqlError *error) {
        Access *access = &s->connection->access;
        const char *sql = sqlite3_sql(s->stmt);
        AccessTables tables = {};
        CompiledStatement again;
        bool ok;

        access->tables = &tables;
        ok = sqlite_compile(s->connection, sql, strlen(sql), &again, error);
        access->tables = NULL;
        if (ok)
                (void) sqlite3_finalize(again.stmt);
        if (ok && tables.failed)
                ok = sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        if (!ok) {
                engine_tables_done(&tables.read);
                engine_tables_done(&tables.written);
                return false;
        }
        *ret_read = tables.read;
        *ret_written = tables.written;
        return true;
}

/* ---- what it writes ---- */

#define OE_FAIL 3 /* sqliteInt.h */

/* Columns: address, opcode, P1 to P5. Of Halt, P1 is the result, P2 the conflict resolution; of VUpdate that is P5. */
static bool is_fail(sqlite3_stmt *program) {
        const char *opcode = (const char *) sqlite3_column_text(program, 1) ?: "";

        if (strcmp(opcode, "VUpdate") == 0)
                return sqlite3_column_int(program, 6) == OE_FAIL;
        return strncmp(opcode, "Halt", 4) == 0 && sqlite3_column_int(program, 2) != SQLITE_OK &&
               sqlite3_column_int(program, 3) == OE_FAIL;
}

/* EXPLAIN shows the programs of triggers, too. */
bool sqlite_statement_may_keep_rows(const SqliteStatement *s) {
        char *explain = sqlite3_mprintf("EXPLAIN %s", sqlite3_sql(s->stmt));
        sqlite3_stmt *program = NULL;
        int rc = explain ? sqlite3_prepare_v2(s->connection->db, explain, -1, &program, NULL) : SQLITE_NOMEM;
        bool found = rc != SQLITE_OK;

        sqlite3_free(explain);
        while (!found && (rc = sqlite3_step(program)) == SQLITE_ROW)
                found = is_fail(program);
        (void) sqlite3_finalize(program);
        return found || rc != SQLITE_DONE;
}

/* The lock of the transaction keeps the schema as it is, so this compile finds what the last one by SQLite has found. */
static void find_written(SqliteStatement *s) {
        SqlError error = SQL_ERROR_INIT;
        EngineTables read, written;

        s->outdated = false;
        engine_tables_done(&s->written.tables);
        s->written.any = s->written.any || !sqlite_statement_tables(s, &read, &written, &error);
        if (s->written.any)
                sql_error_done(&error);
        else {
                engine_tables_done(&read);
                s->written.tables = written;
        }
}

/* Without names it is a statement like PRAGMA user_version=. */
void sqlite_statement_written(SqliteStatement *s, EngineWritten *written) {
        if (!s->writes || s->is_savepoint || s->only_temp)
                return;
        if (s->outdated || sqlite3_stmt_status(s->stmt, SQLITE_STMTSTATUS_REPREPARE, 1) > 0)
                find_written(s);
        written->any = written->any || s->written.any || s->written.schema || s->written.tables.n == 0;
        written->schema = written->schema || s->written.schema;
        for (size_t i = 0; i < s->written.tables.n && !written->any; i++)
                written->any = engine_tables_add(&written->tables, s->written.tables.names[i]) < 0;
}
