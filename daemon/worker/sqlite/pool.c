/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pool.h.
 */
#include "daemon/worker/sqlite/pool.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/compile-limit.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/describe.h"

#define N_IDLE_MAX 4
#define IDLE_USEC (5 * USEC_PER_SEC)
#define IDENTIFY_USEC (5 * USEC_PER_MSEC) /* between two checks of the file, for a channel in constant use */

/* Longer SQL is compiled each time: a cache of it would take most of a worker's memory. */
#define CACHED_SQL_SIZE_MAX ((size_t) 16384)

static CachedStatement *find_cached(Connection *c, const char *sql, size_t sql_size) {
        for (size_t i = 0; i < CONNECTION_N_CACHED; i++)
                if (c->cached[i].sql && c->cached[i].sql_size == sql_size && memcmp(c->cached[i].sql, sql, sql_size) == 0)
                        return &c->cached[i];
        return NULL;
}

static CachedStatement *find_hinted(Connection *c, const StatementHint *hint) {
        return hint && hint->id != 0 && c->cached[hint->slot].id == hint->id ? &c->cached[hint->slot] : NULL;
}

static CachedStatement *find_compiled(Connection *c, const sqlite3_stmt *stmt) {
        for (size_t i = 0; i < CONNECTION_N_CACHED; i++)
                if (c->cached[i].stmt == stmt)
                        return &c->cached[i];
        return NULL;
}

static void forget_cached(CachedStatement *cached) {
        (void) sqlite3_finalize(cached->stmt);
        free(cached->sql);
        free(cached->columns);
        *cached = (CachedStatement) {};
}

static Connection *connection_free(Connection *c) {
        if (!c)
                return NULL;
        for (size_t i = 0; i < CONNECTION_N_CACHED; i++)
                forget_cached(&c->cached[i]);
        database_close(&c->database);
        free(c);
        return NULL;
}

static Connection *unlink_idle(Pool *pool, Connection **link) {
        Connection *c = *link;

        *link = c->next;
        c->next = NULL;
        pool->n_idle--;
        return c;
}

/* Closes idle connections to a file that is no longer at the path: they would read data that no program updates any more. */
static void drop_stale(Pool *pool, const FileIdentity *now) {
        for (Connection **link = &pool->idle; *link;) {
                const FileIdentity *its = &(*link)->database.identity;

                if (!file_identity_equal(its, now))
                        (void) connection_free(unlink_idle(pool, link));
                else
                        link = &(*link)->next;
        }
}

/* Takes an idle connection, preferably one that has `sql` compiled. NULL: there is none. */
static Connection *take_idle(Pool *pool, const char *sql, size_t sql_size, const StatementHint *hint) {
        Connection **best = &pool->idle;

        for (Connection **link = &pool->idle; *link; link = &(*link)->next)
                if (find_hinted(*link, hint) || find_cached(*link, sql, sql_size)) {
                        best = link;
                        break;
                }
        return *best ? unlink_idle(pool, best) : NULL;
}

static Connection *open_fresh(Pool *pool, SqlError *error) {
        Connection *c = calloc(1, sizeof *c);

        if (!c) {
                (void) sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
                return NULL;
        }
        if (!database_open(&c->database, pool->setup, pool->progress, pool->userdata, error)) {
                free(c);
                return NULL;
        }
        return c;
}

static bool look_at_file(Pool *pool, const StatementHint *hint, SqlError *error) {
        uint64_t now_usec = now_coarse_usec();
        FileIdentity now;

        if (hint && now_usec < pool->identified_usec + IDENTIFY_USEC)
                return true;
        if (!database_identify(pool->setup, &now, error))
                return false;
        pool->identified_usec = now_usec;
        drop_stale(pool, &now);
        return true;
}

