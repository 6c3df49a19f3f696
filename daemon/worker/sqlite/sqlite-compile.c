/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-compile.h. The size that SQLite is given includes the NUL after the SQL: then it compiles in
 * place, without a copy.
 */
#include "daemon/worker/sqlite/sqlite-compile.h"

#include <sqlite3.h>
#include <string.h>

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

/* Finds the first word of a statement. SQLite skips a byte order mark anywhere, and a vertical tab after other space. */
static const char *first_word(const char *sql) {
        for (;;) {
                const char *end = NULL;

                sql += strspn(sql, "; \t\n\v\f\r");
                if (strncmp(sql, "--", 2) == 0)
                        end = strchr(sql, '\n');
                else if (strncmp(sql, "/*", 2) == 0 && (end = strstr(sql + 2, "*/")))
                        end++;
                else if (strncmp(sql, "\xef\xbb\xbf", 3) == 0)
                        end = sql + 2;
                if (!end)
                        return sql;
                sql = end + 1;
        }
}

static bool begins_with(const char *sql, const char *word) {
        return sqlite3_strnicmp(first_word(sql), word, (int) strlen(word)) == 0;
}

static bool set_refused(const SqliteConnection *c, SqlError *error) {
        return sql_error_set(error, ERROR_NOT_ALLOWED, "%s is not allowed: %s", c->access.refused, c->access.reason);
}

static bool set_writes(const SqliteConnection *c, SqlError *error) {
        if (c->setup->writes)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "this statement writes, and a database with Expose= is shared for reading only");
        return sql_error_set(error, ERROR_READ_ONLY,
                             "this statement writes, and you may only read this database: write as the program that owns "
                             "it, or have its administrator give you that right");
}

/* The first compile of a statement connects its virtual tables, whose modules compile statements of their own. In another
 * one all that SQLite names is of the statement. */
static bool authorize_again(SqliteConnection *c, const char *sql, const char *end, SqlError *error) {
        sqlite3_stmt *stmt = NULL;
        int rc;

        access_forget(&c->access);
        rc = sqlite3_prepare_v3(c->db, sql, (int) (end - sql) + 1, 0, &stmt, NULL);
        (void) sqlite3_finalize(stmt);
        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

/* VACUUM that see_vacuum() has not found is one INTO a file, of an attached database, or of a server, which would run it in
 * a transaction. */
static bool check_vacuum(const SqliteConnection *c, const CompiledStatement *compiled, SqlError *error) {
        if (c->access.is_shadow)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "VACUUM is not allowed: it is for the file's owner, while no other program uses it");
        return compiled->runs_alone ||
                sql_error_set(error, ERROR_NOT_ALLOWED,
                              "VACUUM INTO is not allowed, nor VACUUM of an attached database: a statement can only change "
                              "this one. \"sqlipcctl backup\" and the command .backup of ipcq-cli copy it");
}

/* As SQLite says it when it runs. But here a transaction would have to begin to write before. */
static bool check_alone(const SqliteConnection *c, SqlError *error) {
        if (!c->access.in_transaction)
                return true;
        (void) sql_error_set(error, ERROR_SQL, "cannot VACUUM from within a transaction");
        error->extended_code = SQLITE_ERROR;
        return false;
}

/* Checks the rights of a statement that writes. */
static bool check_rights(SqliteConnection *c, const CompiledStatement *compiled, const char *sql, const char *end,
                         SqlError *error) {
        if (access_only_changes_temp(&c->access))
                return true;
        if (!c->access.rights)
                return set_writes(c, error);
        if (begins_with(sql, "VACUUM") && !check_vacuum(c, compiled, error))
                return false;
        if (c->access.only_temp && !compiled->runs_alone)
                return sql_error_set(error, ERROR_READ_ONLY,
                                     "this transaction only reads, and may change only TEMP tables: begin one with the mode "
                                     "\"write\"");
        if (access_is_unsure(&c->access) && !authorize_again(c, sql, end, error))
                return false;
        if (!access_may_change(&c->access))
                return set_refused(c, error);
        return !compiled->runs_alone || check_alone(c, error);
}

/* ---- statements that do nothing ---- */

