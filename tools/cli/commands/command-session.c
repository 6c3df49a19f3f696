/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands about the connection: buses, databases, our identity and rights there. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/commands/command-setting.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/status.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-print.h"
#include "tools/cli/shell/service.h"
#include "tools/cli/shell/transaction.h"

#define _cleanup_(function) __attribute__((cleanup(function)))

/* ---- .databases --------------------------------------------------------------------------------------------------- */

/* The bus comes last: it is left out if only one bus is asked. */
enum { COLUMN_NAME, COLUMN_DESCRIPTION, COLUMN_MODE, COLUMN_OPEN, COLUMN_BUS, N_COLUMNS };

static const char *const database_columns[N_COLUMNS] = { "name", "description", "mode", "open", "bus" };

static Value text_value(const char *text) {
        return (Value) { .type = SQLIPC_TEXT, .bytes = text, .size = strlen(text) };
}

static int read_text(sd_bus_message *m, Value *ret) {
        const char *text;
        int r = sd_bus_message_read(m, "v", "s", &text);

        if (r >= 0)
                *ret = text_value(text);
        return r;
}

static int read_detail(sd_bus_message *m, Value values[static N_COLUMNS]) {
        const char *key;
        int r = sd_bus_message_read(m, "s", &key);

        if (r < 0)
                return r;
        if (g_str_equal(key, "description"))
                return read_text(m, &values[COLUMN_DESCRIPTION]);
        if (g_str_equal(key, "mode"))
                return read_text(m, &values[COLUMN_MODE]);
        return sd_bus_message_skip(m, "v");
}

/* Reads the a{sv} of a database. */
static int read_details(sd_bus_message *m, Value values[static N_COLUMNS]) {
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_detail(m, values);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* The databases of one bus. */
typedef struct Listing {
        const char *bus; /* NULL: the only one */
        sqlipc_connection *connection; /* owned; NULL: the shell's */
        sd_bus_message *reply;         /* owned; NULL: none came */
} Listing;

static void listing_done(Listing *listing) {
        (void) sd_bus_message_unref(listing->reply);
        (void) sqlipc_close(listing->connection);
}

/* Returns 1: a row; 0: the end. */
static int read_database(const Shell *shell, const Listing *listing, GHashTable *names, Value values[static N_COLUMNS]) {
        sd_bus_message *m = listing->reply;
        const char *session_bus = sqlipc_get_bus_name(shell->session.connection);
        bool is_session = !listing->bus || g_strcmp0(listing->bus, session_bus) == 0;
        const char *name, *object;
        int r = sd_bus_message_enter_container(m, 'r', "soa{sv}");

        if (r <= 0)
                return r;
        r = sd_bus_message_read(m, "so", &name, &object);
        if (r < 0)
                return r;
        values[COLUMN_OPEN] = text_value(is_session && g_strcmp0(name, shell->session.database) == 0 ? "*" : "");
        values[COLUMN_BUS] = text_value(listing->bus ?: "");
        if (!g_hash_table_add(names, (char *) name))
                shell_complain(shell, "%s is on both buses: without --system the user's is taken", name);
        values[COLUMN_NAME] = text_value(name);
        values[COLUMN_DESCRIPTION] = values[COLUMN_MODE] = text_value("");
        r = read_details(m, values);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}

static int write_databases(Shell *shell, const Listing *listings, size_t n, FILE *file) {
        const RenderOptions options = query_render_options(shell, file);
        g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal); /* the replies have the strings */
        Renderer *renderer = NULL;
        Value values[N_COLUMNS];
        int r = renderer_new(shell->settings.mode, &options, database_columns, N_COLUMNS - (n == 1), &renderer);

        for (size_t i = 0; i < n; i++)
                while (r >= 0 && listings[i].reply && (r = read_database(shell, &listings[i], names, values)) > 0)
                        r = renderer_row(renderer, values);
        if (renderer)
                r = r < 0 ? r : renderer_finish(renderer, true);
        renderer_free(renderer);
        return r;
}

