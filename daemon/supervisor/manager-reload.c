/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the configuration says becomes what is published. Supervisor. */
#include <string.h>

#include "configuration-files.h"
#include "configuration-names.h"
#include "log.h"
#include "manager.h"
#include "statement.h"

static Database *find_unchanged(Manager *m, const DatabaseConfig *config) {
        Database *d = g_hash_table_lookup(m->databases, config->name);

        return d && database_config_equal(d->config, config) ? d : NULL;
}

static void publish(GHashTable *databases, Database *d) {
        d->published = true;
        g_hash_table_insert(databases, d->config->name, d);
}

/* The databases of `config`, which gives up those that are new or changed. */
static GHashTable *take_databases(Manager *m, Config *config) {
        GHashTable *databases = g_hash_table_new(g_str_hash, g_str_equal);
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, config->databases);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                Database *d = find_unchanged(m, value);

                if (d)
                        publish(databases, database_ref(d));
                else {
                        g_hash_table_iter_steal(&i);
                        int r = database_new(m, value, &d);
                        if (r >= 0)
                                publish(databases, d);
                        else
                                log_error("A database cannot be published: %s", strerror(-r));
                }
        }
        return databases;
}

/* Statements on what is no longer published end as soon as nothing runs. */
static void end_statements(Manager *m) {
        g_autoptr(GPtrArray) idle = g_ptr_array_new();
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, m->statements);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                Statement *s = value;

                if (s->database->published)
                        continue;
                if (s->run)
                        s->doomed = true;
                else
                        g_ptr_array_add(idle, s);
        }
        for (guint k = 0; k < idle->len; k++)
                (void) statement_free(idle->pdata[k]);
}

static void log_config(const Config *c) {
        GHashTableIter i;
        void *name, *problem;

        g_hash_table_iter_init(&i, c->broken);
        while (g_hash_table_iter_next(&i, &name, &problem))
                log_full(LOG_ERR, name, NULL, "%s", (const char *) problem);
        for (guint k = 0; k < c->warnings->len; k++)
                log_warning("%s", (const char *) c->warnings->pdata[k]);
}

void manager_release_databases(GHashTable *databases) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, databases);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                g_hash_table_iter_remove(&i); /* its key is the database's own */
                (void) database_unref(value);
        }
        g_hash_table_unref(databases);
}

void manager_reload(Manager *m) {
        Config *config = config_load((const char *const *) m->config_directories);
        GHashTable *databases, *before = m->databases;
        GHashTableIter i;
        void *value;

        names_apply(config, NULL);
        g_hash_table_iter_init(&i, before);
        while (g_hash_table_iter_next(&i, NULL, &value))
                ((Database *) value)->published = false;
        databases = take_databases(m, config);
        m->databases = databases;
        manager_release_databases(before);
        config_free(m->config);
        m->config = config;
        log_config(config);
        end_statements(m);
        log_info("Databases published: %u.", g_hash_table_size(databases));
}