static bool is_op(sqlite3_stmt *program, const char *opcode) {
        return strcmp((const char *) sqlite3_column_text(program, 1) ?: "", opcode) == 0;
}

/* Of a program that only checks the schema. It reads the journal's mode in a line that never runs, so that SQLite does not
 * say of it that it only reads. */
static bool is_idle_line(sqlite3_stmt *program) {
        if (is_op(program, "Transaction"))
                return sqlite3_column_int(program, 3) == 0; /* it only reads */
        if (is_op(program, "JournalMode"))
                return sqlite3_column_int(program, 4) < 0; /* it sets no mode */
        return is_op(program, "Init") || is_op(program, "Goto") || is_op(program, "Halt");
}

static bool is_idle_program(sqlite3_stmt *program) {
        int rc = sqlite3_step(program);

        while (rc == SQLITE_ROW && is_idle_line(program))
                rc = sqlite3_step(program);
        return rc == SQLITE_DONE;
}

/* A module, too, may run a PRAGMA when it connects. */
static bool is_replaced(const SqliteConnection *c, const char *sql) {
        return c->access.pragma.replaced && begins_with(sql, "PRAGMA");
}

static int explain(SqliteConnection *c, const char *sql, const char *tail, sqlite3_stmt **ret) {
        const char *word = first_word(sql);
        char *text = sqlite3_mprintf("EXPLAIN %.*s", (int) (tail - word), word);
        int rc = text ? sqlite3_prepare_v2(c->db, text, -1, ret, NULL) : SQLITE_NOMEM;

        sqlite3_free(text);
        return rc;
}

/* *ret is true for CREATE ... IF NOT EXISTS of an object that exists, and DROP ... IF EXISTS of one that does not. SQLite
 * compiles nothing else then, although it asks first for the right to change the schema. The statement is never stepped, so
 * this must be the schema of the file: if the look at it has failed, so does the statement. */
