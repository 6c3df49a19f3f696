/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The changes of a database file. Supervisor. */
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/lease.h"
#include "daemon/supervisor/workers/observer.h"
#include "daemon/supervisor/workers/worker.h"

#define N_EACH_TURN 128                 /* listeners that are told before the loop does something else */
#define N_TABLES_MAX 1024               /* tables that are kept although no listener waits for them */
#define ACCURACY_USEC UINT64_C(1000000)
#ifndef LINGER_USEC /* a test sets less */
#define LINGER_USEC UINT64_C(30000000)  /* a client that calls WaitChange again and again is away for moments only */
#endif

struct ChangeTable {
        uint64_t last; /* the number of its last change, unless `all` of its file is larger */
        unsigned n;    /* listeners that name it, in any state */
        GQueue armed;  /* of ChangeEntry */
};

static int on_turn(sd_event_source *s, void *userdata);

/* ---- the stock ---- */

static void free_access(ServerAccess *a) {
        if (!a)
                return;
        g_free(a->connection);
        g_free(a->password_file);
        g_free(a);
}

static void changes_free(void *p) {
        Changes *c = p;

        g_assert(c->n_listeners == 0);
        c->linger = sd_event_source_disable_unref(c->linger);
        c->observer = observer_free(c->observer);
        g_hash_table_unref(c->tables);
        free_access(c->server);
        g_free(c->path);
        g_free(c);
}

int changes_start(ChangeStock *s, Context *context) {
        *s = (ChangeStock) {
                .context = context,
                .files = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, changes_free),
                .first = context_next_number(context),
        };
        change_page_init(&s->page);
        int r = sd_event_add_defer(context->event, &s->turn, on_turn, s);
        return r < 0 ? r : sd_event_source_set_enabled(s->turn, SD_EVENT_OFF);
}

void changes_stop(ChangeStock *s) {
        s->turn = sd_event_source_disable_unref(s->turn);
        g_clear_pointer(&s->files, g_hash_table_unref);
        observers_end(s);
        change_page_done(&s->page);
}

static void set_sequence(Changes *c, uint64_t sequence) {
        c->sequence = sequence;
        change_page_set(&c->stock->page, c->slot, sequence);
}

Changes *changes_of(Context *context, const char *path, bool immutable) {
        ChangeStock *s = context->changes;
        Changes *c = g_hash_table_lookup(s->files, path);

        if (!c) {
                c = g_new(Changes, 1);
                *c = (Changes) {
                        .stock = s,
                        .path = g_strdup(path),
                        .slot = change_page_take_slot(&s->page),
                        .all = s->first,
                        .immutable = true,
                        .tables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                };
                g_hash_table_insert(s->files, c->path, c);
                set_sequence(c, s->first);
        }
        c->immutable = c->immutable && immutable; /* by two names a file may be both */
        return c;
}

Changes *changes_of_database(Context *context, const DatabaseConfig *d) {
        Changes *c = changes_of(context, database_config_data(d), d->immutable);

        if (!database_config_is_server(d) ||
            (c->server && g_strcmp0(c->server->password_file, d->password_file) == 0 &&
             c->server->consistency == d->consistency))
                return c;
        free_access(c->server);
        c->server = g_new(ServerAccess, 1);
        *c->server = (ServerAccess) {
                .engine = d->engine,
                .consistency = d->consistency,
                .connection = g_strdup(d->connection),
                .password_file = g_strdup(d->password_file),
        };
        return c;
}

/* ---- listeners ---- */

static void disarm(ChangeListener *l) {
        for (unsigned i = 0; i < l->n_entries; i++) {
                ChangeEntry *e = &l->entries[i];

                if (e->queue)
                        g_queue_unlink(e->queue, &e->link);
                e->queue = NULL;
        }
        l->armed = false;
}

static void put(ChangeListener *l, GQueue *queue) {
        l->queue = queue;
        g_queue_push_tail_link(queue, &l->link);
}

static void make_due(ChangeListener *l) {
        ChangeStock *s = l->changes->stock;

        disarm(l);
        put(l, &s->due);
        (void) sd_event_source_set_enabled(s->turn, SD_EVENT_ON);
}

static ChangeTable *table_of(Changes *c, const char *name) {
        ChangeTable *t = g_hash_table_lookup(c->tables, name);

        if (!t) {
                t = g_new(ChangeTable, 1);
                *t = (ChangeTable) { .last = c->others };
                g_hash_table_insert(c->tables, g_strdup(name), t);
        }
        return t;
}

static gboolean is_unused(void *name, void *value, void *userdata) {
        return ((ChangeTable *) value)->n == 0;
}

/* Tables that no listener names are kept: a client may call WaitChange for them again in a moment. */
static void release_tables(ChangeListener *l) {
        Changes *c = l->changes;

        for (char **name = l->tables; name && *name; name++)
                table_of(c, *name)->n--;
        if (g_hash_table_size(c->tables) > N_TABLES_MAX && g_hash_table_foreach_remove(c->tables, is_unused, NULL) > 0)
                c->others = c->sequence;
        g_clear_pointer(&l->tables, g_strfreev);
}

