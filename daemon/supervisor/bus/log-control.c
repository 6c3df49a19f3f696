/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.freedesktop.LogControl1(5) on the bus: the log level and the log target. Supervisor.
 *
 * `systemctl service-log-level sqlipcd debug` calls it. All users may read the properties, administrators may write them.
 */
#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/bus/log-control.h"

#define LOG_CONTROL_PATH "/org/freedesktop/LogControl1"
#define LOG_CONTROL_INTERFACE "org.freedesktop.LogControl1"

/* Reads the new value, if the caller may set one. */
static int read_value(Context *context, sd_bus *bus, sd_bus_message *value, const char **ret, sd_bus_error *error) {
        sd_bus_message *call = sd_bus_get_current_message(bus);
        const Peer *peer = call ? peer_of(context, call) : NULL;

        if (!peer || !peer_is_administrator(context, peer))
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED,
                                        "Only root, or the user that the service runs as, may change its log.");
        return sd_bus_message_read_basic(value, 's', ret);
}

static int property_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_level_to_string(log_level()));
}

static int set_level(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *value,
                     void *userdata, sd_bus_error *error) {
        const char *text;
        int r = read_value(userdata, bus, value, &text, error);

        if (r < 0)
                return r;
        r = log_level_from_string(text);
        if (r < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "\"%.100s\" is no log level: give one of syslog(3), \"debug\" to \"emerg\".", text);
        log_set_level(r);
        return 0;
}

static int property_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_target_to_string(log_target()));
}

static int set_target(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *value,
                      void *userdata, sd_bus_error *error) {
        const char *text;
        int r = read_value(userdata, bus, value, &text, error);

        if (r < 0)
                return r;
        r = log_target_from_string(text);
        if (r < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "\"%.100s\" is no log target: give auto, console, journal or null.", text);
        log_set_target((LogTarget) r);
        return 0;
}

static int property_identifier(sd_bus *bus, const char *path, const char *interface, const char *property,
                               sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", LOG_IDENTIFIER);
}

/* Marked as unprivileged for sd-bus, which would otherwise ask the bus for the caller's credentials and wait (I1).
 * read_value() checks the caller. */
static const sd_bus_vtable log_control_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", property_level, set_level, 0, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", property_target, set_target, 0, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", property_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

int log_control_export(Context *context) {
        return sd_bus_add_object_vtable(context->bus, NULL, LOG_CONTROL_PATH, LOG_CONTROL_INTERFACE, log_control_vtable,
                                         context);
}