static bool see_idle_program(SqliteConnection *c, const char *sql, const char *tail, bool *ret, SqlError *error) {
        sqlite3_stmt *program = NULL;
        int rc = explain(c, sql, tail, &program);

        *ret = rc == SQLITE_OK && is_idle_program(program);
        (void) sqlite3_finalize(program);
        if (*ret && !sqlite_connection_is_untouched(c))
                rc = c->probe_rc;
        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

static bool see_if_nothing(SqliteConnection *c, sqlite3_stmt *stmt, const char *sql, const char *tail, bool *ret,
                           SqlError *error) {
        *ret = false;
        if (sqlite3_stmt_isexplain(stmt) || sqlite3_column_count(stmt) > 0 || c->access.is_shadow)
                return true;
        *ret = is_replaced(c, sql);
        if (*ret || !(begins_with(sql, "CREATE") || begins_with(sql, "DROP")))
                return true;
        return see_idle_program(c, sql, tail, ret, error);
}

/* SQLite asks nothing about VACUUM before it runs, so its program tells what it is: of "temp" it does nothing, and INTO a
 * file it has a register for the name. */
static bool see_vacuum(SqliteConnection *c, CompiledStatement *compiled, const char *sql, const char *tail,
                       SqlError *error) {
        sqlite3_stmt *program = NULL;
        int rc;

        if (c->access.is_shadow || sqlite3_stmt_isexplain(compiled->stmt) || !begins_with(sql, "VACUUM"))
                return true;
        rc = explain(c, sql, tail, &program);
        if (rc == SQLITE_OK)
                rc = sqlite3_step(program);
        while (rc == SQLITE_ROW && !is_op(program, "Vacuum"))
                rc = sqlite3_step(program);
        compiled->does_nothing = rc == SQLITE_DONE;
        compiled->runs_alone = rc == SQLITE_ROW && sqlite3_column_int(program, 2) == 0 &&
                sqlite3_column_int(program, 3) == 0;
        c->access.changes = c->access.changes_schema = c->access.changes_main = rc == SQLITE_ROW;
        (void) sqlite3_finalize(program);
        return rc == SQLITE_DONE || rc == SQLITE_ROW || sqlite_connection_fail(c, rc, 0, error);
}

/* ---- the statement ---- */

static bool check_compiled(SqliteConnection *c, CompiledStatement *compiled, const char *sql, const char *tail,
                           const char *end, SqlError *error) {
        sqlite3_stmt *stmt = compiled->stmt;

        if (!stmt)
                return sql_error_set(error, ERROR_EMPTY_STATEMENT,
                                     "there is no statement in this SQL, only space or comments");
        if (c->exposed && sqlite3_stmt_isexplain(stmt))
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "EXPLAIN is not allowed where Expose= publishes a part of the database");
        if (c->access.changes_temp && c->access.changes_main && !authorize_again(c, sql, end, error))
                return false;
        if (!see_if_nothing(c, stmt, sql, tail, &compiled->does_nothing, error) ||
            !see_vacuum(c, compiled, sql, tail, error))
                return false;
        compiled->attaches = c->access.attaches && !sqlite3_stmt_isexplain(stmt);
        if (!compiled->does_nothing && !access_only_reads(&c->access, stmt) && !check_rights(c, compiled, sql, end, error))
                return false;
        compiled->writes = c->access.rights && !sqlite3_stmt_isexplain(stmt) && !compiled->does_nothing &&
                !compiled->attaches && (!access_only_reads(&c->access, stmt) || sqlite3_column_count(stmt) == 0);
        compiled->is_savepoint = c->access.asks_savepoint && !sqlite3_stmt_isexplain(stmt);
        compiled->only_temp = !compiled->does_nothing && !sqlite3_stmt_isexplain(stmt) &&
                (access_only_changes_temp(&c->access) || (compiled->is_savepoint && c->access.only_temp));
        compiled->writes |= compiled->only_temp;
        compiled->changes_rows = compiled->only_temp ? c->access.changes_temp && !c->access.changes_temp_schema
                                                     : compiled->writes && c->access.has_target && !c->access.changes_schema;
        compiled->asks_changes = c->access.asks_changes;
        if (compiled->does_nothing)
                compiled->foreign_keys = c->access.pragma.foreign_keys;
        /* a pin keeps none: one that was compiled before a TEMP table was made or dropped may mean another table */
        compiled->once |= compiled->does_nothing || compiled->runs_alone || (compiled->writes && !c->access.changes) ||
                c->access.is_pin;
        if (has_more(c->db, tail, end))
                return sql_error_set(error, ERROR_SEVERAL_STATEMENTS,
                                     "there is more than one statement in this SQL: send them one by one");
        if (sqlite3_column_count(stmt) == 0 && !compiled->writes && !compiled->does_nothing && !compiled->attaches &&
            !compiled->is_savepoint)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "this statement returns no rows, so there is nothing to fetch");
        return true;
}

/* SQLite returns SQLITE_NOMEM for a program of too many steps as well. But if memory really ran out, much of it was in use:
 * the last allocation asked for at most twice the size of the largest block. */
static bool too_many_steps(const SqliteConnection *c, const SqlError *error) {
        return error->error == ERROR_OUT_OF_MEMORY && (uint64_t) sqlite3_memory_highwater(0) < c->setup->heap_size_max / 4;
}

/* SQLite has a sentence but no code for it (delete.c of 3.40). */
static bool is_about_schema_table(const SqlError *error) {
        return error->error == ERROR_SQL && error->message &&
                (strcmp(error->message, "table sqlite_master may not be modified") == 0 ||
                 strcmp(error->message, "table sqlite_temp_master may not be modified") == 0);
}

static bool fail(SqliteConnection *c, int rc, size_t offset, SqlError *error) {
        (void) sqlite_connection_fail(c, rc, offset, error);
        if (error->error == ERROR_SQL && c->exposed && c->setup->writes && c->access.changes)
                return set_writes(c, error); /* SQLite refuses it first, for a virtual table */
        if (c->access.rights && is_about_schema_table(error))
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "a direct change of sqlite_schema is not allowed: use CREATE, ALTER and DROP, or load "
                                     "a dump in a transaction");
        if (too_many_steps(c, error))
                return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                     "the statement compiles to more than the %u steps of VdbeOpsMax=: make it simpler",
                                     c->setup->vdbe_ops_max);
        return false;
}

