/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fate of requests that brought no result (repeat.h). Library. */
#include <stdio.h>
#include <string.h>

#include "client-lib/error.h"
#include "client-lib/repeat.h"
#include "dbus-interfaces/never-began.h"

/* True if the bus driver refused the call, because the instance of the service gave up its name. The service itself never
 * returns such an error for a run. */
static bool is_refused_by_bus(sd_bus_message *reply, const Error *e) {
        static const char bus[] = "org.freedesktop.DBus.Error.";
        const char *sender = sd_bus_message_get_sender(reply);

        if (strncmp(e->name, bus, strlen(bus)) != 0)
                return e->result == -EHOSTDOWN;
        return e->result == -EHOSTDOWN ||
               (e->number == ERROR_ACCESS_DENIED && sender && strcmp(sender, "org.freedesktop.DBus") == 0);
}

Fate repeat_fate_of_reply(sd_bus_message *reply, const Error *e) {
        switch (e->number) {
        case ERROR_UNKNOWN_STATEMENT:
        case ERROR_PIPE_CLOSED:
        case ERROR_SHUTTING_DOWN:
                return FATE_NOT_BEGUN;
        case ERROR_WORKER_LOST:
                return FATE_WORKER_LOST;
        default:
                if (is_refused_by_bus(reply, e))
                        return FATE_NOT_BEGUN;
                return e->number == ERROR_DAEMON_LOST ? FATE_UNKNOWN : FATE_ENDED;
        }
}

Fate repeat_fate_of_frame(uint32_t number) {
        return number == ERROR_UNKNOWN_STATEMENT || number == ERROR_SHUTTING_DOWN ? FATE_NOT_BEGUN : FATE_ENDED;
}

bool repeat_is_allowed(Fate fate, bool read_only) {
        switch (fate) {
        case FATE_NOT_BEGUN:
                return true;
        case FATE_WORKER_LOST:
        case FATE_UNKNOWN:
                return read_only;
        case FATE_ENDED:
                return false;
        }
        return false;
}

bool repeat_take(Repeats *repeats, Fate fate, bool read_only) {
        bool refused = fate == FATE_NOT_BEGUN;

        if (!repeat_is_allowed(fate, read_only) || (refused ? repeats->n_refused == NEVER_BEGAN_REPEATS_MAX : repeats->lost))
                return false;
        if (refused)
                repeats->n_refused++;
        else
                repeats->lost = true;
        return true;
}

void repeat_set_unknown(Error *e, const char *fact) {
        char before[200];

        (void) snprintf(before, sizeof before, "%.199s", e->message);
        (void) error_set(e, ERROR_OUTCOME_UNKNOWN, "%s%sIt is unknown whether %s.", before, before[0] ? " " : "", fact);
}

void repeat_set_outcome(Error *e, Fate fate, bool read_only) {
        if (fate == FATE_UNKNOWN && !read_only)
                repeat_set_unknown(e, STATEMENT_FACT);
}
