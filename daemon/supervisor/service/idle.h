/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exit when idle, without losing a call. Supervisor.
 *
 *      SERVING --nothing asked or held for IdleExitSec=--> RELEASING --the bus confirms; nothing is held--> stop
 *                                                           ^      |
 *                                       nothing is held --> |      | the bus confirms; something is held
 *                                                           |      v
 *                                                   LINGERING <-- TAKING_BACK --another has the name--> NAMELESS
 *                                                                                         nothing is held --> stop
 *
 * 1. Calls that the bus routed to us before it took the name away are in our queue before its reply. So when that reply is
 *    dispatched, all of them were answered or are held. Later calls start the next instance.
 * 2. Work may have begun in between: a statement that its client now calls by our name, or a long query that the next
 *    instance would have to wait for (the service manager starts it only after this one has exited). So the name is taken
 *    back, and with it the calls that the bus kept for the next instance.
 * 3. The service manager was told that the service stops, and this cannot be revoked. So its stop timeout is extended as
 *    long as anything is held, and the exit is tried again as soon as nothing is held.
 * 4. Without a service manager that holds the next instance back, that instance may take the name first. Then this one
 *    serves the clients that it has under its unique name.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_IDLE_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_IDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

typedef struct Context Context;

typedef enum IdleState {
        IDLE_SERVING,
        IDLE_RELEASING,
        IDLE_TAKING_BACK,
        IDLE_LINGERING,
        IDLE_NAMELESS,
} IdleState;

typedef struct IdleEvents {
        bool (*is_busy)(const Context *context);            /* is anything asked or held? */
        void (*stop)(Context *context, int exit_code);
} IdleEvents;

typedef struct Idle {
        Context *context;               /* not owned */
        const IdleEvents *events;
        IdleState state;
        bool was_busy;
        bool asleep;                    /* SERVING: something was held when the timer fired, so it is off until nothing is */
        uint64_t since_usec;            /* when a method was last called, or something was last held */
        sd_event_source *timer;         /* SERVING: for IdleExitSec=; else: to extend the service manager's timeout */
        sd_event_source *quiet;         /* LINGERING, NAMELESS: fires once nothing is held */
        sd_bus_slot *call;              /* RELEASING: of ReleaseName; TAKING_BACK: of RequestName */
} Idle;

/* Starts to watch. The service requests its name right after this. -errno. */
int idle_start(Idle *i, Context *context, const IdleEvents *events);

/* The service stops, or is being freed: stops watching. */
void idle_stop(Idle *i);

/* A method was called. */
void idle_on_call(Idle *i);

/* IdleExitSec= may have changed. */
void idle_on_reload(Idle *i);

#endif
