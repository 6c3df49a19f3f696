/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See rqlite-engine.h. The engine's pool is an RqlitePool, its connection an RqliteConnection, its statement
 * an RqliteStatement. Except for the setup of the process, this file only translates.
 */
#include "daemon/worker/rqlite/rqlite-engine.h"

#include <curl/curl.h>
#include <errno.h>
#include <sqlite3.h>

#include "daemon/worker/rqlite/rqlite-observation.h"
#include "daemon/worker/rqlite/rqlite-read.h"
#include "daemon/worker/rqlite/rqlite-schema.h"
#include "daemon/worker/rqlite/rqlite-statement.h"
#include "daemon/worker/rqlite/rqlite-write.h"
#include "daemon/worker/rqlite/server-error.h"
#include "daemon/worker/sqlite/describe-statement.h"
#include "daemon/worker/sqlite/heap.h"
#include "daemon/worker/sqlite/sqlite-load.h"
#include "daemon/worker/sqlite/watched-tables.h"

static RqlitePool *pool_of(EnginePool *pool) {
        return (RqlitePool *) (void *) pool;
}

static RqliteConnection *connection_of(EngineConnection *connection) {
        return (RqliteConnection *) (void *) connection;
}

static RqliteStatement *statement_of(EngineStatement *statement) {
        return (RqliteStatement *) (void *) statement;
}

/* ---- process and pool ---- */

static int engine_init(const Setup *setup) {
        int rc = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);

        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1); /* sqlite3_memory_highwater() needs it */
        if (rc == SQLITE_OK)
                rc = heap_limit(setup->heap_size_max);
        if (rc == SQLITE_OK)
                rc = sqlite3_initialize();
        return rc == SQLITE_OK && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOTSUP;
}

static int engine_start(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret) {
        RqlitePool *pool;
        int r = rqlite_pool_new(setup, progress, userdata, &pool);

        if (r == 0)
                *ret = (EnginePool *) (void *) pool;
        return r;
}

static void engine_stop(EnginePool *pool) {
        (void) rqlite_pool_free(pool_of(pool));
}

static uint64_t engine_expire(EnginePool *pool, uint64_t now_usec) {
        return rqlite_pool_expire(pool_of(pool), now_usec);
}

static EngineConnections *engine_connections(EnginePool *pool) {
        return &pool_of(pool)->connections;
}

static bool engine_close_idle(EnginePool *pool) {
        return rqlite_pool_close_idle(pool_of(pool));
}

/* ---- connections ---- */

static bool take(RqlitePool *p, RqliteConnection **ret, SqlError *error) {
        RqliteConnection *c;

        if (!rqlite_pool_take(p, &c, error))
                return false;
        if (!p->shadow && !rqlite_schema_load(c, error)) {
                rqlite_pool_give(p, c);
                return false;
        }
        *ret = c;
        return true;
}

static bool engine_connect(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint,
                           EngineConnection **ret, SqlError *error) {
        RqliteConnection *c;

        (void) sql;
        (void) sql_size;
        (void) hint;
        if (!take(pool_of(pool), &c, error))
                return false;
        *ret = (EngineConnection *) (void *) c;
        return true;
}

static void engine_disconnect(EnginePool *pool, EngineConnection *connection) {
        rqlite_write_end(connection_of(connection));
        rqlite_pool_give(pool_of(pool), connection_of(connection));
}

/* The server has no read transactions. */
static void engine_hold(EngineConnection *connection) {
        (void) connection;
}

static bool engine_snapshot(EngineConnection *connection, SqlError *error) {
        (void) connection;
        return sql_error_set(error, ERROR_NOT_ALLOWED,
                             "transactions are not possible on rqlite: send statements that belong together as one batch");
}

static bool engine_keeps_writers_out(const EngineConnection *connection) {
        (void) connection;
        return false;
}

static void engine_trim(EngineConnection *connection) {
        (void) sqlite3_db_release_memory(connection_of(connection)->pool->shadow->sqlite.db);
}

/* ---- statements ---- */

static bool engine_compile(EngineConnection *connection, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                           EngineStatement **ret, SqlError *error) {
        RqliteStatement *s;

        (void) hint;
        if (!rqlite_statement_compile(connection_of(connection), sql, sql_size, describe, &s, error))
                return false;
        *ret = (EngineStatement *) (void *) s;
        return true;
}

static void engine_release(EngineStatement *statement) {
        RqliteStatement *s = statement_of(statement);

        if (s->is_kept)
                return;
        if (s->is_noted) {
                rqlite_write_keep(s);
                return;
        }
        rqlite_read_reset(s);
        (void) rqlite_statement_free(s);
}

static bool engine_describe(EngineStatement *statement, EngineDescription *ret, SqlError *error) {
        return describe_statement(statement_of(statement)->sqlite.stmt, ret, error);
}

static bool engine_tables(EngineStatement *statement, EngineTables *ret_read, EngineTables *ret_written, SqlError *error) {
        return sqlite_statement_tables(&statement_of(statement)->sqlite, ret_read, ret_written, error);
}

static bool engine_watched(EngineConnection *connection, const char *sql, size_t sql_size, bool names, EngineWatched *ret,
                           SqlError *error) {
        RqliteConnection *c = connection_of(connection);

        return rqlite_schema_refresh(c, error) &&
               watched_tables_find(&c->pool->shadow->cache, sql, sql_size, names, ret, error);
}

