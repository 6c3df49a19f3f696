/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gives places to groups that want one. Supervisor. */
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/places.h"

static GPtrArray *find_starved(const Context *context) {
        GPtrArray *starved = g_ptr_array_new();
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->users);
        while (g_hash_table_iter_next(&i, NULL, &value))
                for (GList *k = ((User *) value)->groups.head; k; k = k->next)
                        if (((Group *) k->data)->starved)
                                g_ptr_array_add(starved, group_ref(k->data));
        return starved;
}

void places_offer(Context *context) {
        if (context->n_starved == 0)
                return;
        g_autoptr(GPtrArray) starved = find_starved(context);
        for (guint k = 0; k < starved->len; k++) {
                group_on_offer(starved->pdata[k]);
                (void) group_unref(starved->pdata[k]);
        }
}

static int waits_longer(const void *a, const void *b) {
        const Group *one = *(Group *const *) a, *other = *(Group *const *) b;

        return one->starved_usec < other->starved_usec ? -1 : one->starved_usec > other->starved_usec;
}

void places_on_worker_gone(Context *context) {
        g_autoptr(GPtrArray) starved = find_starved(context);

        g_ptr_array_sort(starved, waits_longer);
        for (guint k = 0; k < starved->len; k++) {
                Group *g = starved->pdata[k];

                g->asked_usec = 0; /* another group may have got the place that this one asked for */
                group_staff(g);
                (void) group_unref(g);
        }
}