bool pool_take(Pool *pool, const char *sql, size_t sql_size, const StatementHint *hint, Connection **ret, SqlError *error) {
        if (!look_at_file(pool, hint, error))
                return false;
        /* tries each idle connection, and then a new one; if that is stale at once, too, the schema keeps changing */
        for (unsigned n = 0; n <= N_IDLE_MAX + 1; n++) {
                Connection *c = take_idle(pool, sql, sql_size, hint) ?: open_fresh(pool, error);
                DatabaseBegin begun;

                if (!c)
                        return false;
                begun = database_begin(&c->database, pool->setup, error);
                if (begun == DATABASE_BEGUN) {
                        *ret = c;
                        return true;
                }
                if (begun == DATABASE_FAILED) {
                        pool_give(pool, c);
                        return false;
                }
                (void) connection_free(c);
        }
        return sql_error_set(error, ERROR_BUSY, "the schema of this database keeps changing: try again");
}

void pool_give(Pool *pool, Connection *c) {
        if (!c)
                return;
        database_end(&c->database);
        if (pool->n_idle >= N_IDLE_MAX || c->database.doubtful) {
                (void) connection_free(c);
                return;
        }
        /* I4: an idle connection pins nothing, neither itself nor through exposed tables */
        assert(sqlite3_txn_state(c->database.file, NULL) == SQLITE_TXN_NONE);
        c->idle_usec = now_coarse_usec();
        c->next = pool->idle;
        pool->idle = c;
        pool->n_idle++;
}

uint64_t pool_expire(Pool *pool, uint64_t now) {
        uint64_t next = UINT64_MAX;

        for (Connection **link = &pool->idle; *link;) {
                if ((*link)->idle_usec + IDLE_USEC <= now) {
                        (void) connection_free(unlink_idle(pool, link));
                        continue;
                }
                if ((*link)->idle_usec + IDLE_USEC < next)
                        next = (*link)->idle_usec + IDLE_USEC;
                link = &(*link)->next;
        }
        return next;
}

void pool_done(Pool *pool) {
        while (pool->idle)
                (void) connection_free(unlink_idle(pool, &pool->idle));
}

void connection_refresh(Connection *c) {
        if (!database_schema_changed(&c->database))
                return;
        for (size_t i = 0; i < CONNECTION_N_CACHED; i++)
                forget_cached(&c->cached[i]);
}

/* In the following, the size that SQLite is given includes the NUL after the SQL: then it compiles in place, without a
 * copy. */

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

static bool check_compiled(Connection *c, sqlite3_stmt *stmt, const char *tail, const char *end, SqlError *error) {
        if (!stmt)
                return sql_error_set(error, ERROR_EMPTY_STATEMENT,
                                     "there is no statement in this SQL, only space or comments");
        if (c->database.exposed && sqlite3_stmt_isexplain(stmt))
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "EXPLAIN is not allowed where Expose= publishes a part of the database");
        if (!access_only_reads(&c->database.access, stmt))
                return sql_error_set(
                        error, ERROR_READ_ONLY,
                        "this statement writes, and the database is shared read-only: write as the program that owns it");
        if (has_more(c->database.db, tail, end))
                return sql_error_set(error, ERROR_SEVERAL_STATEMENTS,
                                     "there is more than one statement in this SQL: send them one by one");
        if (sqlite3_column_count(stmt) == 0)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "this statement returns no rows, so there is nothing to fetch");
        return true;
}

/* SQLite returns SQLITE_NOMEM for a program of too many steps as well. But if memory really ran out, much of it was in use:
 * the last allocation asked for at most twice the size of the largest block. */
static bool too_many_steps(const Setup *setup, const SqlError *error) {
        return error->error == ERROR_OUT_OF_MEMORY && (uint64_t) sqlite3_memory_highwater(0) < setup->heap_size_max / 4;
}

