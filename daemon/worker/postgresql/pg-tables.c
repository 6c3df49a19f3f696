/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-tables.h. From top to bottom: the questions, the locks of a parse, watches, what was written.
 */
#include "daemon/worker/postgresql/pg-tables.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/worker/postgresql/pg-error.h"

/* ---- the questions ---- */

#define OWN_LOCKS                                                                                                     \
        "pg_catalog.pg_locks WHERE locktype = 'relation' AND pid = pg_catalog.pg_backend_pid() AND database = "       \
        "(SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())"
#define NAMES                                                                                                         \
        "n.nspname || '.' || c.relname, CASE WHEN pg_catalog.pg_table_is_visible(c.oid) "                             \
        "THEN c.relname::pg_catalog.text ELSE n.nspname || '.' || c.relname END"
#define TABLES                                                                                                        \
        "JOIN pg_catalog.pg_class c ON c.oid = t.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "       \
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'pg_toast')"

/* Columns: the whole name, that for clients, and if the statement writes the table. */
static const char locked[] =
        "WITH RECURSIVE t(oid, writes) AS ("
        "SELECT relation, mode NOT IN ('AccessShareLock', 'RowShareLock') FROM " OWN_LOCKS
        " UNION SELECT i.inhrelid, t.writes FROM t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid) "
        "SELECT " NAMES ", pg_catalog.bool_or(t.writes) FROM t " TABLES " GROUP BY 1, 2";

/* Columns: the whole name, that for clients, if it has triggers of users, and if the transaction has a number. */
static const char written[] =
        "WITH RECURSIVE t(oid) AS ("
        "SELECT relation FROM " OWN_LOCKS " AND mode NOT IN ('AccessShareLock', 'RowShareLock') "
        "UNION SELECT x.oid FROM t JOIN LATERAL ("
        "SELECT i.inhrelid AS oid FROM pg_catalog.pg_inherits i WHERE i.inhparent = t.oid UNION ALL "
        "SELECT k.conrelid FROM pg_catalog.pg_constraint k WHERE k.confrelid = t.oid AND k.contype = 'f' AND "
        "(k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))) x ON true) "
        "SELECT " NAMES ", EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal "
        "AND g.tgfoid NOT IN (SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.proname = 'sqlipc_changed')), "
        "pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL FROM t " TABLES;

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static bool lose(PgConnection *c, SqlError *error) {
        c->lost = c->broken = true;
        return pg_error_lost(error, c->pq);
}

static bool send(PgConnection *c, const char *sql, SqlError *error) {
        return PQsendQueryParams(c->pq, sql, 0, NULL, NULL, NULL, NULL, 0) == 1 || lose(c, error);
}

/* Reads to the NULL after a command. *ret: its rows, which the caller clears; NULL: it failed or has none. */
static bool read_command(PgConnection *c, const PgText *text, PGresult **ret, SqlError *error) {
        PGresult *result;

        *ret = NULL;
        for (;;) {
                if (!pg_connection_next(c, &result, error)) {
                        PQclear(*ret);
                        *ret = NULL;
                        return false;
                }
                if (!result)
                        return true;
                if (PQresultStatus(result) == PGRES_FATAL_ERROR)
                        (void) pg_error_take(error, result, text);
                if (PQresultStatus(result) == PGRES_TUPLES_OK && !*ret)
                        *ret = result;
                else
                        PQclear(result);
        }
}

/* ---- the locks of a parse ---- */

static bool add_names(const PGresult *rows, EngineTables *read, EngineTables *wrote, EngineTables *shown, SqlError *error) {
        for (int i = 0; i < PQntuples(rows); i++) {
                bool writes = PQgetvalue(rows, i, 2)[0] == 't';

                if (engine_tables_add(writes ? wrote : read, PQgetvalue(rows, i, 0)) < 0 ||
                    (shown && engine_tables_add(shown, PQgetvalue(rows, i, 1)) < 0))
                        return out_of_memory(error);
        }
        return true;
}

/* Parses in a transaction of its own, or in the one that is open; then its locks are among the answer. */
static bool send_parse(PgConnection *c, const char *sql, SqlError *error) {
        bool alone = !c->open;

        if (alone)
                pg_connection_order(c, PG_ORDER_BEGIN_READ);
        if (!pg_connection_send_orders(c, error))
                return false;
        if (PQsendPrepare(c->pq, "", sql, 0, NULL) != 1)
                return lose(c, error);
        if (!send(c, locked, error) || (alone && !pg_connection_send_last(c, PG_ORDER_ROLLBACK, error)))
                return false;
        return pg_connection_flush(c, error);
}

/* `text` NULL: the SQL is ours. */
static bool find_locked(PgConnection *c, const char *sql, const PgText *text, EngineTables *read, EngineTables *wrote,
                        EngineTables *shown, SqlError *error) {
        bool alone = !c->open, ok;
        PGresult *rows = NULL, *none;

        if (!send_parse(c, sql, error))
                return false;
        ok = pg_connection_read_orders(c, error) && read_command(c, text, &none, error) &&
             read_command(c, NULL, &rows, error);
        if (!c->broken)
                ok = pg_connection_finish(c, error) && ok;
        ok = ok && rows && error->error == ERROR_NONE && add_names(rows, read, wrote, shown, error);
        PQclear(rows);
        if (alone)
                pg_connection_roll_back(c); /* if the parse has failed, the transaction is still there */
        return ok;
}

bool pg_tables_of(PgStatement *s, EngineTables *ret_read, EngineTables *ret_written, SqlError *error) {
        EngineTables read = {}, wrote = {};

        if (!find_locked(s->cache->connection, s->text.sql, &s->text, &read, &wrote, NULL, error)) {
                engine_tables_done(&read);
                engine_tables_done(&wrote);
                return false;
        }
        *ret_read = read;
        *ret_written = wrote;
        return true;
}

