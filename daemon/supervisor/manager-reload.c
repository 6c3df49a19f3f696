/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the configuration and publishes its databases. Supervisor. */
#include <errno.h>
#include <string.h>

#include "daemon/configuration/configuration-files.h"
#include "daemon/configuration/configuration-names.h"
#include "daemon/supervisor/channel.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/manager.h"
#include "daemon/supervisor/run.h"
#include "daemon/supervisor/service.h"
#include "daemon/supervisor/statement.h"
#include "daemon/supervisor/worker.h"

typedef struct Caller {
        ReloadHandler handler;
        void *userdata;
} Caller;

/* ---- Databases ---- */

static Database *find_unchanged(Manager *m, const DatabaseConfig *config) {
        Database *d = g_hash_table_lookup(m->databases, config->name);

        return d && database_config_equal(d->config, config) ? d : NULL;
}

static void publish(GHashTable *databases, Database *d) {
        d->published = true;
        g_hash_table_insert(databases, d->config->name, d);
}

/* Makes the table of databases for `config`. Takes the entries of new and changed databases out of `config`. */
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

void manager_release_databases(GHashTable *databases) {
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

/* Workers and their channels keep the limits that they were started with, so those with other limits must end. */
static void end_outdated_workers(Manager *m, const Config *before, const Config *after) {
        for (GList *i = m->workers.head, *next; i; i = next) {
                Worker *w = i->data;
                const Database *d = w->group->database;
                const Limits old = config_limits(before, d->config), new = config_limits(after, d->config);

                next = i->next;
                if (d->published && memcmp(&old, &new, sizeof old) == 0)
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

static void put_in_force(Manager *m, Config *config) {
        GHashTable *before = m->databases;
        Config *config_before = m->config;
        GHashTableIter i;
        void *value;

        if (m->reload.stays_when_idle && !config->service.idle_exit_given)
                config->service.idle_exit_usec = UINT64_MAX;
        g_hash_table_iter_init(&i, before);
        while (g_hash_table_iter_next(&i, NULL, &value))
                ((Database *) value)->published = false;
        m->databases = take_databases(m, config);
        m->config = config;
        listing_on_reload(m);
        runs_on_rights_changed(m);
        end_statements(m);
        channels_on_reload(m);
        end_outdated_workers(m, config_before, config);
        announcements_add(m, before);
        manager_release_databases(before);
        config_free(config_before);
        log_config(config);
        if (m->reload.loaded)
                idle_on_reload(m);
}

/* ---- Load ---- */

static void begin(Manager *m);

static void tell(Manager *m, GQueue *callers, int r) {
        Caller *c;

        while ((c = g_queue_pop_head(callers))) {
                if (c->handler)
                        c->handler(m, r, c->userdata);
                g_free(c);
        }
}

/* The load is over. If `r` is negative nothing changes. */
static void finish(Manager *m, const char *answer, int r) {
        Reload *l = &m->reload;
        Config *config = g_steal_pointer(&l->config);
        GQueue callers = l->callers;

        l->callers = l->next;
        l->next = (GQueue) G_QUEUE_INIT;
        if (r < 0)
                config_free(config);
        else
                names_apply(config, answer);
        l->resolve = resolve_free(l->resolve); /* `answer` belonged to it */
        if (r < 0)
                log_error("The configuration cannot be read, so what held before holds: %s", strerror(-r));
        else
                put_in_force(m, config);
        if (l->loaded) {
                if (r >= 0)
                        log_event(LOG_EVENT_RELOADED, NULL, "Databases published: %u.", g_hash_table_size(m->databases));
                if (!l->callers.head)
                        service_ready();
        }
        tell(m, &callers, r);
        if (l->callers.head && !l->config)
                begin(m);
}

static void on_resolved(const char *answer, void *userdata) {
        finish(userdata, answer, 0);
}

/* True for a lack that may be over at the next reload. At the start there is no old configuration to keep, so it is an
 * error. */
static bool is_lack(const Reload *l, int r) {
        return l->loaded && (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EAGAIN);
}

static void begin(Manager *m) {
        Reload *l = &m->reload;

        if (l->loaded)
                service_reloading();
        l->config = config_load((const char *const *) m->config_directories);
        if (is_lack(l, l->config->lack)) {
                finish(m, NULL, l->config->lack);
                return;
        }
        g_autofree char *question = names_question(l->config);
        if (*question == 0) {
                finish(m, "", 0);
                return;
        }
        int r = resolve_new(m->event, question, on_resolved, m, &l->resolve);
        if (r < 0) {
                log_error("The child that looks up names cannot be started: %s", strerror(-r));
                finish(m, NULL, is_lack(l, r) ? r : 0);
        }
}

void manager_reload(Manager *m, ReloadHandler handler, void *userdata) {
        if (m->stopping) {
                if (handler)
                        handler(m, -ESHUTDOWN, userdata);
                return;
        }
        Caller *c = g_new(Caller, 1);
        *c = (Caller) { .handler = handler, .userdata = userdata };
        g_queue_push_tail(m->reload.config ? &m->reload.next : &m->reload.callers, c);
        if (!m->reload.config)
                begin(m);
}

bool manager_is_reloading(const Manager *m) {
        return m->reload.config || m->reload.callers.head;
}

int manager_load(Manager *m, bool started_on_demand) {
        m->reload.stays_when_idle = !started_on_demand;
        manager_reload(m, NULL, NULL);
        while (m->reload.config) {
                int r = sd_event_run(m->event, UINT64_MAX);
                if (r < 0)
                        return r;
        }
        m->reload.loaded = true;
        return 0;
}

void manager_reload_stop(Manager *m) {
        Reload *l = &m->reload;

        l->resolve = resolve_free(l->resolve);
        l->config = config_free(l->config);
        tell(m, &l->callers, -ESHUTDOWN);
        tell(m, &l->next, -ESHUTDOWN);
}
