/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See statement-cache.h.
 */
#include "daemon/worker/sqlite/statement-cache.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/sqlite/sqlite-compile.h"

/* Longer SQL is compiled each time: a cache of it would take most of a worker's memory. */
#define SQL_SIZE_MAX ((size_t) 16384)

void statement_cache_init(StatementCache *cache, SqliteConnection *connection) {
        *cache = (StatementCache) { .connection = connection, .single.connection = connection };
        for (size_t i = 0; i < STATEMENT_CACHE_N; i++)
                cache->slots[i].connection = connection;
}

void statement_cache_clear(StatementCache *cache) {
        for (size_t i = 0; i < STATEMENT_CACHE_N; i++)
                sqlite_statement_clear(&cache->slots[i]);
        sqlite_statement_clear(&cache->single);
}

static const SqliteStatement *find(const StatementCache *cache, const char *sql, size_t sql_size, const EngineHint *hint) {
        if (hint && hint->id != 0 && cache->slots[hint->slot].id == hint->id)
                return &cache->slots[hint->slot];
        for (const SqliteStatement *s = cache->slots; s < cache->slots + STATEMENT_CACHE_N; s++)
                if (s->sql && s->sql_size == sql_size && memcmp(s->sql, sql, sql_size) == 0)
                        return s;
        return NULL;
}

bool statement_cache_has(const StatementCache *cache, const char *sql, size_t sql_size, const EngineHint *hint) {
        return find(cache, sql, sql_size, hint) != NULL;
}

static void forget_outdated(StatementCache *cache) {
        if (cache->n_schemas != cache->connection->n_schemas)
                statement_cache_clear(cache);
        cache->n_schemas = cache->connection->n_schemas;
}

void statement_cache_refresh(StatementCache *cache) {
        if (!sqlite_connection_is_untouched(cache->connection))
                sqlite_connection_hold(cache->connection);
        forget_outdated(cache);
}

/* Keeps a statement, in place of the one that was unused for the longest time. If it is too long or not allowed to be kept,
 * or there is no memory for a copy of the SQL, it is not kept after its run. */
static SqliteStatement *keep(StatementCache *cache, const char *sql, size_t sql_size, const CompiledStatement *compiled,
                             EngineWritten written) {
        static uint64_t id;
        char *copy = sql_size <= SQL_SIZE_MAX && !compiled->once ? malloc(sql_size > 0 ? sql_size : 1) : NULL;
        SqliteStatement *slot = copy ? &cache->slots[0] : &cache->single;

        for (size_t i = 1; copy && i < STATEMENT_CACHE_N; i++)
                if (cache->slots[i].used < slot->used)
                        slot = &cache->slots[i];
        sqlite_statement_clear(slot);
        slot->stmt = compiled->stmt;
        slot->writes = compiled->writes;
        slot->changes_rows = compiled->changes_rows;
        slot->asks_changes = compiled->asks_changes;
        slot->only_temp = compiled->only_temp;
        slot->is_savepoint = compiled->is_savepoint;
        slot->runs_alone = compiled->runs_alone;
        slot->of_dump = compiled->of_dump;
        slot->does_nothing = compiled->does_nothing;
        slot->attaches = compiled->attaches;
        slot->foreign_keys = compiled->foreign_keys;
        slot->written = written;
        if (!copy)
                return slot;
        memcpy(copy, sql, sql_size);
        slot->sql = copy;
        slot->sql_size = sql_size;
        slot->id = ++id;
        return slot;
}

/* Compiles SQL that is not in the cache. */
static bool compile(StatementCache *cache, const char *sql, size_t sql_size, SqliteStatement **ret, SqlError *error) {
        Access *access = &cache->connection->access;
        CompiledStatement compiled;
        AccessTables tables = {};
        bool ok;

        if (memchr(sql, 0, sql_size))
                return sql_error_set(error, ERROR_SQL, "there is a NUL in this SQL");
        if (!engine_check_sql_size(cache->connection->setup, sql_size, error))
                return false;
        access->tables = cache->connection->writes ? &tables : NULL;
        ok = sqlite_compile(cache->connection, sql, sql_size, &compiled, error);
        forget_outdated(cache);
        access->tables = NULL;
        engine_tables_done(&tables.read);
        if (!ok) {
                engine_tables_done(&tables.written);
                return false;
        }
        *ret = keep(cache, sql, sql_size, &compiled, (EngineWritten) {
                .tables = tables.written,
                .any = tables.failed,
                .schema = access->changes_schema,
        });
        return true;
}

bool statement_cache_compile(StatementCache *cache, const char *sql, size_t sql_size, EngineHint *hint,
                             SqliteStatement **ret, SqlError *error) {
        SqliteConnection *c = cache->connection;
        SqliteStatement *s = (SqliteStatement *) find(cache, sql, sql_size, hint);

        access_forget(&c->access);
        if (c->exposed)
                exposed_expect(c->exposed, sql, sql_size);
        if (!s && !compile(cache, sql, sql_size, &s, error))
                return false;
        if (hint && s->sql)
                *hint = (EngineHint) { .id = s->id, .slot = (unsigned) (s - cache->slots) };
        *ret = s;
        return true;
}
