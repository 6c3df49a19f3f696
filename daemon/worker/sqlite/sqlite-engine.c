/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-engine.h. The engine's pool is a Pool, its connection a PooledConnection, its statement an
 * SqliteStatement. Except for the setup of the process, this file only translates.
 */
#include "daemon/worker/sqlite/sqlite-engine.h"

#include <errno.h>
#include <sqlite3.h>

#include "daemon/worker/sqlite/bind.h"
#include "daemon/worker/sqlite/describe-statement.h"
#include "daemon/worker/sqlite/heap.h"
#include "daemon/worker/sqlite/local-time.h"
#include "daemon/worker/sqlite/observation.h"
#include "daemon/worker/sqlite/pool.h"
#include "daemon/worker/sqlite/sqlite-load.h"
#include "daemon/worker/sqlite/sqlite-rows.h"
#include "daemon/worker/sqlite/sqlite-write.h"
#include "daemon/worker/sqlite/vfs.h"
#include "daemon/worker/sqlite/watched-tables.h"

/* Pages (1 MiB) that a sorter fills before it uses a temporary file. When it merges these pieces, it keeps a buffer of a
 * page and a row for each piece as long as it lives: for 200 MB of rows 1.1 MiB. With half as many pages the buffers would
 * take twice that. */
#define SORTER_PAGES 256

static Pool *pool_of(EnginePool *pool) {
        return (Pool *) (void *) pool;
}

static PooledConnection *connection_of(EngineConnection *connection) {
        return (PooledConnection *) (void *) connection;
}

static const SqliteConnection *readable_of(const EngineConnection *connection) {
        return &((const PooledConnection *) (const void *) connection)->sqlite;
}

static SqliteStatement *statement_of(EngineStatement *statement) {
        return (SqliteStatement *) (void *) statement;
}

/* ---- process and pool ---- */

/* Returns an SQLite result code. */
static int configure(const Setup *setup) {
        int rc;

        rc = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
        if (rc == SQLITE_OK) /* a name in ATTACH is no URI, which could name another VFS */
                rc = sqlite3_config(SQLITE_CONFIG_URI, 0);
        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1); /* sqlite3_memory_highwater() needs it */
        if (rc == SQLITE_OK)
                rc = heap_limit(setup->heap_size_max);
        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_PMASZ, SORTER_PAGES);
        if (rc == SQLITE_OK) /* allocates row by row: one large block would outlive its rows, which go to a file */
                rc = sqlite3_config(SQLITE_CONFIG_SMALL_MALLOC, 1);
        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_MMAP_SIZE, (sqlite3_int64) 0, (sqlite3_int64) 0);
        if (rc == SQLITE_OK)
                rc = sqlite3_initialize();
        return rc == SQLITE_OK ? vfs_register(setup->temp_size_max) : rc;
}

static int engine_init(const Setup *setup) {
        return configure(setup) == SQLITE_OK ? 0 : -ENOTSUP;
}

static int engine_start(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret) {
        Pool *pool;
        int r = pool_new(setup, progress, userdata, &pool);

        if (r == 0)
                *ret = (EnginePool *) (void *) pool;
        return r;
}

static void engine_stop(EnginePool *pool) {
        (void) pool_free(pool_of(pool));
}

static uint64_t engine_expire(EnginePool *pool, uint64_t now_usec) {
        return pool_expire(pool_of(pool), now_usec);
}

/* ---- connections ---- */

static bool engine_connect(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint,
                           EngineConnection **ret, SqlError *error) {
        PooledConnection *c;

        if (!pool_take(pool_of(pool), sql, sql_size, hint, &c, error))
                return false;
        *ret = (EngineConnection *) (void *) c;
        return true;
}

static void engine_disconnect(EnginePool *pool, EngineConnection *connection) {
        pool_give(pool_of(pool), connection_of(connection));
}

static void engine_hold(EngineConnection *connection) {
        sqlite_connection_hold(&connection_of(connection)->sqlite);
}

static void engine_let_go(EngineConnection *connection) {
        sqlite_connection_let_go(&connection_of(connection)->sqlite);
}

static bool engine_snapshot(EngineConnection *connection, SqlError *error) {
        return sqlite_write_snapshot(&connection_of(connection)->sqlite, error);
}

static bool engine_is_current(EngineConnection *connection, SqlError *error) {
        return sqlite_write_is_current(&connection_of(connection)->sqlite, error);
}

static bool engine_keeps_writers_out(const EngineConnection *connection) {
        return sqlite_connection_keeps_writers_out(readable_of(connection));
}

