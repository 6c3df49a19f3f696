/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-pool.h. From top to bottom: attempts, connections.
 */
#include "daemon/worker/postgresql/pg-pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"

#define IDLE_USEC (60 * USEC_PER_SEC)
#define CANCEL_USEC USEC_PER_SEC                  /* for the answer to everything that was cancelled */
#define CANCEL_LOOK_USEC (10 * USEC_PER_MSEC)
#define CANCEL_AT_END_USEC (300 * USEC_PER_MSEC)  /* before the worker ends */
#define PAUSE_MIN_USEC (100 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC USEC_PER_SEC
#define CODE_PAUSE (-1)                           /* of an error that says Busy while there is no attempt; see give_up() */
#define LARGE_SIZE ((size_t) 1 << 20)             /* of a value: libpq keeps a buffer of this size */

/* ---- attempts ---- */

static void on_failure(PgServer *s, const SqlError *error) {
        s->pause_usec = s->pause_usec == 0 ? PAUSE_MIN_USEC : earlier(2 * s->pause_usec, PAUSE_MAX_USEC);
        s->retry_usec = now_usec() + s->pause_usec;
        sql_error_copy(&s->error, error);
}

void pg_pool_give_up(SqlError *error) {
        if (error->extended_code > CODE_PAUSE)
                return;
        error->error = (ErrorNumber) (CODE_PAUSE - error->extended_code);
        error->extended_code = 0;
}

/* True if the failure is the server's, and not that of the job, which may be out of time. */
static bool is_servers(const SqlError *error) {
        return error->error == ERROR_SERVER_UNREACHABLE || error->error == ERROR_LOGIN_FAILED ||
               error->error == ERROR_BUSY || error->error == ERROR_LIMITS_EXCEEDED;
}

static bool attempt(PgServer *s, PgConnection *c, SqlError *error) {
        if (!s->keywords || now_usec() < s->retry_usec) {
                sql_error_copy(error, &s->error);
                if (s->keywords) {
                        error->extended_code = CODE_PAUSE - (int32_t) error->error;
                        error->error = ERROR_BUSY;
                }
                return false;
        }
        if (!pg_connection_open(c, (const char *const *) s->keywords, (const char *const *) s->values, s->timeout_usec,
                                error)) {
                if (is_servers(error))
                        on_failure(s, error);
                return false;
        }
        s->pause_usec = s->retry_usec = 0;
        sql_error_done(&s->error);
        return true;
}

static bool open_any(PgPool *pool, PgConnection *c, SqlError *error) {
        SqlError of_replica = SQL_ERROR_INIT;
        bool ok;

        if (pool->has_replica && attempt(&pool->replica, c, &of_replica))
                return true;
        ok = of_replica.error == ERROR_NONE || is_servers(&of_replica);
        if (!ok)
                sql_error_copy(error, &of_replica);
        sql_error_done(&of_replica);
        return ok && attempt(&pool->primary, c, error);
}

/* While there is an error, the progress function of a job interrupts everything. */
bool pg_pool_reopen(PgPooled *p, SqlError *error) {
        PgConnection *c = &p->connection, before = *c;
        SqlError why = *error;

        *error = SQL_ERROR_INIT;
        pg_connection_close(c);
        if (!open_any(p->pool, c, error)) {
                if (error->error == ERROR_BUSY || error->error == ERROR_NONE)
                        sql_error_copy(error, &why);
                sql_error_done(&why);
                return false;
        }
        sql_error_done(&why);
        c->held = before.held;
        c->snapshot = before.snapshot;
        c->writes = before.writes;
        c->savepoints = before.savepoints;
        c->open = before.writes;
        for (unsigned i = 0; before.writes && i < before.n_first; i++)
                pg_connection_order(c, before.first[i]);
        return true;
}

/* ---- connections ---- */

int pg_pool_new(const Setup *setup, EngineProgress progress, void *userdata, PgPool **ret) {
        PgPool *pool = calloc(1, sizeof *pool);

        if (!pool)
                return -ENOMEM;
        *pool = (PgPool) {
                .setup = setup,
                .progress = progress,
                .userdata = userdata,
                .has_replica = setup->replica_connection && !setup->writes,
                .connections.n_max = setup->connections_max,
        };
        pool->primary.error = pool->replica.error = SQL_ERROR_INIT;
        if (!pg_server_init(&pool->primary, setup->connection ? setup->connection : "", setup->password, true) ||
            (pool->has_replica && !pg_server_init(&pool->replica, setup->replica_connection, setup->password, false))) {
                (void) pg_pool_free(pool);
                return -ENOMEM;
        }
        *ret = pool;
        return 0;
}

static void pooled_free(PgPooled *p) {
        p->pool->connections.n--;
        p->cancel = pg_cancel_free(p->cancel);
        pg_statements_done(&p->statements);
        pg_connection_close(&p->connection);
        free(p);
}

static PgPooled *unlink_idle(PgPooled **link) {
        PgPooled *p = *link;

        *link = p->next;
        p->next = NULL;
        return p;
}