/* Asks the bus that the connection is not on. A bus without the service adds nothing. Returns if there is an answer. */
static bool ask_other_bus(const Shell *shell, const char *asked, Listing *ret) {
        const char *bus = g_str_equal(asked, "user") ? "system" : "user";
        sqlipc_connection *connection = NULL;
        sd_bus_message *reply = NULL;
        int r = sqlipc_open(NULL, bus, &connection);

        if (r >= 0)
                r = sd_bus_call_method(sqlipc_get_bus(connection), "org.sqlipc1", "/org/sqlipc1", "org.sqlipc1.Manager",
                                       "ListDatabases", NULL, &reply, "a{sv}", 0);
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "(soa{sv})");
        if (r < 0 && r != -EHOSTDOWN && connection)
                shell_complain(shell, "the service on the %s bus does not tell its databases: %s", bus, g_strerror(-r));
        if (r < 0) {
                (void) sd_bus_message_unref(reply);
                (void) sqlipc_close(connection);
                return false;
        }
        *ret = (Listing) { .bus = bus, .connection = connection, .reply = reply };
        return true;
}

/* Without a choice of the user, the list is that of both buses. */
static size_t ask_both(const Shell *shell, Listing listings[static 2]) {
        const char *asked = sqlipc_get_bus_name(shell->session.connection), *variable = g_getenv("SQLIPC_BUS");
        Listing first;

        if (shell->session.bus.kind != BUS_FOUND || !asked || (variable && *variable) ||
            !ask_other_bus(shell, asked, &listings[1]))
                return 1;
        listings[0].bus = asked;
        first = listings[0];
        if (g_str_equal(asked, "system")) { /* the user's comes first */
                listings[0] = listings[1];
                listings[1] = first;
        }
        return 2;
}

static int run_databases(Shell *shell, const Command *command, char **arguments) {
        _cleanup_(listing_done) Listing one = {}, two = {};
        Listing listings[2] = {};
        bool is_empty;
        size_t n = 1;
        FILE *file;
        int r = service_call(shell, "ListDatabases", &listings[0].reply);

        (void) command, (void) arguments;
        if (r >= 0)
                r = sd_bus_message_enter_container(listings[0].reply, 'a', "(soa{sv})");
        if (r >= 0)
                n = ask_both(shell, listings);
        one = listings[0];
        two = listings[1];
        if (r < 0) {
                service_complain(shell, r);
                return r;
        }
        is_empty = sd_bus_message_at_end(one.reply, false) > 0 && (n == 1 || sd_bus_message_at_end(two.reply, false) > 0);
        r = answer_begin(shell, &file);
        if (r >= 0)
                r = answer_end(shell, write_databases(shell, listings, n, file));
        if (r >= 0 && is_empty)
                query_suggest_database(shell);
        return r;
}

/* ---- .open -------------------------------------------------------------------------------------------------------- */

static int run_open(Shell *shell, const Command *command, char **arguments) {
        int r = transaction_check_none(shell);

        (void) command;
        if (r >= 0)
                r = query_open_database(shell, arguments[1]);
        if (r >= 0)
                shell_say(shell, "%s is open.", shell->session.database);
        return r;
}

/* ---- .connect ----------------------------------------------------------------------------------------------------- */

static BusChoice copy_choice(const BusChoice *choice) {
        BusChoice copy = *choice;

        copy.address = g_strdup(choice->address);
        copy.host = g_strdup(choice->host);
        return copy;
}

static void choice_done(BusChoice *choice) {
        g_clear_pointer(&choice->address, g_free);
        g_clear_pointer(&choice->host, g_free);
}

static bool take_value(const char *argument, const char *name, char **ret) {
        if (!g_str_has_prefix(argument, name) || !argument[strlen(name)] || *ret)
                return false;
        *ret = g_strdup(argument + strlen(name));
        return true;
}

