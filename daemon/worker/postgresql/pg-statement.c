/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-statement.h. From top to bottom: a slot, rights, preparing, the cache, the description.
 */
#include "daemon/worker/postgresql/pg-statement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/statement-frames.h"
#include "daemon/worker/postgresql/pg-effects.h"
#include "daemon/worker/postgresql/pg-error.h"

#define SQL_SIZE_MAX ((size_t) 16384)      /* longer SQL is prepared each time */
#define TRUST_USEC USEC_PER_SEC            /* how long a description is trusted without asking again */
#define COLUMNS_MAX 1664                   /* of a result, in the server (MaxTupleAttributeNumber) */
#define SERVER_PARAMETERS_MAX 7498         /* that libpq can be told of: it refuses such a message above 30,000 bytes */

/* ---- a slot ---- */

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

/* Frees what the server has told. */
static void drop_description(PgStatement *s) {
        PQclear(s->description);
        free(s->kinds);
        free(s->types);
        free(s->columns);
        s->description = NULL;
        s->kinds = NULL;
        s->types = NULL;
        s->columns = NULL;
        s->n_columns = 0;
}

static void clear(PgStatement *s) {
        PgStatements *cache = s->cache;

        pg_statement_forget(s);
        drop_description(s);
        PQclear(s->rows);
        pg_text_done(&s->text);
        pg_scratch_done(&s->scratch);
        engine_tables_done(&s->written);
        free(s->sql);
        free(s->parameter_kinds);
        free(s->values);
        free(s->lengths);
        free(s->formats);
        free(s->bytes);
        *s = (PgStatement) { .cache = cache };
}

/* The server keeps it until it is told otherwise. */
void pg_statement_forget(PgStatement *s) {
        if (s->generation == s->cache->connection->generation)
                pg_connection_deallocate(s->cache->connection, s->name);
        s->generation = 0;
}

/* ---- rights ---- */

static bool refuse_to_write(SqlError *error) {
        return sql_error_set(error, ERROR_READ_ONLY,
                             "this statement writes, and you may only read this database: its administrator can give you "
                             "that right");
}

static bool check_schema(const Setup *setup, const char *what, SqlError *error) {
        return setup->write_schema ||
               sql_error_set(error, ERROR_NOT_ALLOWED, "%s is not allowed: WriteSchema= is off", what);
}

/* The server has prepared it, so it is no mistake in writing. */
static bool check_unknown(const Setup *setup, const PgText *text, SqlError *error) {
        if (text->command != PG_COMMAND_UNKNOWN)
                return true;
        if (!setup->writes)
                return refuse_to_write(error);
        return check_schema(setup, "a statement that this service does not know", error);
}

static bool check_rights(const Setup *setup, const PgText *text, SqlError *error) {
        if (text->command == PG_COMMAND_REFUSED)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "%s is not allowed: connections to the server are shared, so no client may change the "
                                     "session or end the transaction",
                                     text->word);
        if (text->command == PG_COMMAND_READ || text->command == PG_COMMAND_UNKNOWN)
                return true;
        if (!setup->writes)
                return refuse_to_write(error);
        if (setup->n_write_tables > 0)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "WriteTables= cannot be enforced on this server: its administrator must remove the "
                                     "key, and give the server's role the privileges");
        if (text->command == PG_COMMAND_SAVEPOINT && (strcasestr(text->sql, PG_SAVEPOINT) || strcasestr(text->sql, "U&\"")))
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "the service itself makes savepoints of the name " PG_SAVEPOINT);
        if (text->command == PG_COMMAND_SCHEMA || strcmp(text->word, "DO") == 0)
                return check_schema(setup, text->word, error);
        return true;
}

static bool check_parameters(const PgText *text, SqlError *error) {
        if (text->n_numbers <= SERVER_PARAMETERS_MAX)
                return true;
        return sql_error_set(error, ERROR_LIMITS_EXCEEDED, "the statement has %u parameters: for PostgreSQL there can be at "
                             "most %u", text->n_numbers, SERVER_PARAMETERS_MAX);
}

/* ---- preparing ---- */

