/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bus and the database of the shell (session.h). */
#include "tools/cli/shell/session.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <systemd/sd-bus.h>

#include "tools/cli/output/interrupt.h"

/* Larger rows are kept in a file, so that the memory of the shell does not depend on the data. */
#define ROW_MEMORY_MAX ((size_t) 4 * 1024 * 1024)

void session_init(Session *session) {
        *session = (Session) { .transaction.savepoints = g_ptr_array_new_with_free_func(g_free), .generation = 1 };
}

static void forget_bus(BusChoice *choice) {
        g_clear_pointer(&choice->address, g_free);
        g_clear_pointer(&choice->host, g_free);
}

void session_done(Session *session) {
        session_disconnect(session);
        g_ptr_array_unref(session->transaction.savepoints);
        forget_bus(&session->bus);
        g_clear_pointer(&session->database, g_free);
}

static int open_connection(const BusChoice *bus, const char *database, sqlipc_connection **ret) {
        if (bus->kind == BUS_FOUND)
                return sqlipc_open(database, NULL, ret);
        if (bus->kind == BUS_ADDRESS)
                return sqlipc_open_address(bus->address, ret);
        if (bus->host)
                return bus->kind == BUS_SYSTEM ? sqlipc_open_system_remote(bus->host, ret)
                                               : sqlipc_open_user_remote(bus->host, ret);
        return bus->kind == BUS_SYSTEM ? sqlipc_open_system(ret) : sqlipc_open_user(ret);
}

/* Waits until ssh has connected: it may ask for a password, or wait for a machine that is off. Ctrl-C ends this wait; calls
 * of the library would not notice it. If ssh exits, the first call of the library reports that. */
static int wait_for_relay(sd_bus *bus) {
        int r = 1;

        while (bus && r >= 0 && sd_bus_is_ready(bus) == 0) {
                struct pollfd fds[2] = { { .fd = sd_bus_get_fd(bus) }, { .fd = interrupt_fd(), .events = POLLIN } };

                r = sd_bus_process(bus, NULL);
                if (r != 0)
                        continue;
                fds[0].events = (short) sd_bus_get_events(bus);
                if (poll(fds, G_N_ELEMENTS(fds), 1000) > 0 && fds[1].revents && interrupt_take() > 0)
                        return -ECANCELED;
                if (interrupt_leave())
                        return -ECANCELED;
                if (fds[0].revents & (POLLHUP | POLLERR))
                        return 0;
        }
        return 0;
}

static int connect_anew(Session *session, const char *database) {
        int r = open_connection(&session->bus, database, &session->connection);

        session->unreachable = r < 0 && !session->connection;
        session->not_found = r < 0 && session->connection;
        if (r < 0)
                return r;
        r = session->bus.host ? wait_for_relay(sqlipc_get_bus(session->connection)) : 0;
        if (r < 0) {
                session_disconnect(session);
                return r;
        }
        (void) sqlipc_set_allow_interactive_authorization(session->connection, session->interactive_authorization);
        (void) sqlipc_set_row_memory_max(session->connection, ROW_MEMORY_MAX);
        r = sqlipc_set_transport(session->connection, session->transport);
        if (r < 0)
                session_disconnect(session);
        return r;
}

int session_connect(Session *session, sqlipc_connection **ret) {
        int r;

        if (session->not_found)
                session_disconnect(session);
        r = session->connection ? 0 : connect_anew(session, session->database);
        *ret = session->connection;
        return r >= 0 && session->untold_loss ? -ESTALE : r;
}

void session_forget_transaction(Session *session) {
        SessionTransaction *transaction = &session->transaction;

        transaction->object = sqlipc_transaction_close(transaction->object);
        transaction->writes = transaction->of_savepoint = transaction->of_script = false;
        g_ptr_array_set_size(transaction->savepoints, 0);
}

void session_disconnect(Session *session) {
        session_forget_transaction(session);
        session->connection = sqlipc_close(session->connection);
        g_clear_pointer(&session->untold_loss, g_free);
        session->not_found = session->may_have_pin = false;
}

void session_change_bus(Session *session, BusChoice *choice) {
        session_disconnect(session);
        forget_bus(&session->bus);
        session->bus = *choice;
        *choice = (BusChoice) {};
        session->generation++;
}

static int is_wanted(const sqlipc_database *database, void *userdata) {
        return g_str_equal(sqlipc_database_name(database), userdata);
}

int session_open(Session *session, const char *name) {
        g_autofree char *wanted = g_strdup(name);
        sqlipc_connection *connection;
        int r;

        if (session->bus.kind == BUS_FOUND) {
                session_disconnect(session);
                r = connect_anew(session, wanted);
        } else {
                r = session_connect(session, &connection);
                if (r >= 0)
                        r = sqlipc_list_databases(connection, is_wanted, wanted);
                r = r == 0 ? -ENOENT : r;
        }
        if (r < 0)
                return r;
        g_free(session->database);
        session->database = g_steal_pointer(&wanted);
        session->generation++;
        return 0;
}

int session_set_transport(Session *session, sqlipc_transport transport) {
        const sqlipc_transport before = session->transport;
        sqlipc_connection *connection;
        int r;

        session->transport = transport;
        if (session->connection)
                r = sqlipc_set_transport(session->connection, transport);
        else
                r = session_connect(session, &connection);
        if (r < 0)
                session->transport = before;
        return r;
}

char *session_describe_bus(const Session *session) {
        const BusChoice *bus = &session->bus;
        const char *found = bus->kind == BUS_FOUND ? sqlipc_get_bus_name(session->connection) : NULL;
        bool system = bus->kind == BUS_SYSTEM || g_strcmp0(found, "system") == 0;
        const char *whose = system ? "the system bus" : "the user's bus";

        if (bus->kind == BUS_ADDRESS)
                return g_strdup_printf("the bus at %s", bus->address);
        return bus->host ? g_strdup_printf("%s of %s", whose, bus->host) : g_strdup(whose);
}
