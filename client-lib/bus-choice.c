/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which bus has a database: the rule of sqlipc_open(3), which the shell and all bindings follow. Library.
 *
 *      chosen, by the argument or $SQLIPC_BUS --> that bus alone
 *      else: the user's bus --> has it ----------------------> the user's
 *                           --> says that it has none, or
 *                               there is no such service ----> the system's bus
 *                           --> anything else ---------------> an error: the user's database may be there
 *
 * The other bus is asked as well when there is an error to report, which then says where else the name exists.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/bus-open.h"
#include "client-lib/connection.h"
#include "client-lib/database-list.h"
#include "client-lib/error.h"

#define NO_SERVICE "org.freedesktop.DBus.Error.ServiceUnknown"

typedef enum Bus { USER, SYSTEM } Bus;

static const char *const names[] = { [USER] = "user", [SYSTEM] = "system" };

/* The answer of one bus about a database. */
typedef enum Answer {
        ABSENT,   /* its service has none of this name, or there is no such service */
        PRESENT,
        NO_ANSWER, /* `error` says why */
} Answer;

/* How the program chose the bus, and so how it can choose the other one. */
typedef enum Chooser {
        CHOSEN_BY_ARGUMENT,
        CHOSEN_BY_VARIABLE,
        NOT_CHOSEN,
} Chooser;

typedef struct Side {
        sqlipc_connection *connection; /* owned; NULL: there is no such bus */
        Answer answer;
        bool has_no_service;
        int error;
} Side;

static void side_done(Side *side) {
        (void) sqlipc_close(side->connection);
}

/* A bus that does not exist has no database: in a cron job, without a login, or if the user's bus is that of another user,
 * as under sudo. */
static bool is_missing(int r) {
        return r == -ENOMEDIUM || r == -ENOENT || r == -EPERM;
}

static Side ask(Bus bus, const char *database) {
        Side side = { .answer = ABSENT };
        int r = bus == USER ? sqlipc_open_user(&side.connection) : sqlipc_open_system(&side.connection);

        if (r < 0) {
                side.answer = is_missing(r) ? ABSENT : NO_ANSWER;
                side.error = r;
                return side;
        }
        r = database_list_find(side.connection, database);
        side.has_no_service = r < 0 && strcmp(side.connection->error.name, NO_SERVICE) == 0;
        if (r >= 0 || side.has_no_service)
                side.answer = r > 0 ? PRESENT : ABSENT;
        else
                side.answer = NO_ANSWER;
        side.error = r < 0 ? r : 0;
        return side;
}

/* Says in the details of a failure on `side` that the other bus has a database of this name. An argument overrides the
 * variable, so the advice after an argument is another argument. */
static void tell_where_else(Side *side, Bus bus, Chooser chooser, const char *database) {
        _cleanup_(side_done) Side other = ask(!bus, database);
        Error *e = &side->connection->error;
        size_t n = strlen(e->message);

        if (!database || other.answer != PRESENT)
                return;
        if (chooser == CHOSEN_BY_ARGUMENT)
                (void) snprintf(e->message + n, sizeof e->message - n,
                                " The %s bus has a database of this name: choose \"%s\" as the bus, in place of \"%s\".",
                                names[!bus], names[!bus], names[bus]);
        else
                (void) snprintf(e->message + n, sizeof e->message - n,
                                " The %s bus has a database of this name: choose it by SQLIPC_BUS=%s.", names[!bus],
                                names[!bus]);
}

static int fail(Side *side, Bus bus, Chooser chooser, const char *database, sqlipc_connection **ret) {
        if (side->answer == ABSENT && !side->has_no_service)
                side->error = error_set(&side->connection->error, ERROR_UNKNOWN_DATABASE,
                                        "There is no database \"%.200s\" for you on the %s bus.", database, names[bus]);
        tell_where_else(side, bus, chooser, database);
        *ret = steal(side->connection);
        return side->error;
}

static int open_chosen(Bus bus, Chooser chooser, const char *database, sqlipc_connection **ret) {
        _cleanup_(side_done) Side side = ask(bus, database);

        if (!side.connection)
                return side.error;
        if (side.answer != PRESENT)
                return fail(&side, bus, chooser, database, ret);
        *ret = steal(side.connection);
        return 0;
}

/* Neither bus has it. The details are those of a bus that has the service, if there is one. */
static int fail_on_both(Side *user, Side *system, const char *database, sqlipc_connection **ret) {
        Side *side = system->connection && (!user->connection || !system->has_no_service) ? system : user;

        if (!side->connection)
                return system->error;
        if (!side->has_no_service)
                side->error = error_set(&side->connection->error, ERROR_UNKNOWN_DATABASE,
                                        "There is no database \"%.200s\" for you, neither on the user's bus nor on the "
                                        "system's.", database);
        *ret = steal(side->connection);
        return side->error;
}

static int open_either(const char *database, sqlipc_connection **ret) {
        _cleanup_(side_done) Side user = ask(USER, database), system = {};

        if (user.answer == PRESENT) {
                *ret = steal(user.connection);
                return 0;
        }
        if (user.answer == NO_ANSWER)
                return user.connection ? fail(&user, USER, NOT_CHOSEN, database, ret) : user.error;
        system = ask(SYSTEM, database);
        if (system.answer == ABSENT)
                return fail_on_both(&user, &system, database, ret);
        *ret = steal(system.connection);
        return system.answer == PRESENT ? 0 : system.error;
}

_public_ int sqlipc_open(const char *database, const char *bus, sqlipc_connection **ret_connection) {
        Chooser chooser = bus && *bus ? CHOSEN_BY_ARGUMENT : CHOSEN_BY_VARIABLE;

        if (!ret_connection)
                return -EINVAL;
        *ret_connection = NULL;
        if (!bus)
                bus = secure_getenv("SQLIPC_BUS");
        if (!bus || !*bus)
                return open_either(database, ret_connection);
        for (Bus i = USER; i <= SYSTEM; i++)
                if (strcmp(bus, names[i]) == 0)
                        return open_chosen(i, chooser, database, ret_connection);
        return strchr(bus, ':') ? sqlipc_open_address(bus, ret_connection) : -EINVAL;
}

_public_ const char *sqlipc_get_bus_name(sqlipc_connection *connection) {
        if (!connection || connection->address || !connection->open_bus)
                return NULL;
        return names[connection->open_bus == bus_open_user ? USER : SYSTEM];
}
