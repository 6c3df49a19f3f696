/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exit when idle, without losing a call. Supervisor. */
#include <stdlib.h>
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/service/idle.h"
#include "daemon/supervisor/service/service.h"
#include "dbus-interfaces/sqlipc-names.h"

#define PATIENCE_USEC UINT64_C(30000000) /* the extension that the service manager is asked for at a time */

#define ACCURACY_USEC 1000

/* The priority of work that comes after everything else that the loop has to do now. */
#define AFTER_ALL (SD_EVENT_PRIORITY_NORMAL + 20)

static int on_released(sd_bus_message *reply, void *userdata, sd_bus_error *error);
static int on_taken_back(sd_bus_message *reply, void *userdata, sd_bus_error *error);

static void arm(Idle *i, uint64_t usec) {
        (void) sd_event_source_set_time(i->timer, usec);
        (void) sd_event_source_set_enabled(i->timer, SD_EVENT_ONESHOT);
}

/* The time at which IdleExitSec= will have passed; UINT64_MAX: never. */
static uint64_t exit_usec(const Idle *i) {
        uint64_t wait = i->context->config->service.idle_exit_usec;

        return wait < UINT64_MAX - i->since_usec ? i->since_usec + wait : UINT64_MAX;
}

static void watch(Idle *i) {
        i->asleep = false;
        arm(i, exit_usec(i)); /* enabled in any case, because on_prepare() belongs to it */
}

/* ---- Exit ---- */

static void quit(Idle *i) {
        log_event(LOG_EVENT_IDLE_EXIT, NULL, "Idle: exiting.");
        i->events->stop(i->context, EXIT_SUCCESS);
}

static void release(Idle *i) {
        service_notify("STOPPING=1"); /* first: from now on, a start of the service waits for our exit */
        i->state = IDLE_RELEASING;
        i->call = sd_bus_slot_unref(i->call);
        int r = sd_bus_release_name_async(i->context->bus, &i->call, SQLIPC_BUS_NAME, on_released, i);
        if (r < 0) {
                log_error("The name cannot be released: %s", strerror(-r));
                i->events->stop(i->context, EXIT_FAILURE);
        }
}

/* The service manager was told STOPPING=1 before. */
static void renew_patience(Idle *i) {
        service_extend_timeout(PATIENCE_USEC);
        arm(i, clock_usec() + PATIENCE_USEC / 3);
}

static void take_back(Idle *i) {
        renew_patience(i);
        i->state = IDLE_TAKING_BACK;
        i->call = sd_bus_slot_unref(i->call);
        int r = sd_bus_request_name_async(i->context->bus, &i->call, SQLIPC_BUS_NAME, 0, on_taken_back, i);
        if (r < 0) {
                log_error("The name cannot be taken back: %s", strerror(-r));
                i->state = IDLE_NAMELESS;
        }
}

static int on_released(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Idle *i = userdata;

        if (i->events->is_busy(i->context))
                take_back(i);
        else
                quit(i);
        return 0;
}

static int on_taken_back(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        enum { PRIMARY_OWNER = 1, ALREADY_OWNER = 4 }; /* values of the D-Bus specification */
        Idle *i = userdata;
        uint32_t answer = 0;

        if (!sd_bus_message_is_method_error(reply, NULL))
                (void) sd_bus_message_read(reply, "u", &answer);
        if (answer == PRIMARY_OWNER || answer == ALREADY_OWNER) {
                i->state = IDLE_LINGERING;
                log_event(LOG_EVENT_NAME_TAKEN_BACK, NULL, "Not idle after all: a client called while we were exiting.");
        } else {
                i->state = IDLE_NAMELESS;
                log_event(LOG_EVENT_NAME_LOST, NULL,
                          "Another instance has the name: this one serves what it holds, and exits.");
        }
        return 0;
}

/* ---- Events ---- */

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        Idle *i = userdata;

        if (i->state != IDLE_SERVING)
                renew_patience(i);
        else if (i->events->is_busy(i->context)) {
                i->asleep = i->was_busy = true; /* on_prepare() sets the timer again: a watch may be held for weeks */
                arm(i, UINT64_MAX);
        } else if (clock_usec() >= exit_usec(i))
                release(i);
        else
                watch(i);
        return 0;
}

/* Nothing is held any more, and the loop has nothing else to do. */
static int on_quiet(sd_event_source *s, void *userdata) {
        Idle *i = userdata;

        if (i->events->is_busy(i->context))
                return 0;
        switch (i->state) {
        case IDLE_LINGERING: release(i); return 0;
        case IDLE_NAMELESS: quit(i); return 0;
        case IDLE_SERVING: /* only the timer ends this state */
        case IDLE_RELEASING:
        case IDLE_TAKING_BACK: return 0; /* the reply of the bus ends these states soon */
        }
        return 0;
}

/* Runs before the loop looks for events, so it costs no turn of the loop, and a query no system call. */
static int on_prepare(sd_event_source *s, void *userdata) {
        Idle *i = userdata;
        bool busy = i->events->is_busy(i->context), was_busy = i->was_busy;

        i->was_busy = busy;
        if (!busy && was_busy) {
                i->since_usec = clock_usec(); /* the timer checks this when it fires */
                if (i->asleep)
                        watch(i);
        }
        if (!busy && (i->state == IDLE_LINGERING || i->state == IDLE_NAMELESS))
                (void) sd_event_source_set_enabled(i->quiet, SD_EVENT_ONESHOT);
        return 0;
}

void idle_on_call(Idle *i) {
        i->since_usec = clock_usec();
}

void idle_on_reload(Idle *i) {
        if (i->timer && i->state == IDLE_SERVING)
                watch(i);
}

int idle_start(Idle *i, Context *context, const IdleEvents *events) {
        i->context = context;
        i->events = events;
        i->since_usec = clock_usec();
        int r = sd_event_add_time(context->event, &i->timer, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_USEC, on_timer, i);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(i->timer, AFTER_ALL);
        if (r < 0)
                return r;
        r = sd_event_source_set_prepare(i->timer, on_prepare);
        if (r < 0)
                return r;
        r = sd_event_add_defer(context->event, &i->quiet, on_quiet, i);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(i->quiet, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(i->quiet, AFTER_ALL);
        if (r < 0)
                return r;
        watch(i);
        return 0;
}

void idle_stop(Idle *i) {
        i->call = sd_bus_slot_unref(i->call);
        i->timer = sd_event_source_disable_unref(i->timer);
        i->quiet = sd_event_source_disable_unref(i->quiet);
}
