/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/guest-database.h: when a database of guests is made, shared and freed. The engine here only counts.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "daemon/worker/core/guest-database.h"

struct EnginePool {
        const Setup *setup;
        uint64_t expires_usec; /* of its last idle connection; UINT64_MAX: it has none */
};

static int n_pools;
static bool fails;
static EnginePool *last;

static int start(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret) {
        (void) progress;
        (void) userdata;
        if (fails)
                return -ENOMEM;
        last = *ret = g_new(EnginePool, 1);
        *last = (EnginePool) { .setup = setup, .expires_usec = UINT64_MAX };
        n_pools++;
        return 0;
}

static void stop(EnginePool *pool) {
        if (pool)
                n_pools--;
        g_free(pool);
}

static uint64_t expire(EnginePool *pool, uint64_t now_usec) {
        if (pool->expires_usec <= now_usec)
                pool->expires_usec = UINT64_MAX;
        return pool->expires_usec;
}

static const Engine engine = { .start = start, .stop = stop, .expire = expire };

typedef struct World {
        Setup setup;
        JobContext context;
        GuestDatabase *first;
} World;

static void init(World *w) {
        *w = (World) { .setup = { .path = "/host", .variables_max = 7 } };
        w->context = (JobContext) { .setup = &w->setup, .engine = &engine };
}

static GuestDatabase *get(World *w, const char *path, bool immutable) {
        g_autofree char *copy = g_strdup(path);
        GuestDatabase *g = NULL;

        g_assert_cmpint(guest_database_get(&w->first, &w->context, copy, immutable, &g), ==, 0);
        memset(copy, 'x', strlen(copy)); /* it was borrowed for the call only */
        return g;
}

static uint64_t run_timer(World *w, uint64_t now_usec) {
        return guest_databases_expire(&w->first, &engine, now_usec);
}

static void test_sharing(void) {
        World w;
        GuestDatabase *a, *b, *c;

        init(&w);
        a = get(&w, "/a", false);
        b = get(&w, "/b", false);
        c = get(&w, "/a", true); /* is read without locks */
        g_assert_cmpint(n_pools, ==, 3);
        g_assert_true(get(&w, "/a", false) == a && get(&w, "/b", false) == b && get(&w, "/a", true) == c);
        g_assert_cmpint(n_pools, ==, 3);
        g_assert_cmpstr(a->pool->setup->path, ==, "/a");
        g_assert_cmpstr(b->pool->setup->path, ==, "/b");
        g_assert_true(c->pool->setup->immutable && !a->pool->setup->immutable);
        g_assert_cmpuint(a->pool->setup->variables_max, ==, 7);
        g_assert_cmpstr(w.setup.path, ==, "/host");
        guest_databases_free(&w.first, &engine);
        g_assert_cmpint(n_pools, ==, 0);
}

/* A database stays as long as it has a channel or a connection. */
static void test_life(void) {
        World w;
        GuestDatabase *a, *b;

        init(&w);
        a = get(&w, "/a", false);
        a->pool->expires_usec = 5;
        b = get(&w, "/b", false);
        (void) get(&w, "/b", false);
        b->pool->expires_usec = 3;
        g_assert_cmpuint(run_timer(&w, 1), ==, 3);
        guest_database_put(a);
        guest_database_put(b);
        g_assert_cmpuint(run_timer(&w, 4), ==, 5);
        g_assert_cmpint(n_pools, ==, 2);
        g_assert_cmpuint(run_timer(&w, 5), ==, UINT64_MAX);
        g_assert_cmpint(n_pools, ==, 1);
        g_assert_true(w.first == b && !b->next);
        guest_database_put(b);
        guest_database_put(NULL);
        g_assert_cmpuint(run_timer(&w, 6), ==, UINT64_MAX);
        g_assert_cmpint(n_pools, ==, 0);
        g_assert_null(w.first);
}

/* A worker that writes, or shows exposed tables, has no guests. */
static void test_refused(void) {
        World w;
        GuestDatabase *g = NULL;

        init(&w);
        w.setup.writes = true;
        g_assert_cmpint(guest_database_get(&w.first, &w.context, "/a", false, &g), ==, -EBADMSG);
        w.setup.writes = false;
        w.setup.n_exposed = 1;
        g_assert_cmpint(guest_database_get(&w.first, &w.context, "/a", false, &g), ==, -EBADMSG);
        g_assert_null(g);
        g_assert_null(w.first);
}

static void test_no_memory(void) {
        World w;
        GuestDatabase *g = NULL;

        init(&w);
        fails = true;
        g_assert_cmpint(guest_database_get(&w.first, &w.context, "/a", false, &g), ==, -ENOMEM);
        fails = false;
        g_assert_null(g);
        g_assert_null(w.first);
        g = get(&w, "/a", false);
        g_assert_cmpuint(g->n_channels, ==, 1);
        guest_databases_free(&w.first, &engine);
        g_assert_cmpint(n_pools, ==, 0);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/guest-database/sharing", test_sharing);
        g_test_add_func("/guest-database/life", test_life);
        g_test_add_func("/guest-database/refused", test_refused);
        g_test_add_func("/guest-database/no-memory", test_no_memory);
        return g_test_run();
}
