/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-load.h. From top to bottom: what is loaded how, COPY, one statement for each row.
 */
#include "daemon/worker/postgresql/pg-load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/row-source.h"
#include "daemon/worker/postgresql/pg-bind.h"
#include "daemon/worker/postgresql/pg-copy.h"
#include "daemon/worker/postgresql/pg-error.h"

#define COPY_SIZE ((size_t) 64 * 1024) /* of the pieces that libpq gets */
#define ROWS_MAX 128                   /* in one round trip, if there is no COPY */

/* ---- what is loaded how ---- */

bool pg_load_takes_rows(PgStatement *s, SqlError *error) {
        if (s->n_columns > 0 || s->text.command != PG_COMMAND_ROWS)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "Load takes one INSERT, UPDATE or DELETE without RETURNING: run other statements with "
                                     "Query or Execute");
        if (s->text.n_names == 0)
                return sql_error_set(error, ERROR_PARAMETER_COUNT,
                                     "Load runs the statement once for each row, and this one has no parameter for a value");
        return true;
}

static bool lose(PgConnection *c, SqlError *error) {
        c->lost = c->broken = true;
        return pg_error_lost(error, c->pq);
}

/* Reads the answer to the question below. False: no COPY. */
static bool read_answer(PgStatement *s, bool *ret, SqlError *error) {
        PgConnection *c = s->cache->connection;
        PGresult *result;

        if (!pg_connection_read_orders(c, error) || !pg_connection_next(c, &result, error))
                return false;
        *ret = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't';
        if (PQresultStatus(result) == PGRES_FATAL_ERROR)
                (void) pg_error_take(error, result, NULL);
        PQclear(result);
        return pg_connection_finish(c, error) && error->error == ERROR_NONE;
}

/* Asks once for each statement whether COPY would do the same. The server checks the rights of the role. */
static bool ask_for_copy(PgStatement *s, const PgCopy *copy, SqlError *error) {
        static const char sql[] =
                "SELECT relkind IN ('r', 'p') AND NOT relhasrules AND NOT pg_catalog.row_security_active(oid) "
                "AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = pg_class.oid AND attidentity = 'a') "
                "FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($1)";
        PgConnection *c = s->cache->connection;
        char *table = strndup(copy->table, copy->table_size);
        const char *const values[] = { table };
        bool can = false, ok;

        if (!table)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        ok = pg_connection_send_orders(c, error);
        if (ok && PQsendQueryParams(c->pq, sql, 1, NULL, values, NULL, NULL, 0) != 1)
                ok = lose(c, error);
        free(table);
        if (!ok || !pg_connection_flush(c, error) || !read_answer(s, &can, error))
                return false;
        s->load = can ? PG_LOAD_COPY : PG_LOAD_ROWS;
        return true;
}

static bool choose(PgStatement *s, PgCopy *ret, SqlError *error) {
        if (s->load == PG_LOAD_ROWS)
                return true;
        if (!pg_copy_find(&s->text, ret)) {
                s->load = PG_LOAD_ROWS;
                return true;
        }
        return s->load == PG_LOAD_COPY || ask_for_copy(s, ret, error);
}

/* ---- COPY ---- */

/* Waits until libpq has sent what it has, or has room. */
static bool put(PgConnection *c, const char *bytes, size_t size, SqlError *error) {
        int r;

        while ((r = size > 0 ? PQputCopyData(c->pq, bytes, (int) size) : PQputCopyEnd(c->pq, NULL)) == 0)
                if (!pg_connection_exchange(c, error))
                        return false;
        if (r < 0) /* the server has ended COPY, and its reason is among the results */
                return PQstatus(c->pq) == CONNECTION_OK || lose(c, error);
        return pg_connection_send_all(c, error);
}

/* Takes the rows of this turn from the source. Those that were sent count as done until the server says otherwise. */
static bool copy_rows(PgStatement *s, RowSource *source, PgCopyData *data, SqlError *error) {
        PgConnection *c = s->cache->connection;
        unsigned n = s->text.n_names;
        bool more;

        do {
                if (!pg_bind_row(s, &source->decoder, n, error))
                        return false;
                for (unsigned i = 0; i < n; i++) {
                        PageValue v = page_decoder_value(&source->decoder, i);

                        if (!pg_copy_add(data, s->parameter_kinds[i], &v, i + 1 == n))
                                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
                }
                if (data->size >= COPY_SIZE) {
                        if (!put(c, data->bytes, data->size, error))
                                return false;
                        data->size = 0;
                }
                more = row_source_next(source, 0);
        } while (more);
        return data->size == 0 || put(c, data->bytes, data->size, error);
}

/* Waits for a result outside of a pipeline, where libpq says NULL after the last one. */
static bool read_results(PgConnection *c, uint64_t before, RowSource *source, SqlError *error) {
        bool ok = true;

        for (;;) {
                PGresult *result;
                uint64_t line;

                if (!pg_connection_next(c, &result, error))
                        return false;
                if (!result)
                        break;
                if (PQresultStatus(result) == PGRES_COMMAND_OK)
                        source->n_changes += strtoll(PQcmdTuples(result), NULL, 10);
                else if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
                        line = pg_copy_line(PQresultErrorField(result, PG_DIAG_CONTEXT));
                        source->n_rows = line > 0 ? before + line - 1 : source->n_rows;
                        ok = pg_error_take(error, result, NULL);
                } else
                        ok = lose(c, error);
                PQclear(result);
                if (c->lost)
                        return false;
        }
        return ok;
}

