/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pool.h.
 */
#include "daemon/worker/sqlite/pool.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/sqlite/observation.h"
#include "daemon/worker/sqlite/sqlite-write.h"

#define N_IDLE_MAX 4
#define IDLE_USEC (5 * USEC_PER_SEC)
#define MOMENT_USEC UINT64_C(100)         /* so long a lock is tried again at once that other programs take in turns */
#define IDENTIFY_USEC (5 * USEC_PER_MSEC) /* between two checks of the file, for a channel in constant use */

int pool_new(const Setup *setup, EngineProgress progress, void *userdata, Pool **ret) {
        Pool *pool = malloc(sizeof *pool);

        if (!pool)
                return -ENOMEM;
        *pool = (Pool) { .setup = setup, .progress = progress, .userdata = userdata };
        *ret = pool;
        return 0;
}

static PooledConnection *connection_free(PooledConnection *c) {
        if (!c)
                return NULL;
        statement_cache_clear(&c->statements);
        sqlite_connection_close(&c->sqlite);
        free(c);
        return NULL;
}

static PooledConnection *unlink_idle(Pool *pool, PooledConnection **link) {
        PooledConnection *c = *link;

        *link = c->next;
        c->next = NULL;
        pool->n_idle--;
        return c;
}

/* Closes idle connections to a file that is no longer at the path: they would read data that no program updates any more. */
static void drop_stale(Pool *pool, const FileIdentity *now) {
        for (PooledConnection **link = &pool->idle; *link;) {
                const FileIdentity *its = &(*link)->sqlite.identity;

                if (!file_identity_equal(its, now))
                        (void) connection_free(unlink_idle(pool, link));
                else
                        link = &(*link)->next;
        }
        if (pool->writer && !pool->writing && !file_identity_equal(&pool->writer->sqlite.identity, now))
                pool->writer = connection_free(pool->writer);
}

/* Takes an idle connection, preferably one that has `sql` compiled. NULL: there is none. */
static PooledConnection *take_idle(Pool *pool, const char *sql, size_t sql_size, const EngineHint *hint) {
        PooledConnection **best = &pool->idle;

        for (PooledConnection **link = &pool->idle; *link; link = &(*link)->next)
                if (statement_cache_has(&(*link)->statements, sql, sql_size, hint)) {
                        best = link;
                        break;
                }
        return *best ? unlink_idle(pool, best) : NULL;
}

static PooledConnection *open_fresh(Pool *pool, bool to_write, SqlError *error) {
        PooledConnection *c = calloc(1, sizeof *c);
        bool ok;

        if (!c) {
                (void) sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
                return NULL;
        }
        ok = to_write ? sqlite_connection_open_to_write(&c->sqlite, pool->setup, pool->progress, pool->userdata, error)
                      : sqlite_connection_open(&c->sqlite, pool->setup, pool->progress, pool->userdata, error);
        if (!ok) {
                free(c);
                return NULL;
        }
        statement_cache_init(&c->statements, &c->sqlite);
        return c;
}

/* Checks if idle connections still read the file at the path, unless that was checked a moment ago. */
static bool look_at_file(Pool *pool, const EngineHint *hint, SqlError *error) {
        uint64_t now_usec = now_coarse_usec();
        FileIdentity now;

        if (hint && now_usec < pool->identified_usec + IDENTIFY_USEC)
                return true;
        if (!sqlite_connection_identify(pool->setup, &now, error))
                return false;
        pool->identified_usec = now_usec;
        drop_stale(pool, &now);
        return true;
}

bool pool_take(Pool *pool, const char *sql, size_t sql_size, const EngineHint *hint, PooledConnection **ret,
               SqlError *error) {
        if (!look_at_file(pool, hint, error))
                return false;
        /* tries each idle connection, and then a new one; if that is stale at once, too, the schema keeps changing */
        for (unsigned n = 0; n <= N_IDLE_MAX + 1; n++) {
                PooledConnection *c = take_idle(pool, sql, sql_size, hint) ?: open_fresh(pool, false, error);
                SqliteBegin begun;

                if (!c)
                        return false;
                begun = sqlite_connection_begin(&c->sqlite, error);
                if (begun == SQLITE_CONNECTION_BEGUN) {
                        *ret = c;
                        return true;
                }
                if (begun == SQLITE_CONNECTION_FAILED) {
                        pool_give(pool, c);
                        return false;
                }
                (void) connection_free(c);
        }
        return sql_error_set(error, ERROR_BUSY, "the schema of this database keeps changing: try again");
}