/* ---- watches ---- */

static bool add_statement(PgConnection *c, const char *sql, size_t sql_size, EngineWatched *w, SqlError *error) {
        PgEffects effects = {};
        PgText text;
        bool ok;

        if (!engine_check_sql_size(c->setup, sql_size, error) ||
            !pg_text_read(sql, sql_size, c->setup->variables_max, &text, error))
                return false;
        ok = !text.calls || pg_effects_ask(c, text.calls, &effects, error);
        if (ok && ((text.command != PG_COMMAND_READ && text.command != PG_COMMAND_UNKNOWN) || pg_effects_count(&effects, c)))
                ok = sql_error_set(error, ERROR_NOT_ALLOWED, "a statement that writes cannot be watched: give its tables");
        ok = ok && find_locked(c, text.sql, &text, &w->tables, &w->tables, &w->names, error);
        pg_text_done(&text);
        return ok;
}

/* The name as the server writes it in SQL. The caller frees it. NULL: there is no such table. */
static char *resolve(PgConnection *c, const char *name, SqlError *error) {
        static const char sql[] = "SELECT pg_catalog.to_regclass($1)::pg_catalog.text";
        const char *const values[] = { name };
        PGresult *rows = NULL;
        char *found = NULL;

        if (!pg_connection_send_orders(c, error))
                return NULL;
        if (PQsendQueryParams(c->pq, sql, 1, NULL, values, NULL, NULL, 0) != 1) {
                (void) lose(c, error);
                return NULL;
        }
        if (!pg_connection_flush(c, error) || !pg_connection_read_orders(c, error) || !read_command(c, NULL, &rows, error))
                return NULL;
        if (rows && PQntuples(rows) == 1 && !PQgetisnull(rows, 0, 0))
                found = strdup(PQgetvalue(rows, 0, 0));
        PQclear(rows);
        (void) pg_connection_finish(c, error);
        if (!found)
                (void) (error->error != ERROR_NONE ||
                        sql_error_set(error, ERROR_SQL, "there is no table or view \"%s\"", name));
        return found;
}

static bool add_table(PgConnection *c, const char *name, EngineWatched *w, SqlError *error) {
        char *found = resolve(c, name, error), *sql = NULL;
        bool ok;

        if (!found)
                return false;
        ok = asprintf(&sql, "SELECT * FROM %s", found) >= 0 || out_of_memory(error);
        free(found);
        ok = ok && find_locked(c, sql, NULL, &w->tables, &w->tables, &w->names, error);
        free(sql);
        return ok;
}

bool pg_tables_watched(PgConnection *c, const char *sql, size_t sql_size, bool names, EngineWatched *ret, SqlError *error) {
        const char *end = sql + sql_size;
        EngineWatched w = {};
        bool ok = true;

        if (!names)
                ok = add_statement(c, sql, sql_size, &w, error);
        for (const char *name = sql; names && ok && name < end; name += strlen(name) + 1)
                ok = add_table(c, name, &w, error);
        if (!ok) {
                engine_tables_done(&w.tables);
                engine_tables_done(&w.names);
                return false;
        }
        *ret = w;
        return true;
}

/* ---- what was written ---- */

static bool ask_for_written(PgStatement *s, bool *ret_numbered, SqlError *error) {
        PgConnection *c = s->cache->connection;
        PGresult *rows = NULL;
        bool ok = true;

        if (!pg_connection_send_orders(c, error) || !send(c, written, error) || !pg_connection_flush(c, error) ||
            !pg_connection_read_orders(c, error) || !read_command(c, NULL, &rows, error))
                return false;
        engine_tables_done(&s->written);
        s->written_any = !rows;
        for (int i = 0; rows && i < PQntuples(rows); i++) {
                ok = ok && engine_tables_add(&s->written, PQgetvalue(rows, i, 0)) == 0;
                s->written_any = s->written_any || PQgetvalue(rows, i, 2)[0] == 't';
                *ret_numbered = PQgetvalue(rows, i, 3)[0] == 't';
        }
        PQclear(rows);
        return pg_connection_finish(c, error) && ok && error->error == ERROR_NONE;
}

/* The locks are those of the whole transaction. If the statement was its first one, they are those of the statement, and
 * hold for its next runs, unless functions decide what it writes. */
void pg_tables_written(PgStatement *s, EngineWritten *to) {
        PgConnection *c = s->cache->connection;
        bool is_first = c->n_wrote == 0, by_functions = s->text.calls, numbered = false;
        SqlError error = SQL_ERROR_INIT;

        if (s->text.command == PG_COMMAND_SAVEPOINT)
                return;
        c->n_wrote++;
        to->schema = to->schema || s->text.command == PG_COMMAND_SCHEMA || s->text.command == PG_COMMAND_UNKNOWN ||
                     strcmp(s->text.word, "DO") == 0 || strcmp(s->text.word, "CALL") == 0 || s->effects.schema;
        to->any = to->any || (s->text.command != PG_COMMAND_ROWS && !by_functions) || s->effects.schema;
        if (to->any)
                return;
        if (!s->written_known && (by_functions || s->asked_in != c->transaction)) {
                to->any = !ask_for_written(s, &numbered, &error);
                sql_error_done(&error);
                s->asked_in = c->transaction;
                s->written_known = is_first && !to->any && !by_functions;
        }
        if (by_functions && is_first && numbered && c->n_own == 0) {
                c->n_own = 2; /* the transaction and its savepoint */
                c->counted = true;
        }
        to->any = to->any || s->written_any;
        for (size_t i = 0; i < s->written.n && !to->any; i++)
                to->any = engine_tables_add(&to->tables, s->written.names[i]) < 0;
}