static bool read_kinds(PgStatement *s, SqlError *error) {
        unsigned n = (unsigned) PQnfields(s->description);

        if (n > COLUMNS_MAX)
                return sql_error_set(error, ERROR_LIMITS_EXCEEDED, "the result has %u columns", n);
        s->kinds = calloc(n + 1, sizeof *s->kinds);
        s->types = calloc(n + 1, sizeof *s->types);
        if (!s->kinds || !s->types)
                return out_of_memory(error);
        s->n_columns = n;
        for (unsigned i = 0; i < n; i++)
                s->kinds[i] = pg_value_kind(PQftype(s->description, (int) i));
        s->binary = pg_values_in_binary(s->kinds, n);
        return true;
}

static bool reserve_parameters(PgStatement *s, SqlError *error) {
        size_t n = (size_t) PQnparams(s->description) + 1;
        PgKind *kinds = reallocarray(s->parameter_kinds, n, sizeof *kinds);
        const char **values = reallocarray(s->values, n, sizeof *values);
        int *lengths = reallocarray(s->lengths, n, sizeof *lengths), *formats = reallocarray(s->formats, n, sizeof *formats);

        s->parameter_kinds = kinds ? kinds : s->parameter_kinds;
        s->values = values ? values : s->values;
        s->lengths = lengths ? lengths : s->lengths;
        s->formats = formats ? formats : s->formats;
        if (!kinds || !values || !lengths || !formats)
                return out_of_memory(error);
        if (PQnparams(s->description) != (int) s->text.n_numbers)
                return sql_error_set(error, ERROR_SQL, "the server finds %d parameters in this statement, and not %u",
                                     PQnparams(s->description), s->text.n_numbers);
        return true;
}

/* Reads the results of PREPARE and DESCRIBE, and of the question if functions of users are called. */
static bool read_description(PgStatement *s, SqlError *error) {
        PgConnection *c = s->cache->connection;
        SqlError failure = SQL_ERROR_INIT;
        bool ok = pg_connection_read_orders(c, &failure);
        unsigned n_commands = s->text.calls ? 3 : 2;

        for (unsigned n = 0; ok && n < n_commands;) {
                PGresult *result;

                ok = pg_connection_next(c, &result, &failure);
                n += ok && !result;
                if (!ok || !result)
                        continue;
                if (PQresultStatus(result) == PGRES_FATAL_ERROR)
                        (void) pg_error_take(&failure, result, n < 2 ? &s->text : NULL);
                if (PQresultStatus(result) != (n < 2 ? PGRES_COMMAND_OK : PGRES_TUPLES_OK))
                        ok = false;
                else if (n == 2)
                        s->effects.known = PQntuples(result) > 0;
                if (n == 1 && ok) {
                        PGresult *before = s->description;

                        s->description = result;
                        result = before;
                }
                PQclear(result);
        }
        if (!c->lost && !c->broken)
                ok = pg_connection_finish(c, &failure) && ok && failure.error == ERROR_NONE;
        if (!ok && error->error == ERROR_NONE)
                sql_error_copy(error, &failure);
        sql_error_done(&failure);
        if ((ok && s->description) || error->error != ERROR_NONE)
                return ok && s->description;
        c->lost = c->broken = true; /* results that were not asked for */
        return sql_error_set(error, ERROR_SERVER_UNREACHABLE, "the server does not keep to the protocol");
}

/* A client may change by functions how the server reads a string. Then a part of the SQL that is a string here can be a
 * command for the server, which has read it after all changes that it has told. */
static bool check_reading(const PgStatement *s, SqlError *error) {
        PGconn *pq = s->cache->connection->pq;
        const char *strings = PQparameterStatus(pq, "standard_conforming_strings");

        if ((!strings || strcmp(strings, "on") == 0) && strcmp(pg_encoding_to_char(PQclientEncoding(pq)), "UTF8") == 0)
                return true;
        return sql_error_set(error, ERROR_NOT_ALLOWED, "the transaction has changed standard_conforming_strings or "
                             "client_encoding, so that SQL has another meaning: end it");
}

/* The server is asked about types now: it answers no other question while rows are on their way. */
static bool read_parameter_kinds(PgStatement *s, SqlError *error) {
        for (unsigned i = 0; i < s->text.n_numbers; i++)
                if (!pg_types_kind(s->cache->types, s->cache->connection, PQparamtype(s->description, (int) i),
                                   &s->parameter_kinds[i], error))
                        return false;
        return true;
}