static void make_entries(ChangeListener *l) {
        l->n_entries = l->tables ? g_strv_length(l->tables) : 1;
        l->entries = g_new0(ChangeEntry, l->n_entries);
        for (unsigned i = 0; i < l->n_entries; i++) {
                l->entries[i].listener = l;
                l->entries[i].link.data = &l->entries[i];
        }
}

/* From now on it waits for any table. */
static void widen(ChangeListener *l) {
        if (!l->tables)
                return;
        disarm(l);
        release_tables(l);
        g_free(l->entries);
        make_entries(l);
}

static uint64_t last_change(const ChangeListener *l) {
        Changes *c = l->changes;
        uint64_t last = c->all;

        if (!l->tables)
                return c->sequence;
        for (char **name = l->tables; *name; name++)
                last = MAX(last, table_of(c, *name)->last);
        return last;
}

void changes_arm(ChangeListener *l, uint64_t since) {
        Changes *c = l->changes;
        uint64_t last;

        if (l->n_schemas != c->n_schemas)
                widen(l);
        last = last_change(l);
        /* a number that was not reached yet is one of another instance of the service */
        if (last > since || since > c->sequence + CHANGE_STEP) {
                make_due(l);
                return;
        }
        for (unsigned i = 0; i < l->n_entries; i++) {
                ChangeEntry *e = &l->entries[i];

                e->queue = l->tables ? &table_of(c, l->tables[i])->armed : &c->any;
                g_queue_push_tail_link(e->queue, &e->link);
        }
        l->armed = true;
}

static int watch(Changes *c, bool on);

static int on_linger(sd_event_source *s, uint64_t usec, void *userdata) {
        Changes *c = userdata;

        if (c->n_listeners == 0)
                (void) watch(c, false);
        return 0;
}

static void linger(Changes *c) {
        int r;

        if (c->linger)
                r = sd_event_source_set_time(c->linger, clock_usec() + LINGER_USEC);
        else
                r = sd_event_add_time(c->stock->context->event, &c->linger, CLOCK_MONOTONIC, clock_usec() + LINGER_USEC,
                                      ACCURACY_USEC, on_linger, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->linger, SD_EVENT_ONESHOT);
        if (r < 0)
                (void) watch(c, false);
}

int changes_add(Changes *c, ChangeListener *l, char **tables, unsigned n_schemas) {
        int r = c->watched && (c->immutable || c->observer) ? 0 : watch(c, true);

        if (r < 0) {
                if (c->n_listeners == 0)
                        (void) watch(c, false);
                g_strfreev(tables);
                return r;
        }
        l->changes = c;
        l->tables = tables;
        l->n_schemas = n_schemas;
        l->armed = false;
        l->link.data = l;
        make_entries(l);
        for (char **name = tables; name && *name; name++)
                table_of(c, *name)->n++;
        c->n_listeners++;
        put(l, c->awaits ? &c->starting : &c->stock->ready);
        (void) sd_event_source_set_enabled(c->stock->turn, SD_EVENT_ON);
        return 0;
}

void changes_remove(ChangeListener *l) {
        Changes *c = l->changes;

        if (!c)
                return;
        disarm(l);
        if (l->queue)
                g_queue_unlink(l->queue, &l->link);
        l->queue = NULL;
        release_tables(l);
        g_clear_pointer(&l->entries, g_free);
        l->changes = NULL;
        if (--c->n_listeners == 0)
                linger(c);
}

static bool tell_one(GQueue *queue, bool changed) {
        GList *link = g_queue_pop_head_link(queue);
        ChangeListener *l;

        if (!link)
                return false;
        l = link->data;
        l->queue = NULL;
        if (changed)
                l->on_change(l, last_change(l));
        else
                l->on_ready(l);
        return true;
}

static int on_turn(sd_event_source *source, void *userdata) {
        ChangeStock *s = userdata;
        unsigned n = 0;

        while (n < N_EACH_TURN && (tell_one(&s->ready, false) || tell_one(&s->due, true)))
                n++;
        (void) sd_event_source_set_enabled(source, s->ready.head || s->due.head ? SD_EVENT_ON : SD_EVENT_OFF);
        return 0;
}

/* ---- changes ---- */

static void fire(GQueue *armed) {
        while (armed->head)
                make_due(((ChangeEntry *) armed->head->data)->listener);
}

static void fire_all(Changes *c) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, c->tables);
        while (g_hash_table_iter_next(&i, NULL, &value))
                fire(&((ChangeTable *) value)->armed);
        fire(&c->any);
}

static void publish_any(Changes *c, uint64_t sequence) {
        set_sequence(c, sequence);
        c->all = c->others = sequence;
        c->stock->n_changes++;
        fire_all(c);
}

