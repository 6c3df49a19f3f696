/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of databases that the service publishes. Library. */
#include <string.h>

#include "client-lib/call.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/database-list.h"
#include "client-lib/dictionary.h"
#include "client-lib/error.h"
#include "dbus-interfaces/sqlipc-names.h"

static void on_list_reply(sd_bus_message *reply, void *userdata) {
        *(sd_bus_message **) userdata = sd_bus_message_ref(reply);
}

/* Sends ListDatabases and waits for its reply, which the caller frees. */
static int request(sqlipc_connection *c, sd_bus_message **ret) {
        _cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
        unsigned n_interrupts = connection_interrupts(c);
        uint64_t deadline = 0;
        Call *call;
        int r;

        r = connection_bus_ensure(c);
        if (r < 0)
                return connection_fail_send(c, r);
        r = sd_bus_message_new_method_call(c->bus, &m, SQLIPC_BUS_NAME, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE,
                                           "ListDatabases");
        if (r < 0)
                return connection_fail_send(c, r);
        r = sd_bus_message_append(m, "a{sv}", 0);
        if (r < 0)
                return connection_fail_send(c, r);
        r = call_new(&call, c, m, on_list_reply, NULL, &reply, UINT64_MAX);
        if (r < 0)
                return connection_fail_send(c, r);
        while (!reply && r >= 0 && n_interrupts == connection_interrupts(c))
                r = connection_wait(c, CONNECTION_NO_DATA, &deadline);
        (void) call_free(call);
        if (!reply && r >= 0)
                return error_set(&c->error, ERROR_CANCELLED, "The list of databases was interrupted.");
        if (!reply)
                return connection_fail_wait(c, r);
        if (sd_bus_message_get_error(reply))
                return error_set_reply(&c->error, reply);
        *ret = steal(reply);
        return 0;
}

/* The database that a visitor gets; the strings are in the reply. */
struct sqlipc_database {
        const char *name, *description, *mode;
};

static int read_detail(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        sqlipc_database *database = userdata;

        if (strcmp(type, "s") != 0)
                return 0;
        if (strcmp(key, "description") == 0)
                return sd_bus_message_read(reply, "v", "s", &database->description);
        if (strcmp(key, "mode") == 0)
                return sd_bus_message_read(reply, "v", "s", &database->mode);
        return 0;
}

/* Reads the next element of the list. 1: there is one; 0: the end. */
static int read_database(sd_bus_message *reply, sqlipc_database *ret) {
        const char *path;
        int r;

        r = sd_bus_message_enter_container(reply, 'r', "soa{sv}");
        if (r <= 0)
                return r;
        *ret = (sqlipc_database) { .description = "", .mode = "" };
        r = sd_bus_message_read(reply, "so", &ret->name, &path);
        if (r < 0)
                return r;
        r = dictionary_read(reply, read_detail, ret);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(reply);
        return r < 0 ? r : 1;
}

typedef struct Broken {
        const char *name, *problem; /* problem: borrowed from the reply; NULL: none */
} Broken;

/* Reads info["broken"], which the service tells its own user. */
static int read_info(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        Broken *broken = userdata;
        const char *name, *problem;
        int r;

        if (strcmp(key, "broken") != 0 || strcmp(type, "a{ss}") != 0)
                return 0;
        r = sd_bus_message_enter_container(reply, 'v', "a{ss}");
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "{ss}");
        while (r >= 0 && (r = sd_bus_message_read(reply, "{ss}", &name, &problem)) > 0)
                if (strcmp(name, broken->name) == 0)
                        broken->problem = problem;
        if (r >= 0)
                r = sd_bus_message_exit_container(reply);
        if (r >= 0)
                r = sd_bus_message_exit_container(reply);
        return r < 0 ? r : 1;
}

static int find(sd_bus_message *reply, const char *name, const char **ret_problem) {
        sqlipc_database database;
        Broken broken = { .name = name };
        int r = sd_bus_message_enter_container(reply, 'a', "(soa{sv})"), found = 0;

        while (r >= 0 && (r = read_database(reply, &database)) > 0)
                found |= strcmp(database.name, name) == 0;
        if (r >= 0)
                r = sd_bus_message_exit_container(reply);
        if (r >= 0)
                r = dictionary_read(reply, read_info, &broken);
        *ret_problem = broken.problem;
        return r < 0 ? r : found;
}

int database_list_find(sqlipc_connection *c, const char *name) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        const char *problem = NULL;
        int r = request(c, &reply);

        if (r < 0)
                return r;
        r = name ? find(reply, name, &problem) : 1;
        if (r < 0)
                return connection_fail_errno(c, r);
        if (r == 0 && problem)
                return error_set(&c->error, ERROR_UNKNOWN_DATABASE, "The database \"%.200s\" is not published, because its "
                                 "configuration has an error: %.500s", name, problem);
        return r;
}

_public_ int sqlipc_list_databases(sqlipc_connection *connection, sqlipc_database_visitor visit, void *userdata) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_(sqlipc_connection_unrefp) sqlipc_connection *kept = NULL;
        sqlipc_database database;
        int r, stop;

        if (!connection || !visit)
                return connection_fail_errno(connection, -EINVAL);
        r = connection_check(connection);
        if (r < 0)
                return r;
        kept = sqlipc_connection_ref(connection); /* a handler or the visitor may close it */
        r = request(connection, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "(soa{sv})");
        if (r < 0)
                return connection_fail_errno(connection, r);
        while ((r = read_database(reply, &database)) > 0) {
                stop = visit(&database, userdata);
                if (stop != 0)
                        return stop;
        }
        return r < 0 ? connection_fail_errno(connection, r) : 0;
}

_public_ const char *sqlipc_database_name(const sqlipc_database *database) {
        return database ? database->name : NULL;
}

_public_ const char *sqlipc_database_description(const sqlipc_database *database) {
        return database ? database->description : NULL;
}

_public_ const char *sqlipc_database_mode(const sqlipc_database *database) {
        return database ? database->mode : NULL;
}