static bool engine_keeps_log(const EngineConnection *connection) {
        return sqlite_connection_keeps_log(readable_of(connection));
}

static bool engine_writer_waits(const EngineConnection *connection) {
        return sqlite_connection_writer_waits(readable_of(connection));
}

static void engine_trim(EngineConnection *connection) {
        (void) sqlite3_db_release_memory(readable_of(connection)->db);
        (void) sqlite3_db_release_memory(readable_of(connection)->file);
}

static void engine_set_client(EngineConnection *connection, ForeignKeys foreign_keys, bool keeps, bool in_transaction) {
        Access *access = &connection_of(connection)->sqlite.access;

        access->foreign_keys = foreign_keys;
        access->keeps_settings = keeps;
        access->in_transaction = in_transaction;
}

/* ---- statements ---- */

static bool engine_compile(EngineConnection *connection, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                           EngineStatement **ret, SqlError *error) {
        StatementCache *cache = &connection_of(connection)->statements;
        SqliteStatement *s;

        if (describe)
                (void) statement_cache_refresh(cache);
        if (!statement_cache_compile(cache, sql, sql_size, hint, &s, error))
                return false;
        *ret = (EngineStatement *) (void *) s;
        return true;
}

static void engine_release(EngineStatement *statement) {
        sqlite_statement_release(statement_of(statement));
}

static bool engine_describe(EngineStatement *statement, EngineDescription *ret, SqlError *error) {
        return describe_statement(statement_of(statement)->stmt, ret, error);
}

static bool engine_tables(EngineStatement *statement, EngineTables *ret_read, EngineTables *ret_written, SqlError *error) {
        return sqlite_statement_tables(statement_of(statement), ret_read, ret_written, error);
}

static bool engine_watched(EngineConnection *connection, const char *sql, size_t sql_size, bool names, EngineWatched *ret,
                           SqlError *error) {
        return watched_tables_find(&connection_of(connection)->statements, sql, sql_size, names, ret, error);
}

static bool engine_columns(EngineStatement *statement, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                           SqlError *error) {
        return sqlite_statement_columns(statement_of(statement), page_size, ret_payload, ret_size, error);
}

static bool engine_bind(EngineStatement *statement, const JobSpec *spec, SqlError *error) {
        return bind_parameters(statement_of(statement)->connection->db, statement_of(statement)->stmt, spec, error);
}

static EngineResult engine_step(EngineStatement *statement, RowSink *sink, SqlError *error) {
        return sqlite_rows_step(statement_of(statement), sink, error);
}

static EngineResult engine_fill(EngineStatement *statement, RowSink *sink, SqlError *error) {
        return sqlite_rows_fill(statement_of(statement), sink, error);
}

static bool engine_measure(EngineStatement *statement, unsigned i, ValueType *ret_type, uint64_t *ret_size,
                           SqlError *error) {
        return sqlite_rows_measure(statement_of(statement), i, ret_type, ret_size, error);
}

static const uint8_t *engine_value(EngineStatement *statement, unsigned i, uint8_t number[static 8], SqlError *error) {
        return sqlite_rows_value(statement_of(statement), i, number, error);
}

static void engine_counters(EngineStatement *statement, EndCounters *counters) {
        sqlite3_stmt *stmt = statement_of(statement)->stmt;

        counters->vm_steps += (uint64_t) sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
        counters->fullscan_steps += (uint64_t) sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
        counters->sorts += (uint64_t) sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_SORT, 1);
        counters->autoindexes += (uint64_t) sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_AUTOINDEX, 1);
        counters->foreign_keys = statement_of(statement)->foreign_keys;
}

static void engine_reset(EngineStatement *statement) {
        SqliteStatement *s = statement_of(statement);

        (void) access_reset(&s->connection->access, s->stmt);
}

/* ---- writing ---- */

static bool engine_writes(const EngineStatement *statement) {
        return ((const SqliteStatement *) (const void *) statement)->writes;
}

static bool engine_does_nothing(const EngineStatement *statement) {
        return ((const SqliteStatement *) (const void *) statement)->does_nothing;
}

static bool engine_begin(EnginePool *pool, bool enforces, EngineConnection **ret, SqlError *error) {
        PooledConnection *c;

        if (!pool_begin(pool_of(pool), enforces, &c, error))
                return false;
        c->sqlite.access.savepoints = false;
        *ret = (EngineConnection *) (void *) c;
        engine_set_client(*ret, enforces ? FOREIGN_KEYS_ON : FOREIGN_KEYS_OFF, true, true);
        return true;
}