static bool name_types(PgStatement *s, SqlError *error) {
        PgTypes *types = s->cache->types;

        for (unsigned i = 0; i < s->n_columns; i++) {
                uint32_t type = PQftype(s->description, (int) i);
                int32_t modifier = PQfmod(s->description, (int) i);

                s->types[i] = pg_types_find(types, type, modifier);
                if (!s->types[i] && !pg_types_learn(types, s->cache->connection, type, modifier, &s->types[i], error))
                        return false;
        }
        return true;
}

static bool read_effects(PgStatement *s, SqlError *error) {
        return !s->effects.known || pg_effects_ask(s->cache->connection, s->text.calls, &s->effects, error);
}

static bool prepare(PgStatement *s, SqlError *error) {
        static uint64_t number;
        PgConnection *c = s->cache->connection;

        if (c->ahead) /* results of other statements are on their way */
                pg_connection_roll_back(c);
        drop_description(s);
        (void) snprintf(s->name, sizeof s->name, "s%" PRIu64, ++number);
        if (!pg_connection_send_orders(c, error))
                return false;
        if (PQsendPrepare(c->pq, s->name, s->text.sql, 0, NULL) != 1 || PQsendDescribePrepared(c->pq, s->name) != 1) {
                c->lost = c->broken = true;
                return pg_error_lost(error, c->pq);
        }
        s->effects = (PgEffects) {};
        if ((s->text.calls && !pg_effects_probe(c, s->text.calls, error)) || !pg_connection_flush(c, error) ||
            !read_description(s, error)) {
                c->worn = c->worn || c->interrupted || s->description; /* it may be prepared on the server */
                return false;
        }
        s->generation = c->generation;
        s->described_usec = now_coarse_usec();
        if (check_reading(s, error) && read_effects(s, error) && read_kinds(s, error) && name_types(s, error) &&
            reserve_parameters(s, error) && read_parameter_kinds(s, error))
                return true;
        pg_statement_forget(s);
        return false;
}

/* The class of a query follows from the functions that it calls. */
static bool classify(PgStatement *s, SqlError *error) {
        const PgConnection *c = s->cache->connection;

        if (!s->text.calls)
                return true;
        s->text.command = pg_effects_count(&s->effects, c) ? PG_COMMAND_CALL : PG_COMMAND_READ;
        if (s->text.command == PG_COMMAND_CALL && !c->setup->writes)
                return sql_error_set(error, ERROR_READ_ONLY,
                                     "a function that this statement calls notifies or changes large objects, and you may "
                                     "only read this database: its administrator can give you that right");
        return check_rights(c->setup, &s->text, error);
}

bool pg_statement_prepare(PgStatement *s, SqlError *error) {
        return (s->generation == s->cache->connection->generation || prepare(s, error)) && classify(s, error);
}

bool pg_statement_send(PgStatement *s) {
        return PQsendQueryPrepared(s->cache->connection->pq, s->name, (int) s->text.n_numbers, s->values, s->lengths,
                                   s->formats, s->binary) == 1;
}

/* ---- the cache ---- */

void pg_statements_init(PgStatements *cache, PgConnection *connection, PgTypes *types) {
        *cache = (PgStatements) { .connection = connection, .types = types, .single.cache = cache };
        for (size_t i = 0; i < PG_STATEMENTS_N; i++)
                cache->slots[i].cache = cache;
}

void pg_statements_done(PgStatements *cache) {
        for (size_t i = 0; i < PG_STATEMENTS_N; i++)
                clear(&cache->slots[i]);
        clear(&cache->single);
}

static const PgStatement *find(const PgStatements *cache, const char *sql, size_t sql_size, const EngineHint *hint) {
        if (hint && hint->id != 0 && cache->slots[hint->slot].id == hint->id)
                return &cache->slots[hint->slot];
        for (const PgStatement *s = cache->slots; s < cache->slots + PG_STATEMENTS_N; s++)
                if (s->sql && s->sql_size == sql_size && memcmp(s->sql, sql, sql_size) == 0)
                        return s;
        return NULL;
}

bool pg_statements_have(const PgStatements *cache, const char *sql, size_t sql_size, const EngineHint *hint) {
        return find(cache, sql, sql_size, hint);
}

/* The slot of the statement that was unused for the longest time. */
static PgStatement *choose(PgStatements *cache, size_t sql_size) {
        PgStatement *slot = &cache->slots[0];

        if (sql_size > SQL_SIZE_MAX)
                return &cache->single;
        for (size_t i = 1; i < PG_STATEMENTS_N; i++)
                if (cache->slots[i].used < slot->used)
                        slot = &cache->slots[i];
        return slot;
}

