/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See postgresql-engine.h. The engine's pool is a PgPool, its connection a PgPooled, its statement a
 * PgStatement. This file only translates.
 */
#include "daemon/worker/postgresql/postgresql-engine.h"

#include <errno.h>

#include "daemon/worker/postgresql/pg-bind.h"
#include "daemon/worker/postgresql/pg-load.h"
#include "daemon/worker/postgresql/pg-observation.h"
#include "daemon/worker/postgresql/pg-pool.h"
#include "daemon/worker/postgresql/pg-rows.h"
#include "daemon/worker/postgresql/pg-tables.h"
#include "daemon/worker/postgresql/pg-write.h"

static PgPool *pool_of(EnginePool *pool) {
        return (PgPool *) (void *) pool;
}

static PgPooled *pooled_of(EngineConnection *connection) {
        return (PgPooled *) (void *) connection;
}

static PgConnection *connection_of(EngineConnection *connection) {
        return &pooled_of(connection)->connection;
}

static const PgConnection *readable_of(const EngineConnection *connection) {
        return &((const PgPooled *) (const void *) connection)->connection;
}

static PgStatement *statement_of(EngineStatement *statement) {
        return (PgStatement *) (void *) statement;
}

/* ---- process and pool ---- */

static int engine_init(const Setup *setup) {
        return setup->connection ? pg_server_set_defaults() : -EINVAL;
}

static int engine_start(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret) {
        PgPool *pool;
        int r = pg_pool_new(setup, progress, userdata, &pool);

        if (r == 0)
                *ret = (EnginePool *) (void *) pool;
        return r;
}

static void engine_stop(EnginePool *pool) {
        (void) pg_pool_free(pool_of(pool));
}

static uint64_t engine_expire(EnginePool *pool, uint64_t now_usec) {
        return pg_pool_expire(pool_of(pool), now_usec);
}

static EngineConnections *engine_connections(EnginePool *pool) {
        return &pool_of(pool)->connections;
}

static bool engine_close_idle(EnginePool *pool) {
        return pg_pool_close_idle(pool_of(pool));
}

static bool engine_foresee(EnginePool *pool, const JobSpec *spec, const EngineHint *hint) {
        return pg_ahead_add(&pool_of(pool)->ahead, spec, hint);
}

/* ---- connections ---- */

static bool engine_connect(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint,
                           EngineConnection **ret, SqlError *error) {
        PgPooled *p;

        if (!pg_pool_take(pool_of(pool), sql, sql_size, hint, &p, error))
                return false;
        *ret = (EngineConnection *) (void *) p;
        return true;
}

static void engine_disconnect(EnginePool *pool, EngineConnection *connection) {
        pg_pool_give(pool_of(pool), pooled_of(connection));
}

static void engine_hold(EngineConnection *connection) {
        connection_of(connection)->held = true;
}

static void engine_let_go(EngineConnection *connection) {
        PgConnection *c = connection_of(connection);

        c->held = false;
        if (!c->busy && !c->snapshot && !c->writes && c->open)
                pg_connection_roll_back(c);
}

static bool engine_snapshot(EngineConnection *connection, SqlError *error) {
        return pg_write_snapshot(connection_of(connection), error);
}

/* The server keeps old versions of rows for its readers. */
static bool engine_is_in_the_way(const EngineConnection *connection) {
        (void) connection;
        return false;
}

/* libpq has nothing that it could free. */
static void engine_trim(EngineConnection *connection) {
        (void) connection;
}

/* ---- statements ---- */

/* In a snapshot, a failure between these two does not end the transaction. */
static void guard(PgConnection *c, SqlError *error) {
        if (c->snapshot)
                (void) pg_write_save(c, error);
}

static void end_guard(PgConnection *c, bool ok, SqlError *error) {
        if (c->snapshot && (ok || !c->failed))
                (void) pg_write_keep(c, error);
        else if (c->snapshot)
                pg_write_undo(c);
}

static bool compile(PgPooled *p, const char *sql, size_t sql_size, bool describe, EngineHint *hint, PgStatement **ret,
                    SqlError *error) {
        bool ok;

        guard(&p->connection, error);
        ok = pg_statements_compile(&p->statements, sql, sql_size, describe, hint, ret, error);
        end_guard(&p->connection, ok, error);
        return ok;
}

