/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-rows.h. From top to bottom: the start, the results, the first step, the page, big rows, the end.
 */
#include "daemon/worker/postgresql/pg-rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/postgresql/pg-bind.h"
#include "daemon/worker/postgresql/pg-error.h"

#define DRAIN_USEC (100 * USEC_PER_MSEC) /* how long the rest is read without a reader, to keep the connection */

/* How long a step waits before it lets the worker run other jobs. Most statements are answered sooner, so one connection is
 * enough for them. Rows follow each other, and statements that were sent together do. */
#define FIRST_ROW_USEC UINT64_C(500)
#define NEXT_ROW_USEC (5 * USEC_PER_MSEC)

/* ---- the start ---- */

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static bool lose(PgConnection *c, SqlError *error) {
        c->lost = c->broken = true;
        return pg_error_lost(error, c->pq);
}

/* A failure in a transaction of several statements must not end it. Before a statement that writes the core makes a
 * savepoint. */
static void order_begin(PgStatement *s) {
        PgConnection *c = s->cache->connection;

        s->alone = !c->open && !c->held && !c->snapshot;
        if (!c->open)
                pg_connection_order(c, s->alone ? PG_ORDER_BEGIN_READ : PG_ORDER_BEGIN_SNAPSHOT);
        s->guarded = c->snapshot || (s->text.command == PG_COMMAND_SAVEPOINT && strcmp(s->text.word, "SAVEPOINT") != 0);
        if (s->guarded)
                pg_connection_order(c, PG_ORDER_SAVE);
        c->open = true;
}

static bool send(PgStatement *s, SqlError *error) {
        PgConnection *c = s->cache->connection;

        pg_connection_limit(c, s->deadline_usec);
        c->worn = c->worn || s->text.locks;
        c->sets = c->sets || s->text.sets || s->text.command == PG_COMMAND_CALL;
        order_begin(s);
        if (!pg_connection_send_orders(c, error))
                return false;
        if (!pg_statement_send(s))
                return lose(c, error);
        if (s->alone && !pg_connection_send_last(c, PG_ORDER_ROLLBACK, error))
                return false;
        return pg_connection_flush(c, error);
}

/* ---- the results ---- */

static void drop_rows(PgStatement *s) {
        PQclear(s->rows);
        s->rows = NULL;
        s->row = s->n_rows = 0;
}

/* Another statement follows: reads what is between the two. */
static bool end_one(PgConnection *c, SqlError *error) {
        PGresult *result;

        if (!pg_connection_next(c, &result, error))
                return false;
        if (!result)
                return true;
        PQclear(result);
        return lose(c, error);
}

/* The statement has ended. Reads the rest of the pipeline, unless others were sent ahead. */
static bool end(PgStatement *s, SqlError *error) {
        PgConnection *c = s->cache->connection;

        s->state = PG_STATEMENT_ENDED;
        if (c->ahead)
                return end_one(c, error);
        return pg_connection_finish(c, error) && error->error == ERROR_NONE;
}

static int64_t n_changes(const PGresult *result) {
        const char *n = PQcmdTuples((PGresult *) result);

        return n[0] ? strtoll(n, NULL, 10) : 0;
}

/* The server tells the command that it has carried out. If it has changed the schema without the right to, the SQL was not
 * understood when it was prepared: nothing of the transaction is kept. */
static bool check_tag(PgStatement *s, const PGresult *result, SqlError *error) {
        PgConnection *c = s->cache->connection;
        const char *tag = PQcmdStatus((PGresult *) result);
        PgCommand command = pg_text_command(tag);
        bool makes_table = command == PG_COMMAND_READ && PQresultStatus(result) == PGRES_COMMAND_OK; /* SELECT INTO */

        if (!c->writes || c->setup->write_schema || s->text.command == PG_COMMAND_SAVEPOINT ||
            (command != PG_COMMAND_SCHEMA && command != PG_COMMAND_REFUSED && !makes_table))
                return true;
        c->doomed = true;
        return sql_error_set(error, ERROR_NOT_ALLOWED, "%s is not allowed: WriteSchema= is off", tag);
}