PgPool *pg_pool_free(PgPool *pool) {
        if (!pool)
                return NULL;
        if (pool->observer)
                pooled_free(pool->observer);
        while (pool->idle)
                pooled_free(unlink_idle(&pool->idle));
        if (pool->cancelled)
                pg_cancel_wait(CANCEL_AT_END_USEC);
        while (pool->cancelled)
                pooled_free(unlink_idle(&pool->cancelled));
        pg_server_done(&pool->primary);
        pg_server_done(&pool->replica);
        pg_types_done(&pool->types);
        free(pool);
        return NULL;
}

static void add_idle(PgPool *pool, PgPooled *p) {
        p->idle_usec = now_coarse_usec();
        p->next = pool->idle;
        pool->idle = p;
}

/* Takes connections back that were cancelled, or closes them. */
static void settle_cancelled(PgPool *pool, uint64_t now) {
        for (PgPooled **link = &pool->cancelled; *link;) {
                PgPooled *p = *link;
                int r = pg_connection_recover(&p->connection, pg_cancel_is_over(p->cancel));

                if (r == 0 && now < p->cancel_until_usec) {
                        link = &p->next;
                        continue;
                }
                (void) unlink_idle(link);
                p->cancel = pg_cancel_free(p->cancel);
                if (r > 0)
                        add_idle(pool, p);
                else
                        pooled_free(p);
        }
}

/* The statement that the worker waits for may need a row that is locked by a connection that was cancelled. */
static int on_progress(void *userdata) {
        PgPool *pool = userdata;

        if (pool->cancelled)
                settle_cancelled(pool, now_coarse_usec());
        return pool->progress ? pool->progress(pool->userdata) : 0;
}

static PgPooled *take_idle(PgPool *pool, const char *sql, size_t sql_size, const EngineHint *hint) {
        PgPooled **best = &pool->idle;

        for (PgPooled **link = &pool->idle; *link; link = &(*link)->next)
                if (pg_statements_have(&(*link)->statements, sql, sql_size, hint)) {
                        best = link;
                        break;
                }
        return *best ? unlink_idle(best) : NULL;
}

static bool open_new(PgPool *pool, PgPooled **ret, SqlError *error) {
        PgPooled *p;

        if (pool->connections.n >= pool->connections.n_max) {
                pool->connections.lacks = true;
                return sql_error_set(error, ERROR_BUSY, "all of your connections to the server are in use "
                                     "(ConnectionsMax=)");
        }
        p = calloc(1, sizeof *p);
        if (!p)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        p->pool = pool;
        p->connection = (PgConnection) { .setup = pool->setup, .progress = on_progress, .userdata = pool };
        pg_statements_init(&p->statements, &p->connection, &pool->types);
        pool->connections.n++;
        if (!open_any(pool, &p->connection, error)) {
                pooled_free(p);
                return false;
        }
        *ret = p;
        return true;
}

bool pg_pool_take(PgPool *pool, const char *sql, size_t sql_size, const EngineHint *hint, PgPooled **ret,
                  SqlError *error) {
        if (pool->cancelled)
                settle_cancelled(pool, now_coarse_usec());
        for (;;) {
                PgPooled *p = take_idle(pool, sql, sql_size, hint);

                if (!p)
                        return open_new(pool, ret, error);
                if (pg_connection_is_alive(&p->connection)) {
                        *ret = p;
                        return true;
                }
                pooled_free(p);
        }
}

static bool is_to_be_closed(const PgConnection *c) {
        return !c->pq || c->lost || c->worn || c->large >= LARGE_SIZE;
}

/* Nothing is sent on the connection before the request is over: it would be cancelled, too. */
static void cancel(PgPool *pool, PgPooled *p) {
        PgConnection *c = &p->connection;

        p->cancel = c->pq && !c->lost ? pg_cancel_start(c->pq) : NULL;
        if (!p->cancel || is_to_be_closed(c) || !pg_connection_is_in_step(c)) {
                pooled_free(p);
                return;
        }
        p->cancel_until_usec = now_usec() + CANCEL_USEC;
        p->next = pool->cancelled;
        pool->cancelled = p;
}

void pg_pool_give(PgPool *pool, PgPooled *p) {
        PgConnection *c = &p->connection;

        if (!c->interrupted)
                pg_connection_roll_back(c);
        pg_ahead_forget(p);
        c->held = c->snapshot = c->writes = c->savepoints = false;
        if (c->interrupted)
                cancel(pool, p);
        else if (c->broken || is_to_be_closed(c))
                pooled_free(p);
        else
                add_idle(pool, p);
}

bool pg_pool_close_idle(PgPool *pool) {
        PgPooled **last = &pool->idle;

        if (!*last)
                return false;
        while ((*last)->next)
                last = &(*last)->next;
        pooled_free(unlink_idle(last));
        return true;
}

uint64_t pg_pool_expire(PgPool *pool, uint64_t now) {
        uint64_t next;

        settle_cancelled(pool, now);
        next = pool->cancelled ? now + CANCEL_LOOK_USEC : UINT64_MAX;
        for (PgPooled **link = &pool->idle; *link;) {
                if ((*link)->idle_usec + IDLE_USEC <= now) {
                        pooled_free(unlink_idle(link));
                        continue;
                }
                next = earlier(next, (*link)->idle_usec + IDLE_USEC);
                link = &(*link)->next;
        }
        return next;
}