/* If the connection was lost before anything was done on it, another one takes its place. */
static bool engine_compile(EngineConnection *connection, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                           EngineStatement **ret, SqlError *error) {
        PgPooled *p = pooled_of(connection);
        bool begun = p->connection.begun;
        PgStatement *s;
        bool ok = compile(p, sql, sql_size, describe, hint, &s, error);

        if (!ok && !begun && error->error == ERROR_SERVER_UNREACHABLE && pg_pool_reopen(p, error))
                ok = compile(p, sql, sql_size, describe, hint, &s, error);
        if (ok)
                *ret = (EngineStatement *) (void *) s;
        return ok;
}

static void engine_release(EngineStatement *statement) {
        pg_rows_reset(statement_of(statement));
        pg_statement_release(statement_of(statement));
}

static bool engine_describe(EngineStatement *statement, EngineDescription *ret, SqlError *error) {
        return pg_statement_describe(statement_of(statement), ret, error);
}

static bool engine_tables(EngineStatement *statement, EngineTables *ret_read, EngineTables *ret_written, SqlError *error) {
        return pg_tables_of(statement_of(statement), ret_read, ret_written, error);
}

static bool engine_watched(EngineConnection *connection, const char *sql, size_t sql_size, bool names, EngineWatched *ret,
                           SqlError *error) {
        return pg_tables_watched(connection_of(connection), sql, sql_size, names, ret, error);
}

static bool engine_columns(EngineStatement *statement, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                           SqlError *error) {
        return pg_statement_columns(statement_of(statement), page_size, ret_payload, ret_size, error);
}

/* The column that a parameter is for may have another type since the statement was prepared. The server, which never sees a
 * value that is refused here, cannot tell that. */
static bool engine_bind(EngineStatement *statement, const JobSpec *spec, SqlError *error) {
        PgStatement *s = statement_of(statement);
        PgPooled *p = pg_pooled_of(s);
        bool ok;

        s->spec = spec;
        if (pg_ahead_take(p, s, spec) || pg_bind(s, spec, error))
                return true;
        if (error->error != ERROR_PARAMETER_TYPE)
                return false;
        sql_error_done(error);
        guard(&p->connection, error);
        pg_statement_forget(s);
        ok = pg_statement_prepare(s, error);
        end_guard(&p->connection, ok, error);
        return ok && pg_bind(s, spec, error);
}

static EngineResult engine_step(EngineStatement *statement, RowSink *sink, SqlError *error) {
        return pg_rows_step(statement_of(statement), sink, error);
}

static EngineResult engine_fill(EngineStatement *statement, RowSink *sink, SqlError *error) {
        return pg_rows_fill(statement_of(statement), sink, error);
}

static int engine_awaited_fd(const EngineConnection *connection) {
        return PQsocket(readable_of(connection)->pq);
}

static bool engine_measure(EngineStatement *statement, unsigned i, ValueType *ret_type, uint64_t *ret_size,
                           SqlError *error) {
        return pg_rows_measure(statement_of(statement), i, ret_type, ret_size, error);
}

static const uint8_t *engine_value(EngineStatement *statement, unsigned i, uint8_t number[static 8], SqlError *error) {
        return pg_rows_value(statement_of(statement), i, number, error);
}

/* The server reports none of these. */
static void engine_counters(EngineStatement *statement, EndCounters *counters) {
        (void) statement;
        (void) counters;
}

static void engine_reset(EngineStatement *statement) {
        pg_rows_reset(statement_of(statement));
}

/* ---- writing ---- */

static bool engine_writes(const EngineStatement *statement) {
        return pg_statement_writes((const PgStatement *) (const void *) statement);
}

static bool engine_begin(EnginePool *pool, bool enforces, EngineConnection **ret, SqlError *error) {
        PgPooled *p;

        if (!pg_pool_take(pool_of(pool), "", 0, NULL, &p, error))
                return false;
        if (!pg_write_begin(&p->connection, error)) {
                pg_pool_give(pool_of(pool), p);
                return false;
        }
        *ret = (EngineConnection *) (void *) p;
        return true;
}

