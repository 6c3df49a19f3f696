/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Polling of a channel (channel-polling.h). Client and worker. Pure. */
#include "dbus-interfaces/wire/channel-polling.h"

bool channel_polling_begins(ChannelPolling *p, bool woke, uint64_t now) {
        bool quick = now - p->waited_usec <= CHANNEL_POLLING_QUICK_USEC;

        p->waited_usec = now;
        if (p->n_to_skip > 0) {
                p->n_to_skip--;
                return false;
        }
        p->begun_usec = p->looked_usec = now;
        p->own_usec = 0;
        p->limit_usec = woke && quick ? CHANNEL_POLLING_WOKEN_USEC : CHANNEL_POLLING_USEC;
        return true;
}

static void end(ChannelPolling *p, bool failed) {
        if (!failed)
                p->n_failed = 0;
        else if (p->n_failed < CHANNEL_POLLING_FAILED_MAX)
                p->n_failed++;
        p->n_to_skip = (1u << p->n_failed) - 1;
}

bool channel_polling_looked(ChannelPolling *p, bool found, uint64_t now) {
        uint64_t yield_usec = now - p->looked_usec;
        bool late = now - p->begun_usec >= CHANNEL_POLLING_LATE_USEC;

        p->own_usec += yield_usec > CHANNEL_POLLING_SHARED_USEC ? 1 : (unsigned) yield_usec;
        p->looked_usec = now;
        if (!found && !late && p->own_usec < p->limit_usec)
                return true;
        end(p, !found || late);
        return false;
}