/* Parses the same options as the command line. */
static int read_choice(char **arguments, BusChoice *ret) {
        bool system = false, user = false;

        for (char **argument = arguments; *argument; argument++)
                if (g_str_equal(*argument, "--system"))
                        system = true;
                else if (g_str_equal(*argument, "--user"))
                        user = true;
                else if (!take_value(*argument, "--address=", &ret->address) &&
                         !take_value(*argument, "--host=", &ret->host))
                        return -EINVAL;
        if (system + user + (ret->address != NULL) > 1 || (ret->host && ret->address))
                return -EINVAL;
        ret->kind = ret->address ? BUS_ADDRESS : user ? BUS_USER : BUS_SYSTEM;
        return 0;
}

static int ignore_database(const sqlipc_database *database, void *userdata) {
        (void) database, (void) userdata;
        return 1;
}

/* Checks that the service answers on the bus. */
static int try_bus(Shell *shell) {
        sqlipc_connection *connection;
        int r = session_connect(&shell->session, &connection);

        return r < 0 ? r : sqlipc_list_databases(connection, ignore_database, NULL);
}

/* Opens the same database on the new bus, if that has it. */
static void reopen(Shell *shell) {
        g_autofree char *name = g_strdup(shell->session.database), *bus = session_describe_bus(&shell->session);

        if (name && session_open(&shell->session, name) < 0) {
                g_clear_pointer(&shell->session.database, g_free);
                shell_say(shell, "Connected to %s, which has no %s.", bus, name);
        } else
                shell_say(shell, "Connected to %s.", bus);
}

static int run_connect(Shell *shell, const Command *command, char **arguments) {
        _cleanup_(choice_done) BusChoice before = copy_choice(&shell->session.bus), choice = {};
        int r = transaction_check_none(shell);

        if (r < 0)
                return r;
        if (!arguments[1])
                choice = copy_choice(&before);
        else if (read_choice(arguments + 1, &choice) < 0)
                return command_misuse(shell, command);
        session_change_bus(&shell->session, &choice);
        r = try_bus(shell);
        if (r < 0) {
                query_complain(shell, r, NULL);
                session_change_bus(&shell->session, &before);
                return r;
        }
        reopen(shell);
        return 0;
}

/* ---- Other commands ----------------------------------------------------------------------------------------------- */

static int run_status(Shell *shell, const Command *command, char **arguments) {
        (void) command, (void) arguments;
        return status_print(shell);
}

static int run_limit(Shell *shell, const Command *command, char **arguments) {
        if (!arguments[1])
                return status_print_limits(shell);
        if (!g_str_equal(arguments[1], "rows") || !arguments[2])
                return command_misuse(shell, command);
        return command_set(shell, "rows", arguments[2]);
}

static const char *const buses[] = { "--address=", "--host=", "--system", "--user", NULL };
static const char *const limits[] = { "rows", NULL };

const Command commands_session[] = {
        { .name = "connect", .arguments = "[--system|--user|--address=ADDRESS] [--host=USER@HOST]",
          .summary = "Go to another bus; without any, connect again",
          .details = "As the options of the command line. If no service answers on the other bus, the shell stays where it "
                     "is. The database stays open if there is one of its name.",
          .n_max = 2, .kinds = { ARGUMENT_WORDS, ARGUMENT_WORDS }, .words = buses, .run = run_connect },
        { .name = "databases", .aliases = "l",
          .summary = "List the databases that are for you", .run = run_databases },
        { .name = "limit", .arguments = "[rows N|off]",
          .summary = "Show the service's limits, or end results after N rows",
          .details = "Shows the service's limits that hold for you on the open database. rows N is the shell's own: it "
                     "ends each query after N rows, and says so.",
          .n_max = 2, .kinds = { ARGUMENT_WORDS, ARGUMENT_NONE }, .words = limits, .run = run_limit },
        { .name = "open", .aliases = "c connect", .arguments = "NAME", .summary = "Open another database of this bus",
          .n_min = 1, .n_max = 1, .kinds = { ARGUMENT_DATABASE }, .run = run_open },
        { .name = "status", .aliases = "conninfo",
          .summary = "Show who I am, what I may read, and what I have under way", .run = run_status },
        {},
};
