/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-effects.h.
 */
#include "daemon/worker/postgresql/pg-effects.h"

#include "daemon/worker/postgresql/pg-error.h"
#include "daemon/worker/postgresql/pg-text.h"

#define KNOWS_BODIES 140000 /* the first server that has functions whose body is no text */
#define FIRST_OF_USERS "16384" /* of the oids: those below are of the server itself */

#define OF_USERS "p.oid >= " FIRST_OF_USERS " AND p.probin IS NULL" /* functions in C have a file */

/* The sources of the functions in f, and the names before "(" in them, as they are written and in small letters. OFFSET has
 * both looked up once for each function. */
#define SOURCES(source)                                                                                                   \
        "f CROSS JOIN LATERAL (SELECT " source " AS source, ARRAY("                                                       \
        "SELECT pg_catalog.unnest(ARRAY[name, pg_catalog.lower(name)]) FROM (SELECT COALESCE(m[1], m[2]) AS name "        \
        "FROM pg_catalog.regexp_matches(" source ", $2, 'g') AS m) AS n) AS calls "                                       \
        "FROM pg_catalog.pg_proc p WHERE p.oid = f.oid OFFSET 0) AS s "

/* Aggregates, and bodies that are no text, depend on the functions that they call. Columns: the effect would be lost,
 * refused, changes the schema; all are NULL if there is no such function. */
#define QUESTION(source)                                                                                                  \
        "WITH RECURSIVE f(oid) AS ("                                                                                      \
        "SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.proname = ANY ($1::pg_catalog.name[]) AND " OF_USERS " "          \
        "UNION SELECT p.oid FROM " SOURCES(source) "JOIN LATERAL ("                                                       \
        "SELECT q.oid FROM pg_catalog.pg_proc q WHERE q.proname = ANY (s.calls::pg_catalog.name[]) UNION ALL "            \
        "SELECT d.refobjid FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass "      \
        "AND d.objid = f.oid AND d.refclassid = d.classid) AS g ON true JOIN pg_catalog.pg_proc p ON p.oid = g.oid "      \
        "WHERE " OF_USERS ") "                                                                                            \
        "SELECT pg_catalog.bool_or(s.calls && '" PG_TEXT_EFFECTS "' OR s.source ~* $3), "                                 \
        "pg_catalog.bool_or(s.source ~* $4), pg_catalog.bool_or(s.source ~* $5) FROM " SOURCES(source)

/* A name in quotes, or one without. Comments after it cost too much. */
static const char calls_of[] = "\"([^\"]+)\"\\s*\\(|([^][\\s!-#%-/:-@\\\\^`{-~]+)\\s*\\(";

/* NOTIFY begins a statement, also one in a string; otherwise it is the name of a column. */
static const char notifies[] = "(^|[;'\"$>{]|\\m(begin|then|else|loop)\\M)"
                               "(\\s|--[^\\n]*\\n|/[*]([^*]|[*]+[^*/])*[*]+/)*notify\\M";
static const char writes[] = "\\m(insert\\s+into|delete\\s+from|merge\\s+into|update|truncate|create|drop|alter|refresh|"
                             "grant|revoke|reindex|cluster|analy[sz]e|nextval|setval)\\M";
static const char changes_schema[] = "\\m(create|drop|alter)\\M";

static bool send(PgConnection *c, const char *sql, int n, const char *const *values, SqlError *error) {
        if (PQsendQueryParams(c->pq, sql, n, NULL, values, NULL, NULL, 0) == 1)
                return true;
        c->lost = c->broken = true;
        return pg_error_lost(error, c->pq);
}

bool pg_effects_probe(PgConnection *c, const char *calls, SqlError *error) {
        static const char sql[] = "SELECT 1 FROM pg_catalog.pg_proc p WHERE p.proname = ANY ($1::pg_catalog.name[]) AND "
                                  OF_USERS " LIMIT 1";
        const char *const values[] = { calls };

        return send(c, sql, 1, values, error);
}

static bool says_yes(const PGresult *rows, int column) {
        return PQgetvalue(rows, 0, column)[0] == 't';
}

static bool take(PgConnection *c, PgEffects *ret, SqlError *error) {
        PGresult *rows;
        bool ok;

        if (!pg_connection_read_orders(c, error) || !pg_connection_next(c, &rows, error))
                return false;
        ok = PQresultStatus(rows) == PGRES_TUPLES_OK && PQntuples(rows) == 1 && PQnfields(rows) == 3;
        if (ok)
                *ret = (PgEffects) {
                        .known = !PQgetisnull(rows, 0, 0),
                        .lost = says_yes(rows, 0),
                        .writes = says_yes(rows, 1),
                        .schema = says_yes(rows, 2),
                };
        else
                (void) pg_error_take(error, rows, NULL);
        PQclear(rows);
        return pg_connection_finish(c, error) && ok;
}

bool pg_effects_ask(PgConnection *c, const char *calls, PgEffects *ret, SqlError *error) {
        const char *const values[] = { calls, calls_of, notifies, writes, changes_schema };
        const char *sql = PQserverVersion(c->pq) >= KNOWS_BODIES
                                  ? QUESTION("COALESCE(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)")
                                  : QUESTION("p.prosrc");

        return pg_connection_send_orders(c, error) && send(c, sql, 5, values, error) && pg_connection_flush(c, error) &&
               take(c, ret, error);
}

bool pg_effects_count(const PgEffects *e, const PgConnection *c) {
        return e->lost || (e->writes && c->setup->writes && c->setup->n_write_tables == 0 && !c->snapshot);
}
