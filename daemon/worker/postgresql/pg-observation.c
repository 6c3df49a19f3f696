/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-observation.h.
 */
#include "daemon/worker/postgresql/pg-observation.h"

#include <stdlib.h>

#include "daemon/worker/postgresql/pg-snapshot.h"
#include "daemon/worker/postgresql/pg-write.h"

static void close_observer(PgPool *pool) {
        PgPooled *p = pool->observer;

        pool->observer = NULL;
        if (!p)
                return;
        p->connection.broken = true;
        pg_pool_give(pool, p);
}

/* A replica cannot listen: it refuses LISTEN, which is no failure. */
static bool open_observer(PgPool *pool, SqlError *error) {
        if (pool->observer && pg_connection_is_alive(&pool->observer->connection))
                return true;
        close_observer(pool);
        if (!pg_pool_take(pool, "", 0, NULL, &pool->observer, error))
                return false;
        pg_connection_order(&pool->observer->connection, PG_ORDER_LISTEN);
        return pg_connection_carry_out(&pool->observer->connection, false, error);
}

void pg_observation_look(PgPool *pool, Observed *ret) {
        SqlError error = SQL_ERROR_INIT;
        char *snapshot = NULL;

        *ret = (Observed) { .polls = true, .name = "" };
        if (open_observer(pool, &error))
                snapshot = pg_write_ask_snapshot(&pool->observer->connection, &error);
        if (snapshot)
                ret->state = pg_snapshot_state(snapshot);
        else
                close_observer(pool);
        free(snapshot);
        sql_error_done(&error);
}

int pg_observation_fd(const PgPool *pool) {
        return pool->observer ? PQsocket(pool->observer->connection.pq) : -1;
}

/* A connection that has ended is opened at the next look. */
bool pg_observation_heard(PgPool *pool) {
        PGnotify *notice;
        bool heard = false;

        if (!pool->observer)
                return false;
        if (!pg_connection_is_alive(&pool->observer->connection)) {
                close_observer(pool);
                return true;
        }
        while ((notice = PQnotifies(pool->observer->connection.pq))) {
                PQfreemem(notice);
                heard = true;
        }
        return heard;
}