static bool engine_commit(EngineConnection *connection, SqlError *error) {
        return pg_write_commit(connection_of(connection), error);
}

static void engine_rollback(EngineConnection *connection) {
        pg_connection_roll_back(connection_of(connection));
}

static void engine_allow_savepoints(EngineConnection *connection) {
        pg_write_allow_savepoints(connection_of(connection));
}

static bool engine_is_savepoint(const EngineStatement *statement) {
        return ((const PgStatement *) (const void *) statement)->text.command == PG_COMMAND_SAVEPOINT;
}

static bool engine_is_in_transaction(const EngineConnection *connection) {
        return pg_write_is_in_transaction(readable_of(connection));
}

static bool engine_save(EngineConnection *connection, SqlError *error) {
        return pg_write_save(connection_of(connection), error);
}

static bool engine_keep(EngineConnection *connection, SqlError *error) {
        return pg_write_keep(connection_of(connection), error);
}

static void engine_undo(EngineConnection *connection) {
        pg_write_undo(connection_of(connection));
}

static bool engine_must_commit(const EngineConnection *connection) {
        return readable_of(connection)->sets;
}

/* The server has no rowids. */
static void engine_changes(EngineStatement *statement, int64_t *ret_n_changes, int64_t *ret_last_rowid) {
        const PgStatement *s = statement_of(statement);

        *ret_n_changes = s->text.command == PG_COMMAND_ROWS ? s->n_changes : 0;
        *ret_last_rowid = 0;
}

static void engine_written_by(EngineStatement *statement, EngineWritten *written) {
        pg_tables_written(statement_of(statement), written);
}

static void engine_state(EngineConnection *connection, FileState *ret) {
        pg_write_state(connection_of(connection), ret);
}

static bool engine_takes_rows(EngineStatement *statement, SqlError *error) {
        return pg_load_takes_rows(statement_of(statement), error);
}

static bool engine_load(EngineStatement *statement, RowSource *source, SqlError *error) {
        PgStatement *s = statement_of(statement);

        if (pg_load(s, source, error))
                return true;
        if (error->error == ERROR_PARAMETER_TYPE) /* as engine_bind(), for the next load: rows of this one are gone */
                pg_statement_forget(s);
        return false;
}

/* ---- observers ---- */

static void engine_observe(EnginePool *pool, int notifier_fd, Observed *ret) {
        (void) notifier_fd;
        pg_observation_look(pool_of(pool), ret);
}

static int engine_listening_fd(EnginePool *pool) {
        return pg_observation_fd(pool_of(pool));
}

static bool engine_heard(EnginePool *pool) {
        return pg_observation_heard(pool_of(pool));
}

/* ---- errors ---- */

/* Other reasons are the server's, or that its connections are in use. */
static void engine_give_up(SqlError *error) {
        pg_pool_give_up(error);
}

const Engine postgresql_engine = {
        .init = engine_init,
        .start = engine_start,
        .stop = engine_stop,
        .expire = engine_expire,
        .connections = engine_connections,
        .close_idle = engine_close_idle,
        .foresee = engine_foresee,
        .connect = engine_connect,
        .disconnect = engine_disconnect,
        .hold = engine_hold,
        .let_go = engine_let_go,
        .snapshot = engine_snapshot,
        .keeps_writers_out = engine_is_in_the_way,
        .writer_waits = engine_is_in_the_way,
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
        .awaited_fd = engine_awaited_fd,
        .measure = engine_measure,
        .value = engine_value,
        .writes = engine_writes,
        .begin = engine_begin,
        .commit = engine_commit,
        .rollback = engine_rollback,
        .allow_savepoints = engine_allow_savepoints,
        .is_savepoint = engine_is_savepoint,
        .is_in_transaction = engine_is_in_transaction,
        .save = engine_save,
        .keep = engine_keep,
        .undo = engine_undo,
        .must_commit = engine_must_commit,
        .changes = engine_changes,
        .written = engine_written_by,
        .state = engine_state,
        .state_is_remote = true,
        .takes_rows = engine_takes_rows,
        .load = engine_load,
        .counters = engine_counters,
        .reset = engine_reset,
        .observe = engine_observe,
        .listening_fd = engine_listening_fd,
        .heard = engine_heard,
        .give_up = engine_give_up,
};
