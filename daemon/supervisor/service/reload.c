/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the configuration. Supervisor. */
#include <errno.h>
#include <string.h>

#include "daemon/configuration/configuration-files.h"
#include "daemon/configuration/configuration-names.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/service/reload.h"
#include "daemon/supervisor/service/service.h"

typedef struct Caller {
        ReloadHandler handler;
        void *userdata;
} Caller;

/* ---- Load ---- */

static unsigned n_databases(const Reload *l) {
        return g_hash_table_size(l->context->databases);
}

/* A misspelt limit must not give way to its default because of a reload. */
static void keep_settings(const Reload *l, Config *config) {
        config->service = l->context->config->service;
        config->limits = l->context->config->limits;
        config_add_broken(config, "sqlipcd.conf", "all settings of sqlipcd.conf stay as they were before this reload");
}

static void put_in_force(Reload *l, Config *config) {
        if (l->loaded && g_hash_table_contains(config->broken, "sqlipcd.conf"))
                keep_settings(l, config);
        if (l->stays_when_idle && !config->service.idle_exit_given)
                config->service.idle_exit_usec = UINT64_MAX;
        l->put_in_force(l->context, config);
}

static void begin(Reload *l);

static void tell(Reload *l, GQueue *callers, int r) {
        Caller *c;

        while ((c = g_queue_pop_head(callers))) {
                if (c->handler)
                        c->handler(l->context, r, c->userdata);
                g_free(c);
        }
}

/* The load is over. If `r` is negative nothing changes. */
static void finish(Reload *l, const char *answer, int r) {
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
                put_in_force(l, config);
        if (l->loaded) {
                if (r >= 0)
                        log_event(LOG_EVENT_RELOADED, NULL, "Databases published: %u.", n_databases(l));
                if (!l->callers.head)
                        service_ready();
        }
        tell(l, &callers, r);
        if (l->callers.head && !l->config)
                begin(l);
}

static void on_resolved(const char *answer, void *userdata) {
        finish(userdata, answer, 0);
}

/* True for a lack that may be over at the next reload. At the start there is no old configuration to keep, so it is an
 * error. */
static bool is_lack(const Reload *l, int r) {
        return l->loaded && (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EAGAIN);
}

static void begin(Reload *l) {
        if (l->loaded)
                service_reloading();
        l->config = config_load((const char *const *) l->directories);
        if (is_lack(l, l->config->lack)) {
                finish(l, NULL, l->config->lack);
                return;
        }
        g_autofree char *question = names_question(l->config);
        if (*question == 0) {
                finish(l, "", 0);
                return;
        }
        int r = resolve_new(l->context->event, question, on_resolved, l, &l->resolve);
        if (r < 0) {
                log_error("The child that looks up names cannot be started: %s", strerror(-r));
                finish(l, NULL, is_lack(l, r) ? r : 0);
        }
}

void reload_start(Reload *l, ReloadHandler handler, void *userdata) {
        if (l->context->stopping) {
                if (handler)
                        handler(l->context, -ESHUTDOWN, userdata);
                return;
        }
        Caller *c = g_new(Caller, 1);
        *c = (Caller) { .handler = handler, .userdata = userdata };
        g_queue_push_tail(l->config ? &l->next : &l->callers, c);
        if (!l->config)
                begin(l);
}

bool reload_is_busy(const Reload *l) {
        return l->config || l->callers.head;
}

int reload_first(Reload *l, bool started_on_demand) {
        l->stays_when_idle = !started_on_demand;
        reload_start(l, NULL, NULL);
        while (l->config) {
                int r = sd_event_run(l->context->event, UINT64_MAX);
                if (r < 0)
                        return r;
        }
        l->loaded = true;
        return 0;
}

void reload_stop(Reload *l) {
        l->resolve = resolve_free(l->resolve);
        l->config = config_free(l->config);
        tell(l, &l->callers, -ESHUTDOWN);
        tell(l, &l->next, -ESHUTDOWN);
}