/* Takes the next result that is one: a row, or the end. *ret: it failed, and the caller looks at it. */
static EngineResult next(PgStatement *s, SqlError *error, PGresult **ret_failed) {
        PgConnection *c = s->cache->connection;
        PGresult *result;

        if (!pg_connection_next(c, &result, error))
                return ENGINE_FAILED;
        if (!result) { /* it must not come before the end */
                (void) lose(c, error);
                return ENGINE_FAILED;
        }
        switch (PQresultStatus(result)) {
        case PGRES_SINGLE_TUPLE:
                s->rows = result;
                s->row = 0;
                s->n_rows = PQntuples(result);
                return ENGINE_ROW;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
                if (PQntuples(result) > 0) { /* libpq has not taken to single rows: these would be dropped */
                        PQclear(result);
                        (void) lose(c, error);
                        return ENGINE_FAILED;
                }
                s->n_changes = n_changes(result);
                if (c->writes && s->n_changes > 0 && pg_statement_writes(s) && s->text.command != PG_COMMAND_CALL &&
                    !c->counted) { /* rows of a query are no changes */
                        c->n_own += c->n_own == 0 ? 2 : 1; /* the transaction and its savepoint */
                        c->counted = true;
                }
                (void) check_tag(s, result, error);
                PQclear(result);
                return end(s, error) ? ENGINE_DONE : ENGINE_FAILED;
        default:
                *ret_failed = result;
                return ENGINE_FAILED;
        }
}

/* The rest of the pipeline was skipped by the server. */
static EngineResult fail(PgStatement *s, PGresult *failed, SqlError *error) {
        SqlError after = SQL_ERROR_INIT;

        s->cache->connection->ahead = false;
        if (failed) {
                if (pg_error_is_loss(failed))
                        s->cache->connection->lost = s->cache->connection->broken = true;
                (void) pg_error_take(error, failed, &s->text);
                s->cache->connection->worn |= error->error == ERROR_OUT_OF_MEMORY; /* libpq keeps a large buffer */
                PQclear(failed);
                if (!s->cache->connection->broken)
                        (void) end(s, &after);
                sql_error_done(&after);
        }
        return ENGINE_FAILED;
}

/* ---- the first step ---- */

static bool begin(PgStatement *s, SqlError *error) {
        s->state = PG_STATEMENT_RUNS;
        s->cache->connection->busy = true;
        s->n_changes = 0;
        return s->ahead || send(s, error);
}

/* True if the worker is to wait for the next result. It has waited already if the last step ended so. */
static bool awaits(PgStatement *s, const RowSink *sink, uint64_t usec) {
        return s->awaits = sink->may_await && !pg_connection_await(s->cache->connection, s->awaits ? 0 : usec);
}

/* Runs it up to its first row. */
static EngineResult start(PgStatement *s, const RowSink *sink, SqlError *error, PGresult **ret_failed) {
        PgConnection *c = s->cache->connection;
        uint64_t usec = c->ahead ? NEXT_ROW_USEC : FIRST_ROW_USEC;
        SqlError order = SQL_ERROR_INIT;

        if (!s->awaits && !begin(s, error))
                return ENGINE_FAILED;
        if (awaits(s, sink, usec))
                return ENGINE_AWAITS;
        if (!pg_connection_read_orders(c, error)) {
                c->ahead = false;
                if (!c->broken)
                        (void) end(s, &order);
                sql_error_done(&order);
                return ENGINE_FAILED;
        }
        (void) PQsetSingleRowMode(c->pq);
        if (awaits(s, sink, usec)) /* it has answered to the orders, or told a notice */
                return ENGINE_AWAITS;
        return next(s, error, ret_failed);
}

/* The parameters may have other types now. */
static bool prepare_again(PgStatement *s, SqlError *error) {
        s->ahead = false;
        if (!pg_statement_prepare(s, error))
                return false;
        if (pg_statement_writes(s) && !s->cache->connection->writes)
                return sql_error_set(error, ERROR_BUSY, "a function that this statement calls was replaced, and writes now: "
                                                        "run it again");
        return pg_bind(s, s->spec, error);
}

/* True if the statement can be run once more, on a connection that was opened again or as it is prepared now. The server has
 * done nothing yet that was to last. Clears *failed if its pipeline was read to the end. */