/* If a statement fails while it is reset, as one of FTS5 may, SQLite rolls back, but keeps a read transaction that belongs
 * to no statement. */
static bool keeps_transaction(const SqliteConnection *c) {
        return sqlite3_txn_state(c->file, NULL) != SQLITE_TXN_NONE;
}

/* Keeps the connection that writes for its next transaction, or closes it. */
static void rest_writer(Pool *pool) {
        PooledConnection *w = pool->writer;

        sqlite_write_rollback(&w->sqlite);
        sqlite_connection_end(&w->sqlite);
        pool->writing = false;
        if (w->sqlite.doubtful || keeps_transaction(&w->sqlite)) {
                pool->writer = connection_free(w);
                return;
        }
        w->idle_usec = now_coarse_usec();
}

/* A pause because of a large log is Busy, too. */
static bool met_lock(const SqlError *error) {
        return error->error == ERROR_BUSY && (error->extended_code & 0xff) == SQLITE_BUSY;
}

static void note_lock(Pool *pool, const SqlError *error) {
        FileState before = pool->busy_state, now = {};

        if (met_lock(error))
                sqlite_connection_state(&pool->writer->sqlite, &now);
        pool->busy_state = now;
        pool->others_commit = before.kind != FILE_STATE_UNKNOWN && now.kind != FILE_STATE_UNKNOWN &&
                !file_state_same(&before, &now);
}

static bool begin_writer(Pool *pool, bool enforces, SqlError *error) {
        uint64_t until;
        bool ok;

        if (!pool->writer)
                pool->writer = open_fresh(pool, true, error);
        if (!pool->writer)
                return false;
        pool->writing = true;
        ok = sqlite_write_begin(&pool->writer->sqlite, enforces, error);
        if (ok)
                pool->busy_state = (FileState) {};
        else
                note_lock(pool, error);
        until = !ok && pool->others_commit ? now_usec() + MOMENT_USEC : 0;
        while (!ok && met_lock(error) && now_usec() < until) {
                sql_error_done(error);
                ok = sqlite_write_begin(&pool->writer->sqlite, enforces, error);
        }
        if (!ok)
                rest_writer(pool);
        return ok;
}

/* All connections of a process share the "-shm". If the file system was read-only when the first of them opened it, none can
 * write before all are closed. True: those that were idle have been closed. */
static bool drop_read_only(Pool *pool, const SqlError *error) {
        if (error->extended_code != SQLITE_READONLY || !pool->idle)
                return false;
        while (pool->idle)
                (void) connection_free(unlink_idle(pool, &pool->idle));
        return true;
}

bool pool_begin(Pool *pool, bool enforces, PooledConnection **ret, SqlError *error) {
        bool ok;

        assert(!pool->writing);
        if (!look_at_file(pool, NULL, error))
                return false;
        ok = begin_writer(pool, enforces, error);
        if (!ok && drop_read_only(pool, error)) {
                sql_error_done(error);
                ok = begin_writer(pool, enforces, error);
        }
        if (ok)
                *ret = pool->writer;
        return ok;
}

/* Pages of TEMP tables stay in memory between statements, and many pins share HeapMax=. Without memory SQLite's 2 MB
 * hold. */
static void bound_cache(SqliteConnection *c) {
        access_pause(c->file, &c->access, true);
        (void) sqlite3_exec(c->file, "PRAGMA temp.cache_size = -512", NULL, NULL, NULL); /* KiB */
        access_pause(c->file, &c->access, false);
}

