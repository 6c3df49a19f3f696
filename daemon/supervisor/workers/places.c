/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gives places to groups that want one. Supervisor. */
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/places.h"

void places_offer(Context *context) {
        for (GList *i = context->starved.head; i; i = i->next)
                group_on_offer(i->data);
}

void places_on_worker_gone(Context *context) {
        g_autoptr(GPtrArray) starved = g_ptr_array_new();

        for (GList *i = context->starved.head; i; i = i->next)
                g_ptr_array_add(starved, group_ref(i->data));
        for (guint k = 0; k < starved->len; k++) {
                Group *g = starved->pdata[k];

                g->asked_usec = 0; /* another group may have got the place that this one asked for */
                group_staff(g);
                (void) group_unref(g);
        }
}