static bool recover(PgStatement *s, PGresult **failed, SqlError *error) {
        PgConnection *c = s->cache->connection;
        SqlError after = SQL_ERROR_INIT;

        if (c->lost || (*failed && pg_error_is_loss(*failed))) {
                if (s->final)
                        return false;
                if (*failed)
                        (void) pg_error_take(error, *failed, NULL);
                if (error->error != ERROR_SERVER_UNREACHABLE || !pg_pool_reopen(pg_pooled_of(s), error))
                        return false;
        } else {
                if (!*failed || !pg_error_is_outdated(*failed))
                        return false;
                pg_statement_forget(s);
                if (s->final && !s->guarded)
                        return false;
                c->ahead = false;
                (void) end(s, &after);
                sql_error_done(&after);
                pg_rows_reset(s);
                if (c->failed)
                        pg_connection_begin_again(c);
        }
        s->final = true; /* and not a third time, if the answer is awaited */
        PQclear(*failed);
        *failed = NULL;
        return prepare_again(s, error);
}

EngineResult pg_rows_step(PgStatement *s, RowSink *sink, SqlError *error) {
        PGresult *failed = NULL;
        EngineResult result;

        if (!s->awaits)
                s->final = s->cache->connection->begun && !s->ahead;
        result = start(s, sink, error, &failed);
        if (result == ENGINE_FAILED && recover(s, &failed, error))
                result = start(s, sink, error, &failed);
        if (result == ENGINE_AWAITS)
                return result;
        if (result == ENGINE_FAILED)
                return fail(s, failed, error);
        sink->n_columns = s->n_columns;
        sink->row_waits = result == ENGINE_ROW;
        return result;
}

/* ---- the page ---- */

static bool not_valid(SqlError *error) {
        return sql_error_set(error, ERROR_SERVER_UNREACHABLE,
                             "the server does not keep to the protocol: a value has another size than its type");
}

/* A NULL has no length, so most values need not be asked if they are one. */
static bool decode(PgStatement *s, unsigned i, PgValue *ret, SqlError *error) {
        PgConnection *c = s->cache->connection;
        size_t size = (size_t) PQgetlength(s->rows, s->row, (int) i);
        int r;

        if (size == 0 && PQgetisnull(s->rows, s->row, (int) i)) {
                *ret = (PgValue) { .type = VALUE_NULL };
                return true;
        }

        if (size > c->large)
                c->large = size;
        r = pg_value_decode(s->kinds[i], s->binary, (const uint8_t *) PQgetvalue(s->rows, s->row, (int) i), size,
                            &s->scratch, ret);
        if (r == 0)
                return true;
        c->broken = c->broken || r != -ENOMEM;
        return r == -ENOMEM ? out_of_memory(error) : not_valid(error);
}

static void add(PageRow *row, const PgValue *v) {
        uint8_t *at;

        switch (v->type) {
        case VALUE_INTEGER:
                at = page_row_add(row, VALUE_INTEGER, 8);
                if (at)
                        store_le64(at, (uint64_t) v->integer);
                return;
        case VALUE_REAL:
                at = page_row_add(row, VALUE_REAL, 8);
                if (at)
                        store_le_double(at, v->real);
                return;
        case VALUE_TEXT:
                at = page_row_add(row, VALUE_TEXT, v->size + 1);
                if (at) {
                        memcpy(at, v->bytes, v->size);
                        at[v->size] = 0;
                }
                return;
        case VALUE_BLOB:
                at = page_row_add(row, VALUE_BLOB, v->size);
                if (at && v->size > 0)
                        memcpy(at, v->bytes, v->size);
                return;
        case VALUE_NULL:
                (void) page_row_add(row, VALUE_NULL, 0);
        }
}

/* Encodes the row that waits. */
static EngineResult encode(PgStatement *s, RowSink *sink, SqlError *error) {
        EngineResult result = row_sink_begin(sink);
        PageRow row;

        if (result != ENGINE_ROW)
                return result;
        row = sink->encoder->values;
        for (unsigned i = 0; i < sink->n_columns; i++) {
                PgValue v;

                if (!decode(s, i, &v, error)) {
                        page_encoder_abort_row(sink->encoder);
                        return ENGINE_FAILED;
                }
                add(&row, &v);
        }
        sink->encoder->values = row;
        return row_sink_end(sink);
}