bool pool_pin(Pool *pool, PooledConnection **c, SqlError *error) {
        if (*c) {
                assert(*c == pool->writer && pool->writing);
                pool->writer = NULL;
                pool->writing = false;
                (*c)->sqlite.begun = true;
                statement_cache_clear(&(*c)->statements);
        } else {
                *c = open_fresh(pool, pool->setup->writes, error);
                if (!*c && error->error == ERROR_READ_ONLY) {
                        sql_error_done(error);
                        *c = open_fresh(pool, false, error);
                }
                if (!*c)
                        return false;
        }
        (void) sqlite3_limit((*c)->sqlite.file, SQLITE_LIMIT_ATTACHED, ATTACHED_MAX);
        (*c)->sqlite.is_pin = (*c)->sqlite.access.is_pin = (*c)->sqlite.counts.is_pin = true;
        bound_cache(&(*c)->sqlite);
        return true;
}

void pool_unpin(PooledConnection *c) {
        (void) connection_free(c);
}

bool pool_check_pin(Pool *pool, const PooledConnection *c, SqlError *error) {
        FileIdentity now;
        bool same;

        if (!sqlite_connection_identify(pool->setup, &now, error))
                return false;
        same = file_identity_equal(&now, &c->sqlite.identity) && attached_are_current(&c->sqlite.attached);
        if (same && !c->sqlite.doubtful && !c->sqlite.attached.is_stuck && !keeps_transaction(&c->sqlite))
                return true;
        return sql_error_set(error, ERROR_PIN_LOST, "%s: your TEMP tables are gone",
                             same ? "the connection of your own could not be used any more"
                                  : "the file of this database, or of one that is attached, was replaced");
}

void pool_give(Pool *pool, PooledConnection *c) {
        if (!c)
                return;
        if (c->sqlite.is_pin) {
                sqlite_write_rollback(&c->sqlite);
                sqlite_connection_end(&c->sqlite);
                c->sqlite.access.savepoints = c->sqlite.access.only_temp = false;
                (void) sqlite3_db_release_memory(c->sqlite.file); /* many pins share HeapMax= */
                return;
        }
        if (c == pool->writer) {
                rest_writer(pool);
                return;
        }
        if (!c->sqlite.exposed)
                sqlite_write_rollback(&c->sqlite); /* a snapshot */
        sqlite_connection_end(&c->sqlite);
        c->sqlite.access.savepoints = false;
        /* I4: an idle connection pins nothing, neither itself nor through exposed tables. Their COMMIT may lack the memory
         * to be compiled again. */
        if (pool->n_idle >= N_IDLE_MAX || c->sqlite.doubtful || keeps_transaction(&c->sqlite) ||
            !sqlite3_get_autocommit(c->sqlite.db)) { /* savepoints beside exposed tables */
                (void) connection_free(c);
                return;
        }
        c->idle_usec = now_coarse_usec();
        c->next = pool->idle;
        pool->idle = c;
        pool->n_idle++;
}

/* Returns when the connection that writes has been idle for long. UINT64_MAX: never. */
static uint64_t expire_writer(Pool *pool, uint64_t now) {
        if (!pool->writer || pool->writing)
                return UINT64_MAX;
        if (pool->writer->idle_usec + IDLE_USEC > now)
                return pool->writer->idle_usec + IDLE_USEC;
        pool->writer = connection_free(pool->writer);
        return UINT64_MAX;
}

/* The connection that writes is closed last: only then does SQLite delete the log. */
uint64_t pool_expire(Pool *pool, uint64_t now) {
        uint64_t next = UINT64_MAX, next_of_writer;

        for (PooledConnection **link = &pool->idle; *link;) {
                if ((*link)->idle_usec + IDLE_USEC <= now) {
                        (void) connection_free(unlink_idle(pool, link));
                        continue;
                }
                if ((*link)->idle_usec + IDLE_USEC < next)
                        next = (*link)->idle_usec + IDLE_USEC;
                link = &(*link)->next;
        }
        next_of_writer = expire_writer(pool, now);
        return next_of_writer < next ? next_of_writer : next;
}

Pool *pool_free(Pool *pool) {
        if (!pool)
                return NULL;
        assert(!pool->writing);
        while (pool->idle)
                (void) connection_free(unlink_idle(pool, &pool->idle));
        pool->writer = connection_free(pool->writer);
        observation_close(&pool->observation);
        free(pool);
        return NULL;
}
