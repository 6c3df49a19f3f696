/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See rqlite-statement.h.
 */
#include "daemon/worker/rqlite/rqlite-statement.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/rqlite/rqlite-schema.h"
#include "daemon/worker/sqlite/bind.h"

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

/* ---- life ---- */

/* Forgets what the compile has found. */
static void clear_compiled(RqliteStatement *s) {
        sqlite_statement_clear(&s->sqlite);
        s->shadow = shadow_schema_unref(s->shadow);
        window_plan_done(&s->windows.plan);
        free(s->row);
        free(s->is_real);
        s->row = NULL;
        s->is_real = NULL;
}

RqliteStatement *rqlite_statement_free(RqliteStatement *s) {
        if (!s)
                return NULL;
        clear_compiled(s);
        answer_done(&s->answer);
        text_buffer_done(&s->body);
        typed_rows_done(&s->rows);
        free(s->values);
        free(s->sql);
        free(s);
        return NULL;
}

/* The end of the last token that is neither space, a comment, nor the semicolon. A comment need not be closed. */
static size_t text_size(const char *sql, size_t sql_size) {
        const char *end = sql + sql_size;
        size_t size = 0;

        for (SqlToken t = sql_token(sql, end); t.kind != SQL_TOKEN_END; t = sql_token(t.text + t.size, end))
                if (t.kind != SQL_TOKEN_SPACE && *t.text != ';')
                        size = (size_t) (t.text + t.size - sql);
        return size;
}

/* Copies the statement up to its last token: it will be put into another one. */
static bool copy_sql(RqliteStatement *s, const char *sql, SqlError *error) {
        s->sql_size = text_size(sql, strlen(sql));
        s->sql = strndup(sql, s->sql_size);
        if (!s->sql)
                return out_of_memory(error);
        s->verb = sql_verb(s->sql, s->sql_size);
        s->returning = s->sqlite.writes ? sql_returning(s->sql, s->sql_size) : 0;
        return true;
}

/* ---- compiles ---- */

/* On the pool's shadow, as it is now. */
static bool compile_on_shadow(RqliteStatement *s, const char *sql, size_t sql_size, SqlError *error) {
        ShadowSchema *shadow = s->connection->pool->shadow;
        Access *access = &shadow->sqlite.access;
        AccessTables tables = {};
        CompiledStatement compiled;
        bool ok;

        access->tables = shadow->sqlite.writes ? &tables : NULL;
        ok = shadow_schema_compile(shadow, sql, sql_size, &compiled, error);
        access->tables = NULL;
        engine_tables_done(&tables.read);
        if (!ok) {
                engine_tables_done(&tables.written);
                return false;
        }
        s->shadow = shadow_schema_ref(shadow);
        s->sqlite = (SqliteStatement) {
                .connection = &shadow->sqlite,
                .stmt = compiled.stmt,
                .writes = compiled.writes,
                .is_savepoint = compiled.is_savepoint,
                .changes_rows = compiled.changes_rows,
                .written = { .tables = tables.written, .any = tables.failed, .schema = access->changes_schema },
        };
        s->changes_rows = compiled.changes_rows;
        s->n_columns = (unsigned) sqlite3_column_count(compiled.stmt);
        return true;
}

/* The shadow may be older than the schema for which the SQL is right. */
static bool may_be_outdated(const SqlError *error) {
        return error->error == ERROR_SQL || error->error == ERROR_MISSING_MODULE || error->error == ERROR_MISSING_FUNCTION ||
               error->error == ERROR_MISSING_COLLATION;
}

static bool compile(RqliteStatement *s, const char *sql, size_t sql_size, bool describe, SqlError *error) {
        RqliteConnection *c = s->connection;
        SqlError first = SQL_ERROR_INIT;
        int64_t version = c->pool->shadow->version;

        if (describe && !rqlite_schema_refresh(c, error))
                return false;
        if (compile_on_shadow(s, sql, sql_size, &first))
                return true;
        if (!describe && may_be_outdated(&first)) {
                if (!rqlite_schema_refresh(c, error)) {
                        sql_error_done(&first);
                        return false;
                }
                if (c->pool->shadow->version != version) {
                        sql_error_done(&first);
                        return compile_on_shadow(s, sql, sql_size, error);
                }
        }
        sql_error_copy(error, &first);
        sql_error_done(&first);
        return false;
}

static bool make(RqliteStatement *s, const char *sql, size_t sql_size, bool describe, SqlError *error) {
        if (memchr(sql, 0, sql_size))
                return sql_error_set(error, ERROR_SQL, "there is a NUL in this SQL");
        if (!text_is_utf8(sql, sql_size))
                return sql_error_set(error, ERROR_SQL, "this SQL is not valid UTF-8");
        if (!engine_check_sql_size(s->connection->pool->setup, sql_size, error) ||
            !compile(s, sql, sql_size, describe, error))
                return false;
        return copy_sql(s, sqlite3_sql(s->sqlite.stmt), error);
}

bool rqlite_statement_compile(RqliteConnection *c, const char *sql, size_t sql_size, bool describe, RqliteStatement **ret,
                              SqlError *error) {
        RqliteStatement *s = calloc(1, sizeof *s);

        if (!s)
                return out_of_memory(error);
        s->connection = c;
        if (!make(s, sql, sql_size, describe, error)) {
                (void) rqlite_statement_free(s);
                return false;
        }
        *ret = s;
        return true;
}

/* With the new schema the same text may be another kind of statement: it might write now. */
bool rqlite_statement_compile_again(RqliteStatement *s, SqlError *error) {
        bool writes = s->sqlite.writes;
        int n_parameters = sqlite3_bind_parameter_count(s->sqlite.stmt);

        clear_compiled(s);
        if (!compile_on_shadow(s, s->sql, s->sql_size, error))
                return false;
        return (s->sqlite.writes == writes && sqlite3_bind_parameter_count(s->sqlite.stmt) == n_parameters) ||
               sql_error_set(error, ERROR_BUSY, "another program is changing the schema: try again");
}

/* ---- values ---- */

bool rqlite_statement_bind(RqliteStatement *s, const JobSpec *spec, SqlError *error) {
        int n = sqlite3_bind_parameter_count(s->sqlite.stmt);

        if (n > 0 && !s->values)
                s->values = calloc((size_t) n, sizeof *s->values);
        if (n > 0 && !s->values)
                return out_of_memory(error);
        s->deadline_usec = spec->deadline_usec;
        return bind_find(s->sqlite.stmt, spec, s->values, error);
}

static bool is_declared_real(const char *type) {
        return type && (sqlite3_strlike("%REAL%", type, 0) == 0 || sqlite3_strlike("%FLOA%", type, 0) == 0 ||
                        sqlite3_strlike("%DOUB%", type, 0) == 0) &&
               sqlite3_strlike("%INT%", type, 0) != 0;
}

bool rqlite_statement_prepare_rows(RqliteStatement *s, SqlError *error) {
        if (!s->row)
                s->row = calloc((size_t) s->n_columns + 1, sizeof *s->row);
        if (!s->is_real)
                s->is_real = calloc((size_t) s->n_columns + 1, sizeof *s->is_real);
        if (!s->row || !s->is_real)
                return out_of_memory(error);
        for (unsigned i = 0; i < s->n_columns; i++)
                s->is_real[i] = is_declared_real(sqlite3_column_decltype(s->sqlite.stmt, (int) i));
        return true;
}

StatementText rqlite_statement_text(const RqliteStatement *s) {
        return (StatementText) { .sql = s->sql, .sql_size = s->sql_size, .stmt = s->sqlite.stmt, .values = s->values };
}