/* Goes to the next row. */
static EngineResult advance(PgStatement *s, RowSink *sink, SqlError *error) {
        PGresult *failed = NULL;
        EngineResult result;

        if (s->rows && s->row + 1 < s->n_rows) {
                s->row++;
                sink->row_waits = true;
                return ENGINE_ROW;
        }
        drop_rows(s);
        if (awaits(s, sink, NEXT_ROW_USEC))
                return ENGINE_AWAITS;
        result = next(s, error, &failed);
        sink->row_waits = result == ENGINE_ROW;
        return result == ENGINE_FAILED ? fail(s, failed, error) : result;
}

/* The progress function is called once for each page even if the server is always faster. */
EngineResult pg_rows_fill(PgStatement *s, RowSink *sink, SqlError *error) {
        const PgConnection *c = s->cache->connection;

        if (c->progress && c->progress(c->userdata) != 0)
                return ENGINE_FAILED;
        for (;;) {
                EngineResult result = sink->row_waits ? encode(s, sink, error) : ENGINE_ROW;

                if (result == ENGINE_ROW)
                        result = advance(s, sink, error);
                if (result != ENGINE_ROW)
                        return result;
        }
}

/* ---- big rows ---- */

bool pg_rows_measure(PgStatement *s, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error) {
        PgValue v;

        if (!decode(s, i, &v, error))
                return false;
        *ret_type = v.type;
        *ret_size = v.type == VALUE_INTEGER || v.type == VALUE_REAL ? 8 : v.size + (v.type == VALUE_TEXT);
        return true;
}

const uint8_t *pg_rows_value(PgStatement *s, unsigned i, uint8_t number[static 8], SqlError *error) {
        PgValue v;

        if (!decode(s, i, &v, error))
                return NULL;
        if (v.type == VALUE_INTEGER)
                store_le64(number, (uint64_t) v.integer);
        else if (v.type == VALUE_REAL)
                store_le_double(number, v.real);
        else
                return v.bytes;
        return number;
}

/* ---- the end ---- */

/* The reader has left before the end of the result. The rest may be small. */
static void drain(PgStatement *s) {
        PgConnection *c = s->cache->connection;
        SqlError error = SQL_ERROR_INIT;
        uint64_t until_usec = now_usec() + DRAIN_USEC;
        PGresult *failed = NULL;

        while (s->state == PG_STATEMENT_RUNS && !c->broken && now_usec() < until_usec) {
                drop_rows(s);
                if (next(s, &error, &failed) == ENGINE_FAILED) {
                        (void) fail(s, failed, &error);
                        break;
                }
        }
        drop_rows(s);
        if (s->state == PG_STATEMENT_RUNS && !c->broken)
                c->broken = c->interrupted = true;
        sql_error_done(&error);
}

/* Takes a failed transaction back to the savepoint before the statement. */
static void undo(PgStatement *s) {
        PgConnection *c = s->cache->connection;

        if (s->guarded && c->begun) {
                if (c->failed)
                        pg_connection_order(c, PG_ORDER_UNDO);
                if (c->failed || s->text.command == PG_COMMAND_READ)
                        pg_connection_order(c, PG_ORDER_KEEP);
                c->failed = false;
        }
}

void pg_rows_reset(PgStatement *s) {
        PgConnection *c = s->cache->connection;

        if (s->state == PG_STATEMENT_RUNS && s->awaits && !c->snapshot) /* the server computes: the rest comes later */
                c->broken = c->interrupted = true;
        else if (s->state == PG_STATEMENT_RUNS)
                drain(s);
        drop_rows(s);
        if (s->ahead && s->state == PG_STATEMENT_RESTS) { /* its results are not wanted */
                c->ahead = true;
                pg_connection_roll_back(c);
        }
        if (s->state != PG_STATEMENT_RESTS && !c->broken)
                undo(s);
        s->state = PG_STATEMENT_RESTS;
        s->guarded = s->alone = s->ahead = s->awaits = c->busy = false;
        if (!c->held && !c->snapshot && !c->writes && c->open)
                pg_connection_roll_back(c);
}