static void publish_tables(Changes *c, uint64_t sequence, Bytes tables) {
        set_sequence(c, sequence);
        c->stock->n_changes++;
        for (const char *name = tables.data; name < tables.data + tables.size; name += strlen(name) + 1) {
                ChangeTable *t = g_hash_table_lookup(c->tables, name);

                if (!t) {
                        c->others = sequence;
                        continue;
                }
                t->last = sequence;
                fire(&t->armed);
        }
        fire(&c->any);
}

void changes_on_foreign(Changes *c) {
        publish_any(c, c->sequence + CHANGE_STEP);
}

/* Each listener waits for any table when it is armed again. */
void changes_on_schema(Changes *c) {
        c->n_schemas++;
        publish_any(c, c->sequence + 1);
}

static uint64_t number_of(const Changes *c, uint64_t given) {
        return given > c->sequence && given < c->sequence + CHANGE_STEP ? given : c->sequence + 1;
}

void changes_on_committed(Worker *w, const Committed *committed) {
        const DatabaseConfig *d = w->group->database->config;
        Changes *c = changes_of_database(w->context, d);

        if (committed->any) {
                c->n_committed++;
                if (c->state.kind != FILE_STATE_UNKNOWN && !file_state_same(&c->state, &committed->before))
                        changes_on_foreign(c);
                uint64_t number = number_of(c, committed->sequence);
                if (!c->watched || committed->schema || committed->tables.size == 0)
                        publish_any(c, number);
                else
                        publish_tables(c, number, committed->tables);
                if (committed->schema)
                        changes_on_schema(c);
                c->state = committed->after;
                if (c->state.kind == FILE_STATE_UNKNOWN)
                        changes_on_foreign(c);
        }
        if (committed->answers)
                changes_on_writer_known(c);
}

/* True if the state is the one that is known, or an older one: the holder of the lease has told a commit since the
 * observer was asked. */
static bool is_own(const Changes *c, const ObservedState *o) {
        return file_state_same(&c->state, &o->state) ||
               (c->state.kind == o->state.kind && o->state.kind != FILE_STATE_UNKNOWN &&
                (int32_t) (c->state.counter - o->state.counter) > 0 && c->n_committed != o->n_committed);
}

static void consider(Changes *c, const ObservedState *o);

static void decide(Changes *c) {
        ObservedState decided = c->observed, later = c->later;

        c->observed = c->later = (ObservedState) {};
        if (decided.state.kind != FILE_STATE_UNKNOWN && !is_own(c, &decided)) {
                changes_on_foreign(c);
                c->state = decided.state;
        }
        changes_on_known(c, CHANGE_AWAITS_OBSERVER);
        if (later.state.kind != FILE_STATE_UNKNOWN)
                consider(c, &later);
}

/* The holder of the lease may have committed and not told it yet, so it is asked first. */
static void consider(Changes *c, const ObservedState *o) {
        c->observed = *o;
        if (file_state_same(&c->state, &o->state) || !lease_ask(c->stock->context, c->path))
                decide(c);
        else
                c->awaits |= CHANGE_AWAITS_WRITER;
}

void changes_on_observed(Changes *c, const ObservedState *o, bool replaced) {
        if (replaced || o->state.kind == FILE_STATE_UNKNOWN) {
                changes_on_foreign(c);
                c->state = o->state;
                c->observed = c->later = (ObservedState) {};
                changes_on_known(c, CHANGE_AWAITS_OBSERVER);
        } else if (c->observed.state.kind == FILE_STATE_UNKNOWN)
                consider(c, o);
        else
                c->later = file_state_same(&c->state, &o->state) ? (ObservedState) {} : *o;
}

void changes_on_writer_lost(Changes *c) {
        changes_on_foreign(c);
        c->state = (FileState) {};
}

void changes_on_writer_known(Changes *c) {
        changes_on_known(c, CHANGE_AWAITS_WRITER);
        if (c->observed.state.kind != FILE_STATE_UNKNOWN)
                decide(c);
}

/* ---- beginning and end ---- */

const char *changes_foreign(const Changes *c) {
        return c->immutable ? "never" : c->observer && observer_is_notified(c->observer) ? "inotify" : "polling";
}

void changes_on_known(Changes *c, ChangeAwaits what) {
        GList *link;

        c->awaits &= ~(unsigned) what;
        if (c->awaits != 0)
                return;
        while ((link = g_queue_pop_head_link(&c->starting))) {
                put(link->data, &c->stock->ready);
                (void) sd_event_source_set_enabled(c->stock->turn, SD_EVENT_ON);
        }
}

/* Also begins to observe a file that was watched already, but only under a name by which it never changes. */
static int watch(Changes *c, bool on) {
        c->watched = on;
        c->awaits = 0;
        c->observed = c->later = (ObservedState) {};
        if (lease_on_watched(c->stock->context, c->path) && on)
                c->awaits |= CHANGE_AWAITS_WRITER;
        c->observer = observer_free(c->observer);
        if (!on || c->immutable)
                return 0;
        c->awaits |= CHANGE_AWAITS_OBSERVER;
        int r = observer_new(c, &c->observer);
        if (r < 0)
                changes_on_known(c, CHANGE_AWAITS_OBSERVER);
        return r;
}
