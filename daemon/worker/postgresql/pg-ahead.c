/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-ahead.h. From top to bottom: the list, sending it, taking from it.
 */
#include "daemon/worker/postgresql/pg-ahead.h"

#include <string.h>

#include "daemon/worker/postgresql/pg-bind.h"
#include "daemon/worker/postgresql/pg-pool.h"

/* ---- the list ---- */

static void clear(PgAhead *ahead) {
        ahead->n = ahead->next = 0;
        ahead->on = NULL;
}

bool pg_ahead_add(PgAhead *ahead, const JobSpec *spec, const EngineHint *hint) {
        PgAheadRun *run = &ahead->runs[ahead->n];

        if (ahead->on || ahead->n == PG_AHEAD_MAX || spec->parameters_size > PG_AHEAD_SIZE_MAX || hint->id == 0 ||
            hint->writes)
                return false;
        run->hint = *hint;
        run->n_positional = spec->n_positional;
        run->n_named = spec->n_named;
        run->size = spec->parameters_size;
        if (run->size > 0)
                memcpy(run->parameters, spec->parameters, run->size);
        ahead->n++;
        return true;
}

static JobSpec spec_of(const PgAheadRun *run) {
        return (JobSpec) {
                .n_positional = run->n_positional,
                .n_named = run->n_named,
                .parameters = run->size > 0 ? run->parameters : NULL,
                .parameters_size = run->size,
        };
}

static bool is_run_of(const PgAheadRun *run, const PgStatement *s, const JobSpec *spec) {
        return run->hint.id == s->id && run->n_positional == spec->n_positional && run->n_named == spec->n_named &&
               run->size == spec->parameters_size &&
               (run->size == 0 || memcmp(run->parameters, spec->parameters, run->size) == 0);
}

void pg_ahead_forget(PgPooled *p) {
        PgAhead *ahead = &p->pool->ahead;

        if (!ahead->on || ahead->on == p)
                clear(ahead);
}

/* ---- sending it ---- */

/* No transaction is open that the others would have to be part of. */
static bool can_send(const PgConnection *c) {
        return c->pq && !c->broken && !c->open && !c->snapshot && !c->writes && !c->busy;
}

static bool send_run(PgPooled *p, const PgAheadRun *run) {
        PgConnection *c = &p->connection;
        PgStatement *s = &p->statements.slots[run->hint.slot];
        const JobSpec spec = spec_of(run);
        SqlError error = SQL_ERROR_INIT;
        bool ok = s->id == run->hint.id && s->generation == c->generation && !pg_statement_writes(s) &&
                  pg_bind(s, &spec, &error);

        sql_error_done(&error);
        c->worn |= ok && s->text.locks;
        return ok && pg_statement_send(s);
}

/* A statement that cannot be sent ends the list: it gets its error when it is run. */
static bool send_all(PgPooled *p, PgAhead *ahead) {
        PgConnection *c = &p->connection;
        SqlError error = SQL_ERROR_INIT;
        unsigned n = 0;
        bool ok;

        pg_connection_limit(c, 0);
        pg_connection_order(c, PG_ORDER_BEGIN_SNAPSHOT);
        c->open = true;
        ok = pg_connection_send_orders(c, &error);
        while (ok && n < ahead->n && send_run(p, &ahead->runs[n]))
                n++;
        ok = ok && pg_connection_send_last(c, PG_ORDER_ROLLBACK, &error) && pg_connection_flush(c, &error);
        sql_error_done(&error);
        ahead->n = n;
        ahead->on = p;
        c->ahead = ok;
        return ok && n > 0;
}

/* ---- taking from it ---- */

bool pg_ahead_take(PgPooled *p, PgStatement *s, const JobSpec *spec) {
        PgAhead *ahead = &p->pool->ahead;
        PgConnection *c = &p->connection;
        bool is_next = ahead->next < ahead->n && is_run_of(&ahead->runs[ahead->next], s, spec);

        if (ahead->on && ahead->on != p)
                return false;
        if (!is_next || (ahead->on ? !c->ahead : ahead->n < 2 || !can_send(c) || !send_all(p, ahead))) {
                if (c->ahead)
                        pg_connection_roll_back(c);
                clear(ahead);
                return false;
        }
        ahead->next++;
        c->ahead = ahead->next < ahead->n;
        return s->ahead = true;
}
