/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells each peer what a reload changed: DatabaseAdded and DatabaseRemoved, by unicast (admission.h). Supervisor.
 *
 * Peers times changes can be hundreds of thousands of messages. So the loop tells one peer after the other, between other
 * events, and pauses while the bus does not accept messages as fast as they are made: otherwise replies would queue after
 * all these messages, and memory would hold them. The changes of a second reload are announced only after those of the
 * first, so each peer gets them in order.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_ANNOUNCEMENT_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_ANNOUNCEMENT_H

#include <glib.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct Context Context;

/* `context` is set before use; the rest starts as zeros. */
typedef struct Announcements {
        Context *context;         /* not owned */
        GQueue queue;             /* of Announcement, in order of the reloads */
        sd_event_source *timer;   /* fires when the next peer is to be told */
} Announcements;

/* `before` (name -> Database) was published until now. Each client that is a peer at this moment is told the difference. */
void announcements_add(Announcements *all, GHashTable *before);

/* True if some peer has not been told everything yet. */
bool announcements_are_busy(const Announcements *all);

/* Drops all announcements that were not sent. */
void announcements_stop(Announcements *all);

#endif