static bool engine_others_commit(const EnginePool *pool) {
        return ((const Pool *) (const void *) pool)->others_commit;
}

static bool engine_commit(EngineConnection *connection, SqlError *error) {
        return sqlite_write_commit(&connection_of(connection)->sqlite, error);
}

static void engine_rollback(EngineConnection *connection) {
        sqlite_write_rollback(&connection_of(connection)->sqlite);
}

static void engine_allow_savepoints(EngineConnection *connection) {
        connection_of(connection)->sqlite.access.savepoints = true;
}

static bool engine_is_savepoint(const EngineStatement *statement) {
        return ((const SqliteStatement *) (const void *) statement)->is_savepoint;
}

static bool engine_runs_alone(const EngineStatement *statement) {
        return ((const SqliteStatement *) (const void *) statement)->runs_alone;
}

static bool engine_leave_transaction(EngineConnection *connection, EngineCommitting committing, void *userdata,
                                     SqlError *error) {
        SqliteConnection *c = &connection_of(connection)->sqlite;

        c->access.in_transaction = false;
        return sqlite_write_leave(c, committing, userdata, error);
}

static bool engine_is_in_transaction(const EngineConnection *connection) {
        return sqlite_write_is_in_transaction(readable_of(connection));
}

static bool engine_save(EngineConnection *connection, SqlError *error) {
        return sqlite_write_save(&connection_of(connection)->sqlite, error);
}

static bool engine_keep(EngineConnection *connection, SqlError *error) {
        return sqlite_write_keep(&connection_of(connection)->sqlite, error);
}

static void engine_undo(EngineConnection *connection) {
        sqlite_write_undo(&connection_of(connection)->sqlite);
}

/* EXPLAIN of a statement that changes rows sets changes() to 0. */
static bool engine_keeps_rows(EngineStatement *statement, const SqlError *error) {
        const SqliteStatement *s = statement_of(statement);
        SqliteCounts *counts = &s->connection->counts;
        const ClientCounts before = sqlite_counts_leave(counts);
        bool keeps = (error->extended_code & 0xff) == SQLITE_CONSTRAINT && sqlite_statement_may_keep_rows(s);

        sqlite_counts_enter(counts, &before);
        return keeps;
}

static void engine_changes(EngineStatement *statement, int64_t *ret_n_changes, int64_t *ret_last_rowid) {
        const SqliteStatement *s = statement_of(statement);

        *ret_n_changes = s->changes_rows ? sqlite3_changes64(s->connection->file) : 0;
        *ret_last_rowid = sqlite3_last_insert_rowid(s->connection->file);
}

static void engine_enter(EngineConnection *connection, const ClientCounts *counts) {
        sqlite_counts_enter(&connection_of(connection)->sqlite.counts, counts);
}

static void engine_leave(EngineConnection *connection, ClientCounts *ret) {
        *ret = sqlite_counts_leave(&connection_of(connection)->sqlite.counts);
}

static void engine_written_by(EngineStatement *statement, EngineWritten *written) {
        sqlite_statement_written(statement_of(statement), written);
}

static void engine_state(EngineConnection *connection, FileState *ret) {
        sqlite_connection_state(&connection_of(connection)->sqlite, ret);
}

static bool engine_attaches(const EngineStatement *statement) {
        return ((const SqliteStatement *) (const void *) statement)->attaches;
}

static const char *engine_wants(const EngineConnection *connection) {
        const AttachedSet *set = &readable_of(connection)->attached;

        return set->wanted[0] ? set->wanted : NULL;
}

static void engine_answer(EngineConnection *connection, const Attach *answer) {
        attached_answer(&connection_of(connection)->sqlite.attached, answer);
}

static bool engine_takes_rows(EngineStatement *statement, SqlError *error) {
        return sqlite_load_takes_rows(statement_of(statement), error);
}

static bool engine_load(EngineStatement *statement, RowSource *source, SqlError *error) {
        return sqlite_load(statement_of(statement), source, error);
}

/* ---- pins ---- */

static bool engine_pin(EnginePool *pool, EngineConnection **connection, SqlError *error) {
        PooledConnection *c = *connection ? connection_of(*connection) : NULL;

        if (pool_of(pool)->setup->n_exposed > 0)
                return sql_error_set(error, ERROR_NOT_ALLOWED, "a database with Expose= has no TEMP tables");
        if (!pool_pin(pool_of(pool), &c, error))
                return false;
        *connection = (EngineConnection *) (void *) c;
        return true;
}