/* In place of a PRAGMA, which SQLite has compiled to nothing. */
static bool compile_answer(SqliteConnection *c, const char *statement, CompiledStatement *compiled, SqlError *error) {
        char sql[sizeof c->access.pragma.answer];
        int rc;

        if (!is_replaced(c, statement) || !c->access.pragma.answer[0] || sqlite3_stmt_isexplain(compiled->stmt))
                return true;
        (void) memcpy(sql, c->access.pragma.answer, sizeof sql);
        access_forget(&c->access);
        (void) sqlite3_finalize(compiled->stmt);
        compiled->once = true;
        rc = sqlite3_prepare_v2(c->db, sql, -1, &compiled->stmt, NULL);
        return rc == SQLITE_OK || fail(c, rc, 0, error);
}

static bool compile(SqliteConnection *c, const char *sql, size_t sql_size, CompiledStatement *ret, SqlError *error) {
        const char *start = sql, *tail = sql, *end = sql + sql_size;
        CompiledStatement compiled = {};

        (void) sqlite3_memory_highwater(1);
        while (!compiled.stmt && tail < end) { /* SQLite gives no statement for a lone ";" or comment: continue after it */
                int rc;

                start = tail;
                rc = sqlite3_prepare_v3(c->db, start, (int) (end - start) + 1, SQLITE_PREPARE_PERSISTENT,
                                        &compiled.stmt, &tail);
                /* not on a pin: a TEMP table could take the place of one that the check reads */
                if (rc != SQLITE_OK && c->access.rights && c->access.savepoints && !c->access.is_pin &&
                    dumped_table_is(first_word(start))) {
                        if (!dumped_table_compile(c, first_word(start), &compiled.stmt, &tail, error))
                                return false;
                        compiled.of_dump = compiled.once = true;
                        break;
                }
                if (rc != SQLITE_OK)
                        return fail(c, rc, (size_t) (start - sql), error);
                if (tail <= start)
                        break;
        }
        if ((compiled.stmt && !compile_answer(c, start, &compiled, error)) ||
            !check_compiled(c, &compiled, start, tail, end, error)) {
                (void) sqlite3_finalize(compiled.stmt);
                return false;
        }
        *ret = compiled;
        return true;
}

/* SQLite compiles by the schema that it read last. That may be an old one, because a lock kept it from looking at the file,
 * or because a program has changed the schema since then. If it noticed the change during the compile, it read the new
 * schema under the client's limits, which may be too small for it, and connected virtual tables again, so the target may be
 * wrong (check_rights()). */
static bool may_be_due_to_schema(SqliteConnection *c, unsigned n_schemas, const SqlError *error) {
        if (error->error != ERROR_SQL && error->error != ERROR_CORRUPT && error->error != ERROR_NOT_ALLOWED)
                return false;
        if (sqlite3_txn_state(c->file, "main") == SQLITE_TXN_WRITE) /* no other program can change it */
                return false;
        sqlite_connection_look(c);
        return c->unseen || c->n_schemas != n_schemas;
}

/* SQLite asks the authorizer then, too, but not about the tables of the client's statement. */
static void look(SqliteConnection *c) {
        AccessTables *tables = c->access.tables;

        c->access.tables = NULL;
        sqlite_connection_look(c);
        c->access.tables = tables;
}

bool sqlite_compile(SqliteConnection *c, const char *sql, size_t sql_size, CompiledStatement *ret, SqlError *error) {
        unsigned n_schemas;
        bool ok;

        /* Reads a new schema under SQLite's own limits. A compile may take seconds, and must not keep writers out. */
        look(c);
        n_schemas = c->n_schemas;
        c->attached.wanted[0] = 0; /* of a statement before */
        access_forget(&c->access);
        access_narrow(c->db, c->setup);
        compile_limit_begin();
        c->access.of_client = true;
        ok = compile(c, sql, sql_size, ret, error);
        c->access.of_client = false;
        /* the error has it; a failure after this, as of a commit, has another reason */
        c->access.refused[0] = 0;
        c->access.needs_pin = false;
        compile_limit_end();
        access_widen(c->db);
        if (!ok && may_be_due_to_schema(c, n_schemas, error))
                (void) sql_error_set(error, ERROR_BUSY, "another program is changing this database: try again");
        return ok;
}
