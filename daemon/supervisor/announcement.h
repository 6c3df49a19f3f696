/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a reload changed, told to each peer: DatabaseAdded and DatabaseRemoved, by unicast (policy.h). Supervisor.
 *
 * Peers times changes may be hundreds of thousands of messages, so it goes peer by peer, between other events, and waits
 * while the bus takes less than it is given: replies do not stand behind all of that, nor does memory hold it. What a second
 * reload changes is told when the first is done with, so each peer hears of it in order.
 */
#ifndef SQLIPC_ANNOUNCEMENT_H
#define SQLIPC_ANNOUNCEMENT_H

#include <glib.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct Manager Manager;

/* Of the Manager; all zero at first. */
typedef struct Announcements {
        GQueue queue;             /* of Announcement, in order */
        sd_event_source *timer;   /* the next peer's turn */
} Announcements;

/* `before` (name -> Database) was published until now; who is a peer at this moment hears of the difference. */
void announcements_add(Manager *m, GHashTable *before);

/* Somebody has not heard yet. */
bool announcements_are_busy(const Manager *m);

/* Forgets what was not told. */
void announcements_stop(Manager *m);

#endif
