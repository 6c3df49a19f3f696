/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls the service besides queries, see service.h. */
#include "tools/cli/shell/service.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/unreachable.h"

#define _cleanup_(function) __attribute__((cleanup(function)))

static const char name[] = "org.sqlipc1", manager_path[] = "/org/sqlipc1", manager[] = "org.sqlipc1.Manager";

int service_bus(Shell *shell, sd_bus **ret) {
        sqlipc_connection *connection;
        int r = session_connect(&shell->session, &connection);

        if (r < 0)
                return r;
        *ret = sqlipc_get_bus(connection);
        return *ret ? 0 : -ENOTCONN;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        *(sd_bus_message **) userdata = sd_bus_message_ref(reply);
        return 0;
}

/* Waits until the bus is readable, or a signal comes. */
static int wait_for_bus(sd_bus *bus) {
        struct pollfd fds[] = { { .fd = sd_bus_get_fd(bus) }, { .fd = interrupt_fd(), .events = POLLIN } };
        int64_t now = g_get_monotonic_time(), left = -1;
        uint64_t until = UINT64_MAX;
        int r = sd_bus_get_events(bus);

        if (r < 0)
                return r;
        fds[0].events = (short) r;
        r = sd_bus_get_timeout(bus, &until);
        if (r < 0)
                return r;
        if (until < (uint64_t) INT64_MAX)
                left = (int64_t) until > now ? ((int64_t) until - now + 999) / 1000 : 0;
        return poll(fds, G_N_ELEMENTS(fds), (int) left) < 0 && errno != EINTR ? -errno : 0;
}

/* Waits for the reply. Does not consume Ctrl-C: that is left to the caller, so that no further call waits. */
static int wait_for_reply(sd_bus *bus, sd_bus_message *const *reply) {
        for (;;) {
                int r = sd_bus_process(bus, NULL);

                if (*reply)
                        return 0;
                if (interrupt_pending() || interrupt_leave())
                        return -ECANCELED;
                if (r == 0)
                        r = wait_for_bus(bus);
                if (r < 0)
                        return r;
        }
}

static void forget_refusal(Shell *shell) {
        g_clear_pointer(&shell->refusal_name, g_free);
        g_clear_pointer(&shell->refusal_message, g_free);
}

/* Stores the error for service_complain(). */
static int note_refusal(Shell *shell, sd_bus_message *reply) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        shell->refusal_name = g_strdup(error->name);
        shell->refusal_message = g_strdup(error->message ?: error->name);
        return -sd_bus_message_get_errno(reply);
}

/* Calls asynchronously, because sd_bus_call() would miss a signal that comes just before it waits. */
static int call(Shell *shell, sd_bus *bus, sd_bus_message *message, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        int r;

        forget_refusal(shell);
        if (interrupt_pending() || interrupt_leave())
                return -ECANCELED;
        r = sd_bus_call_async(bus, &slot, message, on_reply, &reply, SERVICE_WAIT_USEC);
        if (r >= 0)
                r = wait_for_reply(bus, &reply);
        if (r < 0)
                return r;
        if (sd_bus_message_is_method_error(reply, NULL))
                return note_refusal(shell, reply);
        *ret = g_steal_pointer(&reply);
        return 0;
}

int service_call(Shell *shell, const char *method, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        sd_bus *bus;
        int r = service_bus(shell, &bus);

        if (r >= 0)
                r = sd_bus_message_new_method_call(bus, &message, name, manager_path, manager, method);
        if (r >= 0)
                r = sd_bus_message_append(message, "a{sv}", 0);
        return r < 0 ? r : call(shell, bus, message, ret);
}

static int database_path(const Shell *shell, char **ret) {
        if (!shell->session.database)
                return -ENODATA;
        return sd_bus_path_encode("/org/sqlipc1/database", shell->session.database, ret);
}

int service_property(Shell *shell, bool of_database, const char *property, const char *type, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL, *reply = NULL;
        g_autofree char *path = NULL;
        sd_bus *bus;
        int r = of_database ? database_path(shell, &path) : 0;

        if (r >= 0)
                r = service_bus(shell, &bus);
        if (r >= 0)
                r = sd_bus_message_new_method_call(bus, &message, name, path ?: manager_path,
                                                   "org.freedesktop.DBus.Properties", "Get");
        if (r >= 0)
                r = sd_bus_message_append(message, "ss", of_database ? "org.sqlipc1.Database" : manager, property);
        if (r >= 0)
                r = call(shell, bus, message, &reply);
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'v', type);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&reply);
        return 0;
}

static char *sentence_of(const Shell *shell, const char *bus, int r) {
        char *sentence = unreachable_service(bus, shell->refusal_name);

        if (sentence)
                return sentence;
        if (r == -ETIMEDOUT || r == -ECONNRESET)
                return g_strdup_printf("sqlipcd on %s ended, or does not answer: try again", bus);
        return g_strdup_printf("cannot ask sqlipcd on %s: %s", bus, shell->refusal_message ?: g_strerror(-r));
}

void service_complain(Shell *shell, int r) {
        g_autofree char *bus = session_describe_bus(&shell->session), *sentence = NULL;
        const char *refusal = shell_is_verbose(shell) ? shell->refusal_name : NULL;

        if (r == -ECANCELED) {
                (void) interrupt_take();
                shell_say(shell, "Cancelled.");
                return;
        }
        if (!shell->session.connection) {
                query_complain(shell, r, NULL);
                return;
        }
        sentence = sentence_of(shell, bus, r);
        shell_complain(shell, refusal ? "%s (%s)" : "%s", sentence, refusal);
        if (r == -EHOSTUNREACH || r == -ENXIO) {
                shell_note_failure(shell, EXIT_UNREACHABLE);
                query_suggest_other_bus(shell, shell->session.database);
        }
}

uint64_t service_limit(Shell *shell, const char *key, uint64_t otherwise) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *found;
        uint64_t value;

        if (service_property(shell, true, "Limits", "a{st}", &reply) < 0 ||
            sd_bus_message_enter_container(reply, 'a', "{st}") < 0)
                return otherwise;
        while (sd_bus_message_read(reply, "{st}", &found, &value) > 0)
                if (g_str_equal(found, key))
                        return value;
        return otherwise;
}
