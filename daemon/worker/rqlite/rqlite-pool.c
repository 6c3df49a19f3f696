/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See rqlite-pool.h.
 */
#include "daemon/worker/rqlite/rqlite-pool.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/rqlite/server-error.h"

#define IDLE_USEC (30 * USEC_PER_SEC)

int rqlite_pool_new(const Setup *setup, EngineProgress progress, void *userdata, RqlitePool **ret) {
        RqlitePool *p = calloc(1, sizeof *p);
        int r;

        if (!p)
                return -ENOMEM;
        p->setup = setup;
        p->progress = progress;
        p->userdata = userdata;
        p->cluster.password = setup->password;
        p->connections.n_max = setup->connections_max;
        r = http_client_init(&p->cluster.http, progress, userdata);
        if (r < 0) {
                free(p);
                return r;
        }
        *ret = p;
        return 0;
}

static RqliteConnection *connection_free(RqliteConnection *c) {
        if (!c)
                return NULL;
        text_buffer_done(&c->request);
        cluster_exchange_done(&c->exchange);
        free(c);
        return NULL;
}

RqlitePool *rqlite_pool_free(RqlitePool *p) {
        if (!p)
                return NULL;
        for (RqliteConnection *c = p->idle, *next; c; c = next) {
                next = c->next;
                (void) connection_free(c);
        }
        (void) connection_free(p->observer);
        (void) shadow_schema_unref(p->shadow);
        http_client_done(&p->cluster.http);
        node_list_done(&p->cluster.nodes);
        free(p);
        return NULL;
}

/* Workers of one user begin with different nodes. */
static bool read_nodes(RqlitePool *p, SqlError *error) {
        if (p->has_nodes)
                return true;
        p->has_nodes = node_list_parse(p->setup->connection ?: "", &p->cluster.nodes, error);
        p->cluster.turn = (unsigned) (now_usec() / 1000);
        return p->has_nodes;
}

bool rqlite_pool_take(RqlitePool *p, RqliteConnection **ret, SqlError *error) {
        RqliteConnection *c = p->idle;

        if (!read_nodes(p, error))
                return false;
        if (c)
                p->idle = c->next;
        else if (p->connections.n >= p->connections.n_max) {
                p->connections.lacks = true;
                return server_error_retry(error, SERVER_TROUBLE_CONNECTIONS, "all connections are in use");
        } else {
                c = calloc(1, sizeof *c);
                if (!c || cluster_exchange_init(&c->exchange, &p->cluster) < 0) {
                        free(c);
                        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
                }
                c->pool = p;
                p->connections.n++;
                http_client_keep(&p->cluster.http, p->connections.n);
        }
        p->n_used++;
        *ret = c;
        return true;
}

void rqlite_pool_give(RqlitePool *p, RqliteConnection *c) {
        cluster_abort(&c->exchange);
        c->idle_usec = now_usec();
        c->next = p->idle;
        p->idle = c;
        p->n_used--;
}

static void close_idle(RqlitePool *p, RqliteConnection **link) {
        RqliteConnection *c = *link;

        *link = c->next;
        p->connections.n--;
        (void) connection_free(c);
}

/* libcurl keeps the sockets, so it is begun anew. Called while no request is under way. */
static void close_sockets(RqlitePool *p) {
        HttpClient again;

        if (http_client_init(&again, p->progress, p->userdata) < 0)
                return;
        http_client_keep(&again, p->connections.n);
        http_client_done(&p->cluster.http);
        p->cluster.http = again;
}

bool rqlite_pool_close_idle(RqlitePool *p) {
        if (!p->idle)
                return false;
        close_idle(p, &p->idle);
        http_client_keep(&p->cluster.http, p->connections.n);
        if (p->n_used == 0)
                close_sockets(p);
        return true;
}

/* The list begins with those that were used last. */
uint64_t rqlite_pool_expire(RqlitePool *p, uint64_t now) {
        RqliteConnection **link = &p->idle;

        while (*link && (*link)->idle_usec + IDLE_USEC > now)
                link = &(*link)->next;
        while (*link)
                close_idle(p, link);
        if (p->connections.n == 0 && !p->observer) {
                close_sockets(p);
                return UINT64_MAX;
        }
        return p->idle ? p->idle->idle_usec + IDLE_USEC : UINT64_MAX;
}

const char *rqlite_pool_level(const RqlitePool *p) {
        static const char *const levels[CONSISTENCY_MAX_] = {
                [CONSISTENCY_NONE] = "none",
                [CONSISTENCY_WEAK] = "weak",
                [CONSISTENCY_STRONG] = "strong",
                [CONSISTENCY_LINEARIZABLE] = "linearizable",
        };

        return levels[p->setup->consistency < CONSISTENCY_MAX_ ? p->setup->consistency : CONSISTENCY_WEAK];
}
