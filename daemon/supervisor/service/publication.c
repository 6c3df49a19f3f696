/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishes the databases of a configuration. Supervisor. */
#include <string.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/supervisor/access/listing.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/run-access.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/runs/watch.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/service/publication.h"
#include "daemon/supervisor/workers/worker.h"

/* ---- Databases ---- */

static Database *find_unchanged(Context *context, const DatabaseConfig *config) {
        Database *d = g_hash_table_lookup(context->databases, config->name);

        return d && database_config_equal(d->config, config) ? d : NULL;
}

static void publish(GHashTable *databases, Database *d) {
        d->published = true;
        g_hash_table_insert(databases, d->config->name, d);
}

/* Makes the table of databases for `config`. Takes the entries of new and changed databases out of `config`. */
static GHashTable *take_databases(Context *context, Config *config) {
        GHashTable *databases = g_hash_table_new(g_str_hash, g_str_equal);
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, config->databases);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                Database *d = find_unchanged(context, value);

                if (d)
                        publish(databases, database_ref(d));
                else {
                        int r = database_new(context, value, &d);
                        if (r >= 0) {
                                g_hash_table_iter_steal(&i);
                                publish(databases, d);
                        } else
                                log_error("A database cannot be published: %s", strerror(-r));
                }
        }
        return databases;
}

void publication_free(GHashTable *databases) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, databases);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                g_hash_table_iter_remove(&i); /* the key belongs to the database */
                (void) database_unref(value);
        }
        g_hash_table_unref(databases);
}

/* ---- The previous configuration ---- */

/* Statements on databases that are no longer published end as soon as no run uses them. */
static void end_statements(Context *context) {
        g_autoptr(GPtrArray) found = g_ptr_array_new();
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->statements);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (!((Statement *) value)->database->published)
                        g_ptr_array_add(found, value);
        for (guint k = 0; k < found->len; k++)
                statement_on_unpublished(found->pdata[k]);
}

/* Workers and their channels keep the limits that they were started with, so those with other limits must end. */
static void end_outdated_workers(Context *context) {
        for (GList *i = context->workers.head, *next; i; i = next) {
                Worker *w = i->data;

                next = i->next;
                if (w->group->database->published && worker_has_limits_of(w, w->group) && !worker_has_outdated_channels(w))
                        continue;
                if (!worker_end(w, WORKER_END_OUTDATED))
                        worker_retire(w);
        }
}

/* ---- The new configuration ---- */

static void log_config(const Config *c) {
        GHashTableIter i;
        void *name, *problem;

        g_hash_table_iter_init(&i, c->broken);
        while (g_hash_table_iter_next(&i, &name, &problem))
                log_event(LOG_EVENT_CONFIGURATION_BROKEN, &(LogFields) { .database = name }, "%s", (const char *) problem);
        for (guint k = 0; k < c->warnings->len; k++)
                log_event(LOG_EVENT_CONFIGURATION_WARNING, NULL, "%s", (const char *) c->warnings->pdata[k]);
}

GHashTable *publication_replace(Context *context, Config *config) {
        GHashTable *before = context->databases;
        Config *config_before = context->config;
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, before);
        while (g_hash_table_iter_next(&i, NULL, &value))
                ((Database *) value)->published = false;
        context->databases = take_databases(context, config);
        context->config = config;
        listing_on_reload(context);
        channels_on_reload(context); /* before runs, of which transactions keep back channels that write */
        run_access_on_rights_changed(context);
        end_statements(context);
        watches_on_rights_changed(context);
        end_outdated_workers(context);
        config_free(config_before);
        log_config(config);
        return before;
}
