/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exit when idle, without losing a call. Supervisor.
 *
 *      SERVING --nothing asked or held for IdleExitSec=--> RELEASING --the bus confirms; nothing is held--> manager_stop()
 *                                                           ^      |
 *                                       nothing is held --> |      | the bus confirms; something is held
 *                                                           |      v
 *                                                   LINGERING <-- TAKING_BACK --another has the name--> NAMELESS
 *                                                                                         nothing is held --> manager_stop()
 *
 * 1. What the bus routed to us before it took the name away lies before its reply in our queue: when the reply is
 *    dispatched, all of that was answered, or is held. What comes later starts the next instance.
 * 2. Something may have begun in between: a statement that its client now calls by our name, a long query that the next
 *    instance would have to wait for (the service manager starts it only once we are gone). So the name is taken back, and
 *    with it the calls that the bus kept for the next instance.
 * 3. The service manager was told that we stop, and cannot be told otherwise: its patience is renewed for as long as
 *    anything is held, and the exit tried again at the first moment when nothing is.
 * 4. Where no service manager holds the next instance back, that one may have the name first. Then we serve what we hold,
 *    under our unique name.
 */
#ifndef SQLIPC_IDLE_H
#define SQLIPC_IDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

typedef struct Manager Manager;

typedef enum IdleState {
        IDLE_SERVING,
        IDLE_RELEASING,
        IDLE_TAKING_BACK,
        IDLE_LINGERING,
        IDLE_NAMELESS,
} IdleState;

typedef struct Idle {
        IdleState state;
        bool was_busy;
        uint64_t since_usec;            /* when something was last asked, or held */
        sd_event_source *timer;         /* SERVING: IdleExitSec= has passed; else: the service manager's patience */
        sd_event_source *quiet;         /* LINGERING, NAMELESS: once nothing is held */
        sd_bus_slot *call;              /* ReleaseName, RequestName */
} Idle;

/* Starts to watch; the name is ours. */
int idle_start(Manager *m);

/* We stop, or are gone: watches nothing any more. */
void idle_stop(Manager *m);

/* A method was called. */
void idle_on_call(Manager *m);

/* IdleExitSec= may have changed. */
void idle_on_reload(Manager *m);

#endif
