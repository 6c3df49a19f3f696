/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bus of a connection (connection-bus.h). Library. */
#include <limits.h>
#include <string.h>

#include "client-lib/bus-open.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/event-loop.h"
#include "dbus-interfaces/sqlipc-names.h"

void connection_bus_look_at_address(sqlipc_connection *c) {
        const char *address;

        if (sd_bus_get_address(c->bus, &address) >= 0 && bus_open_is_relayed(address))
                c->descriptors = DESCRIPTORS_NONE;
}

Descriptors connection_bus_descriptors(sqlipc_connection *c) {
        if (c->descriptors == DESCRIPTORS_UNKNOWN && sd_bus_is_ready(c->bus) > 0)
                c->descriptors = sd_bus_can_send(c->bus, SD_BUS_TYPE_UNIX_FD) > 0 ? DESCRIPTORS_PASS : DESCRIPTORS_NONE;
        if (c->descriptors != DESCRIPTORS_UNKNOWN)
                return c->descriptors;
        /* The library opens only local buses here, and those pass descriptors. A bus of the caller must be ready before
         * this is known, and only a blocking call can wait for that. */
        return c->open_bus || !c->blocking || !connection_bus_is_open(c) ? DESCRIPTORS_PASS : DESCRIPTORS_UNKNOWN;
}

bool connection_bus_is_open(sqlipc_connection *c) {
        return sd_bus_is_open(c->bus) > 0;
}

/* If the bus answers Hello with an error, as one with no room for another connection does, sd-bus reports the error and
 * closes the connection. The next turns answer the calls in progress, as after a loss. */
static int process_one(sqlipc_connection *c) {
        int r = sd_bus_process(c->bus, NULL);

        if (r >= 0 || r == -ENOTCONN || r == -ECONNRESET || c->closed || c->bus_was_ready || connection_bus_is_open(c))
                return r;
        c->bus_refusal = r;
        return 1;
}

int connection_bus_dispatch(sqlipc_connection *c, unsigned n_max) {
        int r = 0, done = 0;

        /* a handler of the program may close the connection */
        while (!c->closed && n_max-- > 0 && (r = process_one(c)) > 0) {
                done = 1;
                turns_step(&c->turns);
                c->bus_was_ready |= !c->closed && sd_bus_is_ready(c->bus) > 0;
        }
        if (c->closed)
                return -ENOTCONN;
        if (r == -ENOTCONN || r == -ECONNRESET) /* the bus is gone: every call in progress has been answered */
                return done;
        return r < 0 ? r : done;
}

/* ssh may have asked for a password. If it ends before the bus has answered, one call must fail and report that; only the
 * call after that starts ssh again. */
static bool never_answered(sqlipc_connection *c) {
        return !connection_bus_is_open(c) && c->open_bus && c->descriptors == DESCRIPTORS_NONE && !c->bus_was_ready;
}

bool connection_bus_must_tell_loss(sqlipc_connection *c) {
        return never_answered(c) && !c->bus_loss_told;
}

bool connection_bus_may_send_again(sqlipc_connection *c, int r) {
        if (r >= 0 || connection_bus_is_open(c))
                return false;
        if (!never_answered(c))
                return true;
        c->bus_loss_told = true;
        return false;
}

/* A bus drops a connection that does not say Hello in time (dbus-daemon's auth_timeout), and ours says Hello only when it
 * is first used. So this function processes the bus to learn its state. It does not do that with a relay such as ssh: see
 * never_answered(). */
static bool is_usable(sqlipc_connection *c) {
        if (connection_bus_is_open(c) && c->open_bus && c->descriptors != DESCRIPTORS_NONE && !c->dispatching &&
            sd_bus_is_ready(c->bus) == 0 && connection_bus_dispatch(c, CONNECTION_BUS_MESSAGES_MAX) < 0)
                return false;
        return connection_bus_is_open(c);
}

int connection_bus_ensure(sqlipc_connection *c) {
        sd_bus *bus = NULL;
        Member *statement;
        int r;

        if (connection_is_foreign(c))
                return -ECHILD;
        c->bus_was_ready |= sd_bus_is_ready(c->bus) > 0;
        if (is_usable(c) || !c->open_bus)
                return 0;
        if (connection_bus_must_tell_loss(c)) {
                c->bus_loss_told = true;
                return -ENOTCONN;
        }

        /* Calls in progress learn of the loss before their slots are freed; the program may wait for them, so this wakes
         * its loop. Cursors are not advanced here, because one of them may be opening the bus. */
        (void) connection_bus_dispatch(c, UINT_MAX); /* the bus is closed: no more messages come */
        r = c->open_bus(&bus, c->address);
        if (r < 0)
                return -ENOTCONN; /* there is no bus, for one reason or another */
        TAILQ_FOREACH(statement, &c->statements, link)
                statement->operations->on_bus_lost(statement);
        sd_bus_close_unref(c->bus);
        c->bus = bus;
        c->bus_was_ready = c->bus_loss_told = false;
        c->bus_refusal = 0;
        c->bus_generation++;
        event_loop_update(c);
        return 0;
}

int connection_bus_new_call(sqlipc_connection *c, sd_bus_message **ret, const char *destination, const char *path,
                            const char *method) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(c->bus, &m, destination ? destination : SQLIPC_BUS_NAME, path,
                                           SQLIPC_DATABASE_INTERFACE, method);
        if (r < 0)
                return r;
        r = sd_bus_message_set_allow_interactive_authorization(m, c->allow_interactive_authorization);
        if (r < 0)
                return r;
        if (destination) {
                r = sd_bus_message_set_auto_start(m, false);
                if (r < 0)
                        return r;
        }
        *ret = steal(m);
        return 0;
}
