/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service on the bus, see bus.h. */
#include "tools/ctl/bus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus-interfaces/bus-owner.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tools/ctl/call-failure.h"
#include "tools/ctl/listing.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus, sd_bus_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_message, sd_bus_message_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_creds, sd_bus_creds_unref)

static int open_address(const char *address, sd_bus **ret) {
        g_autoptr(sd_bus) bus = NULL;
        int r = sd_bus_new(&bus);

        if (r >= 0)
                r = sd_bus_set_address(bus, address);
        if (r >= 0)
                r = sd_bus_set_bus_client(bus, true);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&bus);
        return 0;
}

static int open_user(sd_bus **ret) {
        g_autoptr(sd_bus) bus = NULL;
        int r = sd_bus_open_user(&bus);

        if (r < 0)
                return r;
        if (bus_owner_is_another_user(sd_bus_get_fd(bus))) {
                sd_bus_close(bus);
                return -EPERM;
        }
        *ret = g_steal_pointer(&bus);
        return 0;
}

int bus_open(Context *c) {
        const char *what = c->address             ? "bus at this address"
                           : c->host              ? "other host's bus"
                           : c->machine           ? "container's bus"
                           : context_is_system(c) ? "system bus"
                                                  : "user's bus";
        int r;

        if (c->bus)
                return 0;
        r = c->address              ? open_address(c->address, &c->bus)
            : c->host               ? sd_bus_open_system_remote(&c->bus, c->host)
            : c->machine && c->user ? sd_bus_open_user_machine(&c->bus, c->machine)
            : c->machine            ? sd_bus_open_system_machine(&c->bus, c->machine)
            : context_is_system(c)  ? sd_bus_open_system(&c->bus)
                                    : open_user(&c->bus);
        if (context_is_remote(c))
                users_are_foreign();
        if (r == -EPERM && !c->address && !context_is_remote(c) && !context_is_system(c))
                complain("The user's bus that the environment names belongs to another user. Run the command as that user, "
                         "or give --system.");
        else if (r < 0)
                complain("The %s cannot be reached: %s. Give --system, --user or --address= for another.", what,
                         g_strerror(-r));
        return r;
}

/* A reply of another type comes from a program that is not sqlipcd, or from another version of it. */
static int take_reply(sd_bus_message *reply, const char *type, sd_bus_error *error, GVariant **ret) {
        g_autoptr(GVariant) body = NULL;
        int r = variant_from_message(reply, &body);

        if (r < 0 && r != -EBADMSG)
                return r;
        if (r < 0 || !g_variant_is_of_type(body, G_VARIANT_TYPE(type))) {
                (void) sd_bus_error_setf(error, CALL_FAILURE_REPLY_TYPE, "its signature is \"%s\" instead of \"%.*s\"",
                                         sd_bus_message_get_signature(reply, true), (int) strlen(type) - 2, type + 1);
                return -EBADMSG;
        }
        *ret = g_steal_pointer(&body);
        return 0;
}

/* A user who authenticates gets 12 times the service's time limit, which is 5 minutes. 0 is libsystemd's own limit. */
static uint64_t time_limit(const Context *c, Start start) {
        uint64_t usec = 0;

        if (start == START_AUTHENTICATION && sd_bus_get_method_call_timeout(c->bus, &usec) >= 0)
                usec *= 12;
        return usec;
}

/* sd-bus gives each message it sends a number, so a repeat is a message of its own. */
static int call_once(Context *c, Start start, const char *path, const char *interface, const char *method,
                     const char *reply_type, sd_bus_error *error, GVariant **ret, const char *types, va_list arguments) {
        g_autoptr(sd_bus_message) call = NULL, reply = NULL;
        int r;

        r = sd_bus_message_new_method_call(c->bus, &call, SQLIPC_BUS_NAME, path, interface, method);
        if (r >= 0)
                r = sd_bus_message_set_auto_start(call, start == START_SERVICE);
        if (r >= 0)
                r = sd_bus_message_set_allow_interactive_authorization(call, start == START_AUTHENTICATION);
        if (r >= 0)
                r = sd_bus_message_appendv(call, types, arguments);
        if (r >= 0)
                r = sd_bus_call(c->bus, call, time_limit(c, start), error, &reply);
        return r < 0 ? r : take_reply(reply, reply_type, error, ret);
}

int bus_call(Context *c, Start start, const char *path, const char *interface, const char *method, const char *reply_type,
             sd_bus_error *error, GVariant **ret, const char *types, ...) {
        CallRepeats repeats = { .may_start = start == START_SERVICE, .changes_nothing = start != START_AUTHENTICATION };
        int r;

        do {
                va_list arguments;

                sd_bus_error_free(error);
                va_start(arguments, types);
                r = call_once(c, start, path, interface, method, reply_type, error, ret, types, arguments);
                va_end(arguments);
        } while (r < 0 && error->name && call_repeats_take(&repeats, error->name));
        return r;
}

int bus_call_manager(Context *c, const char *method, const char *reply_type, GVariant **ret) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        int r = bus_open(c);

        if (r < 0)
                return r;
        r = bus_call(c, START_SERVICE, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, method, reply_type, &error, ret,
                     "a{sv}", 0);
        if (r < 0)
                (void) bus_failed(c, &error, r);
        return r;
}

/* ---- Failures ----------------------------------------------------------------------------------------------------- */

bool bus_is_absent(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER);
}

bool bus_can_start(Context *c) {
        char **names = NULL;
        bool found;

        if (sd_bus_list_names(c->bus, NULL, &names) < 0)
                return false;
        found = g_strv_contains((const char *const *) names, SQLIPC_BUS_NAME);
        for (char **name = names; *name; name++)
                free(*name);
        free(names);
        return found;
}

static const char *advice(const Context *c) {
        return c->address             ? "start sqlipcd with --address="
               : context_is_remote(c) ? "try 'systemctl status sqlipcd' there"
               : context_is_system(c) ? "try 'systemctl start sqlipcd', and 'systemctl status sqlipcd' for why not"
                                      : "try 'systemctl --user start sqlipcd', or give --system for the system's";
}

char *bus_failure(Context *c, const sd_bus_error *error, int r) {
        return call_failure_sentence(error->name, error->message, r, bus_is_absent(error) && bus_can_start(c), advice(c));
}

int bus_failed(Context *c, const sd_bus_error *error, int r) {
        g_autofree char *sentence = bus_failure(c, error, r);

        complain("%s", sentence);
        return CTL_FAILED;
}

/* ---- Owner of the name -------------------------------------------------------------------------------------------- */

int bus_get_service(Context *c, uid_t *ret_uid, pid_t *ret_pid) {
        g_autoptr(sd_bus_creds) creds = NULL;
        int r = sd_bus_get_name_creds(c->bus, SQLIPC_BUS_NAME, SD_BUS_CREDS_EUID | SD_BUS_CREDS_PID, &creds);

        if (r >= 0)
                r = sd_bus_creds_get_euid(creds, ret_uid);
        if (r >= 0)
                r = sd_bus_creds_get_pid(creds, ret_pid);
        return r;
}

char *database_of(const char *object) {
        char *name = NULL, *copy;

        if (sd_bus_path_decode(object, SQLIPC_DATABASE_PATH, &name) <= 0)
                return g_strdup(object);
        copy = g_strdup(g_utf8_validate(name, -1, NULL) ? name : object);
        free(name);
        return copy;
}