static void engine_unpin(EngineConnection *connection) {
        pool_unpin(connection_of(connection));
}

static bool engine_check_pin(EnginePool *pool, EngineConnection *connection, SqlError *error) {
        return pool_check_pin(pool_of(pool), connection_of(connection), error);
}

static bool engine_begin_pin(EngineConnection *connection, PinBegin how, bool enforces, bool only_temp, SqlError *error) {
        SqliteConnection *c = &connection_of(connection)->sqlite;
        bool ok = how == PIN_BEGIN_TEMP    ? sqlite_write_begin_temp(c, enforces, error)
                  : how == PIN_BEGIN_WRITE ? sqlite_write_begin(c, enforces, error)
                                           : sqlite_write_upgrade(c, error);

        if (!ok)
                return false;
        c->access.savepoints = true;
        c->access.only_temp = only_temp;
        engine_set_client(connection, enforces ? FOREIGN_KEYS_ON : FOREIGN_KEYS_OFF, true, true);
        return true;
}

static bool engine_commit_temp(EngineConnection *connection, SqlError *error) {
        return sqlite_write_commit_temp(&connection_of(connection)->sqlite, error);
}

static bool engine_only_temp(const EngineStatement *statement) {
        return ((const SqliteStatement *) (const void *) statement)->only_temp;
}

/* ---- observers ---- */

static void engine_observe(EnginePool *pool, int notifier_fd, Observed *ret) {
        observation_look(pool_of(pool), notifier_fd, ret);
}

/* ---- errors ---- */

static void engine_give_up(SqlError *error) {
        int code = error->extended_code;

        if (code == SQLITE_PROTOCOL) /* a log that cannot be read for so long was left so by a writer that died */
                (void) sql_error_set(error, ERROR_NEEDS_OWNER,
                                     "the \"-wal\" and \"-shm\" files of this WAL database are in a state that only a "
                                     "writer can repair. Open the database once with a program that may write to it.");
        else
                (void) sql_error_set(error, ERROR_BUSY,
                                     "other programs keep the database locked (BusyTimeoutSec= passed): try again later");
        error->extended_code = code == SQLITE_PROTOCOL ? SQLITE_PROTOCOL : SQLITE_BUSY;
}

const Engine sqlite_engine = {
        .init = engine_init,
        .start = engine_start,
        .stop = engine_stop,
        .expire = engine_expire,
        .connect = engine_connect,
        .disconnect = engine_disconnect,
        .hold = engine_hold,
        .let_go = engine_let_go,
        .snapshot = engine_snapshot,
        .is_current = engine_is_current,
        .keeps_writers_out = engine_keeps_writers_out,
        .keeps_log = engine_keeps_log,
        .writer_waits = engine_writer_waits,
        .trim = engine_trim,
        .set_client = engine_set_client,
        .set_time_zone = local_time_set_zone,
        .compile = engine_compile,
        .release = engine_release,
        .describe = engine_describe,
        .tables = engine_tables,
        .watched = engine_watched,
        .columns = engine_columns,
        .bind = engine_bind,
        .step = engine_step,
        .fill = engine_fill,
        .measure = engine_measure,
        .value = engine_value,
        .writes = engine_writes,
        .does_nothing = engine_does_nothing,
        .begin = engine_begin,
        .others_commit = engine_others_commit,
        .commit = engine_commit,
        .rollback = engine_rollback,
        .allow_savepoints = engine_allow_savepoints,
        .is_savepoint = engine_is_savepoint,
        .runs_alone = engine_runs_alone,
        .leave_transaction = engine_leave_transaction,
        .is_in_transaction = engine_is_in_transaction,
        .save = engine_save,
        .keep = engine_keep,
        .undo = engine_undo,
        .keeps_rows = engine_keeps_rows,
        .changes = engine_changes,
        .enter = engine_enter,
        .leave = engine_leave,
        .written = engine_written_by,
        .state = engine_state,
        .takes_rows = engine_takes_rows,
        .load = engine_load,
        .pin = engine_pin,
        .unpin = engine_unpin,
        .check_pin = engine_check_pin,
        .begin_pin = engine_begin_pin,
        .commit_temp = engine_commit_temp,
        .only_temp = engine_only_temp,
        .attaches = engine_attaches,
        .wants = engine_wants,
        .answer = engine_answer,
        .counters = engine_counters,
        .reset = engine_reset,
        .observe = engine_observe,
        .give_up = engine_give_up,
};
