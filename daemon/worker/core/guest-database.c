/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See guest-database.h.
 */
#include "daemon/worker/core/guest-database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static GuestDatabase *guest_database_free(GuestDatabase *g, const Engine *engine) {
        engine->stop(g->pool);
        free(g->path);
        free(g);
        return NULL;
}

static int guest_database_new(const JobContext *context, const char *path, bool immutable, uint32_t change_slot,
                              GuestDatabase **ret) {
        GuestDatabase *g = malloc(sizeof *g);
        int r;

        if (!g)
                return -ENOMEM;
        *g = (GuestDatabase) { .setup = *context->setup, .path = strdup(path) };
        g->setup.path = g->path;
        g->setup.immutable = immutable;
        g->setup.change_slot = change_slot;
        r = g->path ? context->engine->start(&g->setup, context->progress, context->progress_data, &g->pool) : -ENOMEM;
        if (r < 0) {
                (void) guest_database_free(g, context->engine);
                return r;
        }
        *ret = g;
        return 0;
}

int guest_database_get(GuestDatabase **first, const JobContext *context, const char *path, bool immutable,
                       uint32_t change_slot, GuestDatabase **ret) {
        GuestDatabase *g = *first;
        int r;

        if (context->setup->writes || context->setup->n_exposed > 0)
                return -EBADMSG;
        while (g && (g->setup.immutable != immutable || strcmp(g->path, path) != 0))
                g = g->next;
        if (!g) {
                r = guest_database_new(context, path, immutable, change_slot, &g);
                if (r < 0)
                        return r;
                g->next = *first;
                *first = g;
        }
        g->n_channels++;
        *ret = g;
        return 0;
}

void guest_database_put(GuestDatabase *g) {
        if (g)
                g->n_channels--;
}

uint64_t guest_databases_expire(GuestDatabase **first, const Engine *engine, uint64_t now_usec) {
        uint64_t next = UINT64_MAX;

        for (GuestDatabase **link = first; *link;) {
                GuestDatabase *g = *link;
                uint64_t again = engine->expire(g->pool, now_usec);

                if (again == UINT64_MAX && g->n_channels == 0) {
                        *link = g->next;
                        (void) guest_database_free(g, engine);
                        continue;
                }
                next = again < next ? again : next;
                link = &g->next;
        }
        return next;
}

void guest_databases_free(GuestDatabase **first, const Engine *engine) {
        while (*first) {
                GuestDatabase *g = *first;

                *first = g->next;
                (void) guest_database_free(g, engine);
        }
}