static bool add(PgStatements *cache, const char *sql, size_t sql_size, PgStatement **ret, SqlError *error) {
        const Setup *setup = cache->connection->setup;
        static uint64_t id;
        PgStatement *s;
        PgText text;

        if (!engine_check_sql_size(setup, sql_size, error) ||
            !pg_text_read(sql, sql_size, setup->variables_max, &text, error))
                return false;
        if (!check_rights(setup, &text, error) || !check_parameters(&text, error)) {
                pg_text_done(&text);
                return false;
        }
        s = choose(cache, sql_size);
        clear(s);
        s->text = text;
        s->sql = malloc(sql_size + 1);
        if (!s->sql) {
                clear(s);
                return out_of_memory(error);
        }
        memcpy(s->sql, sql, sql_size);
        s->sql_size = sql_size;
        s->kept = s != &cache->single;
        s->id = ++id;
        *ret = s;
        return true;
}

static bool check_columns(const PgStatement *s, SqlError *error) {
        if (s->n_columns > 0 || pg_statement_writes(s))
                return true;
        return sql_error_set(error, ERROR_NOT_ALLOWED, "this statement returns no rows, so there is nothing to fetch");
}

/* Functions can be replaced while the statement stays prepared. In a transaction its effect is not lost, or it is known
 * from its beginning that it only reads. */
static bool is_to_be_asked_again(const PgStatement *s, bool describe) {
        return (describe || (s->effects.known && !s->cache->connection->begun)) &&
               now_coarse_usec() > s->described_usec + TRUST_USEC;
}

bool pg_statements_compile(PgStatements *cache, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                           PgStatement **ret, SqlError *error) {
        PgStatement *s = (PgStatement *) find(cache, sql, sql_size, hint);

        if (!s && !add(cache, sql, sql_size, &s, error))
                return false;
        if (s->text.command == PG_COMMAND_SAVEPOINT && !cache->connection->savepoints)
                return sql_error_set(error, ERROR_NOT_ALLOWED, "%s is only allowed in a transaction that writes",
                                     s->text.word);
        if (is_to_be_asked_again(s, describe))
                pg_statement_forget(s);
        if (!pg_statement_prepare(s, error) || !check_unknown(cache->connection->setup, &s->text, error) ||
            !check_columns(s, error)) {
                clear(s);
                return false;
        }
        if (hint && s->kept)
                *hint = (EngineHint) { .id = s->id, .slot = (unsigned) (s - cache->slots) };
        *ret = s;
        return true;
}

void pg_statement_release(PgStatement *s) {
        static uint64_t use;

        if (s->kept)
                s->used = ++use;
        else
                clear(s);
}

/* ---- the description ---- */

static Bytes bytes_of(const char *s) {
        return (Bytes) { .data = s, .size = s ? strlen(s) : 0 };
}

bool pg_statement_describe(PgStatement *s, EngineDescription *ret, SqlError *error) {
        Bytes *list = calloc((size_t) 2 * s->n_columns + s->text.n_names + 1, sizeof *list);

        if (!list)
                return out_of_memory(error);
        for (unsigned i = 0; i < s->n_columns; i++) {
                list[2 * i] = bytes_of(PQfname(s->description, (int) i));
                list[2 * i + 1] = bytes_of(s->types[i]);
        }
        for (unsigned i = 0; i < s->text.n_names; i++)
                list[2 * s->n_columns + i] = bytes_of(s->text.names[i].name);
        *ret = (EngineDescription) { .n_columns = s->n_columns, .n_parameters = s->text.n_names, .strings = list };
        return true;
}

static bool make_columns(PgStatement *s, uint32_t page_size, SqlError *error) {
        EngineDescription d;
        bool ok;

        if (!pg_statement_describe(s, &d, error))
                return false;
        ok = statement_frames_columns(&d, page_size, &s->columns, &s->columns_size, error);
        free(d.strings);
        return ok;
}

bool pg_statement_columns(PgStatement *s, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                          SqlError *error) {
        if (!s->columns && !make_columns(s, page_size, error))
                return false;
        statement_frames_set_page_size(s->columns, page_size);
        *ret_payload = s->columns;
        *ret_size = s->columns_size;
        return true;
}