/* Begins COPY. False if the server refuses it. */
static bool begin_copy(PgConnection *c, const PgCopy *copy, SqlError *error) {
        PGresult *result;
        char *sql = NULL;
        bool ok;

        if (asprintf(&sql, "COPY %.*s%.*s FROM STDIN", (int) copy->table_size, copy->table, (int) copy->columns_size,
                     copy->columns) < 0)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        ok = PQsendQuery(c->pq, sql) == 1 && pg_connection_send_all(c, error);
        free(sql);
        if (!ok)
                return lose(c, error);
        if (!pg_connection_next(c, &result, error))
                return false;
        ok = PQresultStatus(result) == PGRES_COPY_IN;
        if (!ok)
                (void) pg_error_take(error, result, NULL);
        PQclear(result);
        while (!ok && pg_connection_next(c, &result, error) && result)
                PQclear(result);
        return ok;
}

/* An error of a row ends COPY: the server must not keep what came before it. */
static bool give_up_copy(PgConnection *c) {
        SqlError other = SQL_ERROR_INIT;
        RowSource ignored = {};

        if (c->broken || c->lost)
                return false;
        while (PQputCopyEnd(c->pq, "the load has failed") == 0 && pg_connection_exchange(c, &other))
                ;
        if (pg_connection_send_all(c, &other))
                (void) read_results(c, 0, &ignored, &other);
        sql_error_done(&other);
        return false;
}

static bool copy_within(PgStatement *s, const PgCopy *copy, RowSource *source, SqlError *error) {
        PgConnection *c = s->cache->connection;
        uint64_t before = source->n_rows;
        PgCopyData data = {};
        bool ok;

        if (!begin_copy(c, copy, error))
                return false;
        ok = copy_rows(s, source, &data, error);
        free(data.bytes);
        if (!ok)
                return give_up_copy(c);
        return put(c, NULL, 0, error) && read_results(c, before, source, error);
}

/* COPY is not possible in libpq's pipeline mode. */
static bool copy(PgStatement *s, const PgCopy *copy, RowSource *source, SqlError *error) {
        PgConnection *c = s->cache->connection;
        bool ok;

        if (!pg_connection_carry_out(c, true, error) || !pg_connection_settle(c, error))
                return false;
        if (PQexitPipelineMode(c->pq) != 1)
                return lose(c, error);
        ok = copy_within(s, copy, source, error);
        if (c->broken || c->lost)
                return false;
        c->failed = PQtransactionStatus(c->pq) == PQTRANS_INERROR;
        return PQenterPipelineMode(c->pq) == 1 ? ok : lose(c, error);
}

/* ---- one statement for each row ---- */

static bool read_rows(PgStatement *s, unsigned n, RowSource *source, uint64_t before, SqlError *error) {
        PgConnection *c = s->cache->connection;

        if (!pg_connection_read_orders(c, error))
                return false;
        for (unsigned i = 0; i < n;) {
                PGresult *result;

                if (!pg_connection_next(c, &result, error))
                        return false;
                if (!result) {
                        i++;
                        continue;
                }
                if (PQresultStatus(result) == PGRES_FATAL_ERROR && error->error == ERROR_NONE) {
                        (void) pg_error_take(error, result, &s->text);
                        source->n_rows = before + i;
                } else if (PQresultStatus(result) == PGRES_COMMAND_OK)
                        source->n_changes += strtoll(PQcmdTuples(result), NULL, 10);
                PQclear(result);
        }
        return true;
}

/* Sends a number of rows, and reads their results. *ret_more: rows wait, and there is time. */
static bool run_some(PgStatement *s, RowSource *source, bool *ret_more, SqlError *error) {
        PgConnection *c = s->cache->connection;
        SqlError of_row = SQL_ERROR_INIT;
        uint64_t before = source->n_rows;
        unsigned n = 0;
        bool ok = true;

        if (!pg_connection_send_orders(c, error))
                return false;
        do {
                ok = pg_bind_row(s, &source->decoder, s->text.n_names, &of_row);
                if (!ok)
                        break;
                if (PQsendQueryPrepared(c->pq, s->name, (int) s->text.n_numbers, s->values, s->lengths, s->formats, 0) != 1)
                        return lose(c, error);
                n++;
                *ret_more = row_source_next(source, 0);
        } while (*ret_more && n < ROWS_MAX);
        if (!pg_connection_flush(c, error) || !read_rows(s, n, source, before, error))
                return false;
        if (!pg_connection_finish(c, error) || error->error != ERROR_NONE)
                ok = false;
        else if (!ok)
                sql_error_copy(error, &of_row);
        sql_error_done(&of_row);
        return ok;
}

static bool run_rows(PgStatement *s, RowSource *source, SqlError *error) {
        bool more = true;

        while (more)
                if (!run_some(s, source, &more, error))
                        return false;
        return true;
}

bool pg_load(PgStatement *s, RowSource *source, SqlError *error) {
        unsigned n = source->decoder.n_columns;
        PgCopy found;

        if (n != s->text.n_names)
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "%u values in a row, for a statement with %u parameters",
                                     n, s->text.n_names);
        if (!choose(s, &found, error))
                return false;
        return s->load == PG_LOAD_COPY ? copy(s, &found, source, error) : run_rows(s, source, error);
}