static bool compile(Connection *c, const Setup *setup, const char *sql, size_t sql_size, sqlite3_stmt **ret,
                    SqlError *error) {
        const char *start = sql, *tail = sql, *end = sql + sql_size;
        sqlite3_stmt *stmt = NULL;

        (void) sqlite3_memory_highwater(1);
        while (!stmt && tail < end) { /* SQLite gives no statement for a lone ";" or comment: continue after it */
                int rc;

                start = tail;
                rc = sqlite3_prepare_v3(c->database.db, start, (int) (end - start) + 1, SQLITE_PREPARE_PERSISTENT, &stmt,
                                        &tail);
                if (rc != SQLITE_OK) {
                        (void) database_fail(&c->database, setup, rc, (size_t) (start - sql), error);
                        return too_many_steps(setup, error)
                                       ? sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                                       "the statement compiles to more than the %u steps of VdbeOpsMax=: "
                                                       "make it simpler", setup->vdbe_ops_max)
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

/* Caches a statement in place of the one that was unused for the longest time. NULL: it is too long to be kept, or there is
 * no memory for a copy. */
static CachedStatement *cache(Connection *c, const char *sql, size_t sql_size, sqlite3_stmt *stmt) {
        static uint64_t id;
        CachedStatement *slot = &c->cached[0];
        char *copy = sql_size <= CACHED_SQL_SIZE_MAX ? malloc(sql_size > 0 ? sql_size : 1) : NULL;

        if (!copy)
                return NULL;
        memcpy(copy, sql, sql_size);
        for (size_t i = 1; i < CONNECTION_N_CACHED; i++)
                if (c->cached[i].used < slot->used)
                        slot = &c->cached[i];
        forget_cached(slot);
        *slot = (CachedStatement) { .sql = copy, .sql_size = sql_size, .stmt = stmt, .id = ++id };
        return slot;
}

bool pool_check_sql_size(const Setup *setup, size_t sql_size, SqlError *error) {
        if (sql_size <= setup->sql_size_max)
                return true;
        return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                             "this SQL has %zu bytes, and SQLSizeMax= allows %u: pass values as parameters",
                             sql_size, setup->sql_size_max);
}

static void set_hint(Connection *c, const CachedStatement *cached, StatementHint *hint) {
        if (hint && cached)
                *hint = (StatementHint) { .id = cached->id, .slot = (unsigned) (cached - c->cached) };
}

bool connection_compile(Connection *c, const Setup *setup, const char *sql, size_t sql_size, StatementHint *hint,
                        sqlite3_stmt **ret, SqlError *error) {
        CachedStatement *cached = find_hinted(c, hint) ?: find_cached(c, sql, sql_size);
        bool ok;

        access_forget(&c->database.access);
        if (c->database.exposed)
                exposed_expect(c->database.exposed, sql, sql_size);
        if (cached) {
                *ret = cached->stmt;
                set_hint(c, cached, hint);
                return true;
        }
        if (memchr(sql, 0, sql_size))
                return sql_error_set(error, ERROR_SQL, "there is a NUL in this SQL");
        if (!pool_check_sql_size(setup, sql_size, error))
                return false;
        connection_refresh(c); /* if another program has changed the schema, this reads it under SQLite's own limits */
        database_let_go(&c->database); /* a compile may take seconds, and must not keep writers out meanwhile */
        access_narrow(c->database.db, setup);
        compile_limit_begin();
        ok = compile(c, setup, sql, sql_size, ret, error);
        compile_limit_end();
        access_widen(c->database.db);
        if (ok)
                set_hint(c, cache(c, sql, sql_size, *ret), hint);
        return ok;
}

bool connection_columns(Connection *c, sqlite3_stmt *stmt, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                        SqlError *error) {
        CachedStatement *cached = find_compiled(c, stmt);
        bool again = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_REPREPARE, 1) > 0;

        if (!cached)
                return false;
        if (again) {
                free(cached->columns);
                cached->columns = NULL;
        }
        if (!cached->columns && !describe_columns(stmt, page_size, &cached->columns, &cached->columns_size, error))
                return false;
        columns_set_page_size(cached->columns, page_size);
        *ret_payload = cached->columns;
        *ret_size = cached->columns_size;
        return true;
}

void connection_keep(Connection *c, sqlite3_stmt *stmt) {
        static uint64_t use;
        CachedStatement *cached = stmt ? find_compiled(c, stmt) : NULL;

        if (!stmt)
                return;
        if (!cached) {
                (void) sqlite3_finalize(stmt);
                return;
        }
        (void) sqlite3_reset(stmt); /* returns the error of the last step again, which has been handled */
        (void) sqlite3_clear_bindings(stmt);
        cached->used = ++use;
}