static bool engine_columns(EngineStatement *statement, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                           SqlError *error) {
        return sqlite_statement_columns(&statement_of(statement)->sqlite, page_size, ret_payload, ret_size, error);
}

static bool engine_bind(EngineStatement *statement, const JobSpec *spec, SqlError *error) {
        return rqlite_statement_bind(statement_of(statement), spec, error);
}

static EngineResult engine_step(EngineStatement *statement, RowSink *sink, SqlError *error) {
        RqliteStatement *s = statement_of(statement);

        if (!s->sqlite.writes)
                return rqlite_read_step(s, sink, error);
        sink->n_columns = s->n_columns;
        sink->row_waits = false;
        return rqlite_write_note(s, error) ? ENGINE_DONE : ENGINE_FAILED;
}

static EngineResult engine_fill(EngineStatement *statement, RowSink *sink, SqlError *error) {
        return rqlite_read_fill(statement_of(statement), sink, error);
}

static bool engine_measure(EngineStatement *statement, unsigned i, ValueType *ret_type, uint64_t *ret_size,
                           SqlError *error) {
        (void) error;
        rqlite_read_measure(statement_of(statement), i, ret_type, ret_size);
        return true;
}

static const uint8_t *engine_value(EngineStatement *statement, unsigned i, uint8_t number[static 8], SqlError *error) {
        (void) error;
        return rqlite_read_value(statement_of(statement), i, number);
}

/* The server does not report its progress. */
static void engine_counters(EngineStatement *statement, EndCounters *counters) {
        (void) statement;
        (void) counters;
}

static void engine_reset(EngineStatement *statement) {
        rqlite_read_reset(statement_of(statement));
}

/* ---- writing ---- */

static bool engine_writes(const EngineStatement *statement) {
        return ((const RqliteStatement *) (const void *) statement)->sqlite.writes;
}

static bool engine_begin(EnginePool *pool, bool enforces, EngineConnection **ret, SqlError *error) {
        RqliteConnection *c;

        if (!take(pool_of(pool), &c, error))
                return false;
        rqlite_write_begin(c);
        *ret = (EngineConnection *) (void *) c;
        return true;
}

static bool engine_commit(EngineConnection *connection, SqlError *error) {
        return rqlite_write_commit(connection_of(connection), error);
}

static void engine_rollback(EngineConnection *connection) {
        rqlite_write_end(connection_of(connection));
}

/* Clients have no transactions here, so the authorizer has refused savepoints. */
static bool engine_is_savepoint(const EngineStatement *statement) {
        (void) statement;
        return false;
}

static bool engine_is_in_transaction(const EngineConnection *connection) {
        return ((const RqliteConnection *) (const void *) connection)->in_transaction;
}

static bool engine_save(EngineConnection *connection, SqlError *error) {
        (void) error;
        rqlite_write_save(connection_of(connection));
        return true;
}

static bool engine_keep(EngineConnection *connection, SqlError *error) {
        (void) connection;
        (void) error;
        return true;
}

static void engine_undo(EngineConnection *connection) {
        rqlite_write_undo(connection_of(connection));
}

static void engine_changes(EngineStatement *statement, int64_t *ret_n_changes, int64_t *ret_last_rowid) {
        const RqliteStatement *s = statement_of(statement);

        *ret_n_changes = s->n_changes;
        *ret_last_rowid = s->last_rowid;
}

static EngineStatement *engine_outcome(EngineConnection *connection) {
        return (EngineStatement *) (void *) rqlite_write_outcome(connection_of(connection));
}

static void engine_written_by(EngineStatement *statement, EngineWritten *written) {
        sqlite_statement_written(&statement_of(statement)->sqlite, written);
}

static void engine_state(EngineConnection *connection, FileState *ret) {
        rqlite_observation_state(connection_of(connection)->pool->last_index, ret);
}

static bool engine_takes_rows(EngineStatement *statement, SqlError *error) {
        return sqlite_load_takes_rows(&statement_of(statement)->sqlite, error);
}

static bool engine_load(EngineStatement *statement, RowSource *source, SqlError *error) {
        return rqlite_write_load(statement_of(statement), source, error);
}

/* ---- observers ---- */

static void engine_observe(EnginePool *pool, int notifier_fd, Observed *ret) {
        (void) notifier_fd; /* the server sends no notifications */
        rqlite_observation_look(pool_of(pool), ret);
}

const Engine rqlite_engine = {
        .init = engine_init,
        .start = engine_start,
        .stop = engine_stop,
        .expire = engine_expire,
        .connections = engine_connections,
        .close_idle = engine_close_idle,
        .connect = engine_connect,
        .disconnect = engine_disconnect,
        .hold = engine_hold,
        .let_go = engine_hold,
        .snapshot = engine_snapshot,
        .keeps_writers_out = engine_keeps_writers_out,
        .writer_waits = engine_keeps_writers_out,
        .trim = engine_trim,
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
        .begin = engine_begin,
        .commit = engine_commit,
        .rollback = engine_rollback,
        .is_savepoint = engine_is_savepoint,
        .is_in_transaction = engine_is_in_transaction,
        .save = engine_save,
        .keep = engine_keep,
        .undo = engine_undo,
        .changes = engine_changes,
        .outcome = engine_outcome,
        .written = engine_written_by,
        .state = engine_state,
        .takes_rows = engine_takes_rows,
        .load = engine_load,
        .counters = engine_counters,
        .reset = engine_reset,
        .observe = engine_observe,
        .give_up = server_error_give_up,
};
