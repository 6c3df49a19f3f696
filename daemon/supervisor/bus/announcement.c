/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tells each peer what a reload changed. Supervisor. */
#include <string.h>

#include "daemon/supervisor/access/admission.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/bus/announcement.h"

#define QUEUED_MAX 1024               /* messages that the bus has not taken yet */
#define PAUSE_USEC UINT64_C(10000)    /* until the queue is checked again */

/* One database that changed: references; NULL: it was not published before, or is not now. */
typedef struct Change {
        Database *before, *now;
} Change;

typedef struct Announcement {
        GArray *changes;
        GPtrArray *peers; /* unique names of the peers */
        guint n_told;
} Announcement;

static void change_clear(void *data) {
        Change *c = data;

        (void) database_unref(c->before);
        (void) database_unref(c->now);
}

static void announcement_free(Announcement *a) {
        g_array_unref(a->changes);
        g_ptr_array_unref(a->peers);
        g_free(a);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Announcement, announcement_free)

/* ---- Differences ---- */

static void add_change(GArray *changes, Database *before, Database *now) {
        Change c = { .before = before ? database_ref(before) : NULL, .now = now ? database_ref(now) : NULL };

        g_array_append_val(changes, c);
}

static GArray *find_changes(const Context *context, GHashTable *before) {
        GArray *changes = g_array_new(FALSE, FALSE, sizeof(Change));
        GHashTableIter i;
        void *name, *value;

        g_array_set_clear_func(changes, change_clear);
        g_hash_table_iter_init(&i, before);
        while (g_hash_table_iter_next(&i, &name, &value))
                if (g_hash_table_lookup(context->databases, name) != value)
                        add_change(changes, value, g_hash_table_lookup(context->databases, name));
        g_hash_table_iter_init(&i, context->databases);
        while (g_hash_table_iter_next(&i, &name, &value))
                if (!g_hash_table_contains(before, name))
                        add_change(changes, NULL, value);
        return changes;
}

static GPtrArray *name_peers(const Context *context) {
        GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
        GHashTableIter i;
        void *name;

        g_hash_table_iter_init(&i, context->peers);
        while (g_hash_table_iter_next(&i, &name, NULL))
                g_ptr_array_add(names, g_strdup(name));
        return names;
}

/* ---- Turns ---- */

/* Tells the next peer. False: all peers have been told. */
static bool tell_next(Context *context, Announcement *a) {
        while (a->n_told < a->peers->len) {
                Peer *p = g_hash_table_lookup(context->peers, a->peers->pdata[a->n_told++]);

                for (guint i = 0; p && i < a->changes->len; i++) {
                        const Change *c = &g_array_index(a->changes, Change, i);
                        admission_announce(context, p, c->before, c->now);
                }
                if (p)
                        return true;
        }
        return false;
}

/* Without a timer, nothing may stay in the queue: the service would never be idle again. */
static void tell_all(Announcements *all, int error) {
        log_warning("All peers are told at once of the changed databases, without pauses: %s", strerror(-error));
        for (Announcement *a; (a = g_queue_pop_head(&all->queue)); announcement_free(a))
                while (tell_next(all->context, a))
                        ;
        all->timer = sd_event_source_disable_unref(all->timer);
}

static int on_turn(sd_event_source *s, uint64_t usec, void *userdata) {
        Announcements *all = userdata;
        Context *context = all->context;
        uint64_t n_queued = 0;

        (void) sd_bus_get_n_queued_write(context->bus, &n_queued);
        if (n_queued <= QUEUED_MAX && !tell_next(context, all->queue.head->data))
                announcement_free(g_queue_pop_head(&all->queue));
        if (!all->queue.head) {
                all->timer = sd_event_source_disable_unref(all->timer);
                return 0;
        }
        int r = sd_event_source_set_time_relative(s, n_queued > QUEUED_MAX ? PAUSE_USEC : 0);
        if (r >= 0)
                r = sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        if (r < 0)
                tell_all(all, r);
        return 0;
}

void announcements_add(Announcements *all, GHashTable *before) {
        Context *context = all->context;
        g_autoptr(Announcement) a = g_new(Announcement, 1);
        int r = 0;

        *a = (Announcement) { .changes = find_changes(context, before), .peers = name_peers(context) };
        if (a->changes->len == 0 || a->peers->len == 0)
                return;
        if (!all->timer)
                r = sd_event_add_time_relative(context->event, &all->timer, CLOCK_MONOTONIC, 0, 1, on_turn, all);
        g_queue_push_tail(&all->queue, g_steal_pointer(&a));
        if (r < 0)
                tell_all(all, r);
}

bool announcements_are_busy(const Announcements *all) {
        return all->queue.head;
}

void announcements_stop(Announcements *all) {
        all->timer = sd_event_source_disable_unref(all->timer);
        while (all->queue.head)
                announcement_free(g_queue_pop_head(&all->queue));
}
