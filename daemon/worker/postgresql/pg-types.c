/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-types.h.
 */
#include "daemon/worker/postgresql/pg-types.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/postgresql/pg-connection.h"
#include "daemon/worker/postgresql/pg-error.h"

#define N_MAX 4096 /* names that are kept: others are "???" */

static char unknown[] = "???"; /* as format_type() names a type that was dropped */

static const struct {
        uint32_t type;
        const char *name;
} usual[] = {
        { 16, "boolean" },
        { 17, "bytea" },
        { 19, "name" },
        { 20, "bigint" },
        { 21, "smallint" },
        { 23, "integer" },
        { 25, "text" },
        { 26, "oid" },
        { 114, "json" },
        { 700, "real" },
        { 701, "double precision" },
        { 1042, "bpchar" },
        { 1043, "character varying" },
        { 1082, "date" },
        { 1083, "time without time zone" },
        { 1114, "timestamp without time zone" },
        { 1184, "timestamp with time zone" },
        { 1700, "numeric" },
        { 2950, "uuid" },
        { 3802, "jsonb" },
};

void pg_types_done(PgTypes *types) {
        for (size_t i = 0; i < types->n; i++)
                free(types->names[i].name);
        free(types->names);
        *types = (PgTypes) {};
}

const char *pg_types_find(PgTypes *types, uint32_t type, int32_t modifier) {
        for (size_t i = 0; modifier < 0 && i < sizeof usual / sizeof *usual; i++)
                if (usual[i].type == type)
                        return usual[i].name;
        for (size_t i = 0; i < types->n; i++)
                if (types->names[i].type == type && types->names[i].modifier == modifier)
                        return types->names[i].name;
        return NULL;
}

static bool keep(PgTypes *types, PgTypeName *type, const char *name, SqlError *error) {
        PgTypeName *names;

        type->name = unknown;
        if (types->n >= N_MAX)
                return true;
        names = reallocarray(types->names, types->n + 1, sizeof *names);
        if (names)
                types->names = names;
        type->name = names ? strdup(name) : NULL;
        if (!type->name)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        names[types->n++] = *type;
        return true;
}

static bool take(PgTypes *types, PgConnection *c, PgTypeName *type, SqlError *error) {
        PGresult *result;
        bool ok;

        if (!pg_connection_read_orders(c, error) || !pg_connection_next(c, &result, error))
                return false;
        ok = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
        if (ok) {
                type->kind = pg_value_kind((uint32_t) strtoul(PQgetvalue(result, 0, 1), NULL, 10));
                ok = keep(types, type, PQgetvalue(result, 0, 0), error);
        } else
                (void) pg_error_take(error, result, NULL);
        PQclear(result);
        return pg_connection_finish(c, error) && ok;
}

/* Sets the rest of *type. */
static bool ask(PgTypes *types, PgConnection *c, PgTypeName *type, SqlError *error) {
        static const char sql[] = "SELECT pg_catalog.format_type($1::pg_catalog.oid, $2::pg_catalog.int4), ("
                                  "WITH RECURSIVE base(type, next) AS ("
                                  "SELECT oid, typbasetype FROM pg_catalog.pg_type WHERE oid = $1 UNION ALL "
                                  "SELECT oid, typbasetype FROM pg_catalog.pg_type, base WHERE oid = next) "
                                  "SELECT type FROM base WHERE next = 0)";
        char numbers[2][16];
        const char *const values[] = { numbers[0], numbers[1] };

        (void) snprintf(numbers[0], sizeof numbers[0], "%" PRIu32, type->type);
        (void) snprintf(numbers[1], sizeof numbers[1], "%" PRId32, type->modifier);
        if (!pg_connection_send_orders(c, error))
                return false;
        if (PQsendQueryParams(c->pq, sql, 2, NULL, values, NULL, NULL, 0) != 1) {
                c->lost = c->broken = true;
                return pg_error_lost(error, c->pq);
        }
        return pg_connection_flush(c, error) && take(types, c, type, error);
}

bool pg_types_learn(PgTypes *types, PgConnection *c, uint32_t type, int32_t modifier, const char **ret, SqlError *error) {
        PgTypeName asked = { .type = type, .modifier = modifier };

        if (!ask(types, c, &asked, error))
                return false;
        *ret = asked.name;
        return true;
}

bool pg_types_kind(PgTypes *types, PgConnection *c, uint32_t type, PgKind *ret, SqlError *error) {
        PgTypeName asked = { .type = type, .modifier = -1 };

        *ret = pg_value_kind(type);
        if (*ret != PG_KIND_OTHER)
                return true;
        for (size_t i = 0; i < types->n; i++)
                if (types->names[i].type == type) {
                        *ret = types->names[i].kind;
                        return true;
                }
        if (!ask(types, c, &asked, error))
                return false;
        *ret = asked.kind;
        return true;
}
