/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shows the state of the service and our part of it, see status.h. */
#include "tools/cli/commands/status.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "config.h"
#include "tools/cli/dump/schema.h"
#include "tools/cli/render/human.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-run.h"
#include "tools/cli/shell/service.h"
#include "tools/terminal/format.h"

#define _cleanup_(function) __attribute__((cleanup(function)))

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

static void append_shown(GString *text, const char *value) {
        format_shown_text(text, value, strlen(value), SIZE_MAX);
}

/* Appends a line; `value` NULL or empty: none. */
static void append_line(GString *text, const char *name, const char *value) {
        if (!value || !*value)
                return;
        g_string_append_printf(text, "%-12s ", name);
        append_shown(text, value);
        g_string_append_c(text, '\n');
}

/* Reads a string property; "" if the service does not report it. */
static char *get_property(Shell *shell, bool of_database, const char *name) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *value = "";

        if (service_property(shell, of_database, name, "s", &reply) >= 0)
                (void) sd_bus_message_read(reply, "s", &value);
        return g_strdup(value);
}

/* ---- Client and service ------------------------------------------------------------------------------------------- */

/* Asks the bus for our uid as the service sees it: over ssh it differs from the local one. */
static int get_uid(sd_bus *bus, uint32_t *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name;
        int r = sd_bus_get_unique_name(bus, &name);

        if (r >= 0)
                r = sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                       "GetConnectionUnixUser", NULL, &reply, "s", name);
        return r < 0 ? r : sd_bus_message_read(reply, "u", ret);
}

/* Describes a user; over ssh without a name, because names are those of this machine. */
static char *describe_user(const Shell *shell, uint32_t uid) {
        const struct passwd *user = shell->session.bus.host ? NULL : getpwuid(uid);

        return user ? g_strdup_printf("%" PRIu32 " (%s)", uid, user->pw_name) : g_strdup_printf("%" PRIu32, uid);
}

static void append_us(Shell *shell, GString *text, sd_bus *bus, uint32_t uid) {
        g_autofree char *bus_name = session_describe_bus(&shell->session), *user = describe_user(shell, uid), *where = NULL;
        g_autofree char *library = g_strdup_printf("libsqlipc %s", sqlipc_version());
        const char *unique = "";

        (void) sd_bus_get_unique_name(bus, &unique);
        where = g_strdup_printf("%s, as %s", bus_name, unique);
        append_line(text, "Client", "ipcq-cli " SQLIPC_VERSION);
        append_line(text, "Library", library);
        append_line(text, "Bus", where);
        append_line(text, "User", user);
}

static void append_service(Shell *shell, GString *text) {
        g_autofree char *version = get_property(shell, false, "DaemonVersion");
        g_autofree char *line = g_strdup_printf("sqlipcd %s", version);

        append_line(text, "Service", *version ? line : NULL);
}

/* ---- Rights ------------------------------------------------------------------------------------------------------- */

static void add_name(GString *names, const char *name) {
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", name);
}

static int add_database(const sqlipc_database *database, void *userdata) {
        add_name(userdata, sqlipc_database_name(database));
        return 0;
}

static int add_table(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                add_name(userdata, sqlipc_column_text(cursor, 0, NULL) ?: "");
        return 0;
}

static int append_rights(Shell *shell, GString *text) {
        g_autofree char *mode = get_property(shell, true, "Mode"), *description = get_property(shell, true, "Description");
        g_autofree char *transport = settings_get(&shell->settings, "transport");
        g_autoptr(GString) tables = g_string_new(NULL);
        int r = schema_is_exposed(shell);

        if (r > 0)
                r = query_run(shell, "SELECT name FROM sqlite_schema ORDER BY name", NULL, 0, add_table, tables, NULL);
        if (r < 0)
                return r;
        append_line(text, "Database", shell->session.database);
        append_line(text, "Description", description);
        append_line(text, "Mode", mode);
        append_line(text, "May read", tables->len > 0 ? tables->str : "all of it");
        append_line(text, "Transport", transport);
        return 0;
}

static void append_databases(GString *text, sqlipc_connection *connection) {
        g_autoptr(GString) names = g_string_new(NULL);

        if (sqlipc_list_databases(connection, add_database, names) >= 0)
                append_line(text, "Databases", names->len > 0 ? names->str : "none");
}

/* ---- Statements, runs, channels ----------------------------------------------------------------------------------- */

typedef struct Work {
        uint64_t number;
        const char *object, *owner, *state, *sql; /* borrowed from the reply */
        uint64_t usec, rows;
        uint32_t uid;
} Work;

static int read_detail(sd_bus_message *m, Work *work) {
        const char *key;
        int r = sd_bus_message_read(m, "s", &key);

        if (r < 0)
                return r;
        if (g_str_equal(key, "uid"))
                return sd_bus_message_read(m, "v", "u", &work->uid);
        if (g_str_equal(key, "state"))
                return sd_bus_message_read(m, "v", "s", &work->state);
        if (g_str_equal(key, "sql"))
                return sd_bus_message_read(m, "v", "s", &work->sql);
        if (g_str_equal(key, "usec"))
                return sd_bus_message_read(m, "v", "t", &work->usec);
        if (g_str_equal(key, "rows"))
                return sd_bus_message_read(m, "v", "t", &work->rows);
        return sd_bus_message_skip(m, "v");
}

/* Returns 1: an entry was read; 0: the end. */
static int read_work(sd_bus_message *m, Work *ret) {
        int r = sd_bus_message_enter_container(m, 'r', "tosa{sv}");

        *ret = (Work) {};
        if (r <= 0)
                return r;
        r = sd_bus_message_read(m, "tos", &ret->number, &ret->object, &ret->owner);
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_detail(m, ret);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}

static void append_work(GString *text, const Work *work, const char *own_name) {
        g_autofree char *database = NULL, *age = work->usec > 0 ? human_time(work->usec) : NULL;
        g_autofree char *rows = human_rows(work->rows);

        (void) sd_bus_path_decode(work->object, "/org/sqlipc1/database", &database);
        g_string_append_printf(text, "  %" PRIu64 " on ", work->number);
        append_shown(text, database ?: work->object);
        g_string_append(text, g_str_equal(work->owner, own_name) ? ", this shell" : *work->owner ? ", of " : "");
        append_shown(text, g_str_equal(work->owner, own_name) ? "" : work->owner);
        g_string_append(text, work->state ? ", " : "");
        append_shown(text, work->state ?: "");
        if (age)
                g_string_append_printf(text, " for %s, %s", age, rows);
        g_string_append(text, work->sql && *work->sql ? ": " : "");
        append_shown(text, work->sql ?: "");
        g_string_append_c(text, '\n');
}

/* Appends our own entries of a list. To root the service lists those of all users. */
static void append_list(Shell *shell, GString *text, const char *name, const char *method, uint32_t uid,
                        const char *own_name) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        g_autoptr(GString) lines = g_string_new(NULL);
        unsigned n = 0;
        Work work;

        if (service_call(shell, method, &reply) < 0 || sd_bus_message_enter_container(reply, 'a', "(tosa{sv})") < 0)
                return;
        while (read_work(reply, &work) > 0)
                if (work.uid == uid) {
                        append_work(lines, &work, own_name);
                        n++;
                }
        g_string_append_printf(text, "%-12s %u\n%s", name, n, lines->str);
}

static void append_lists(Shell *shell, GString *text, sd_bus *bus, uint32_t uid) {
        g_autofree char *own = NULL;
        const char *name = "";

        (void) sd_bus_get_unique_name(bus, &name);
        own = g_strdup(name);
        append_list(shell, text, "Statements", "ListStatements", uid, own);
        append_list(shell, text, "Runs", "ListRuns", uid, own);
        append_list(shell, text, "Channels", "ListChannels", uid, own);
}

int status_print(Shell *shell) {
        g_autoptr(GString) text = g_string_new(NULL), rights = g_string_new(NULL);
        sqlipc_connection *connection;
        uint32_t uid;
        sd_bus *bus;
        int r = 0;

        if (shell->session.database) /* first, because a query reopens a lost connection */
                r = append_rights(shell, rights);
        if (r < 0)
                return r;
        r = session_connect(&shell->session, &connection);
        if (r >= 0)
                r = service_bus(shell, &bus);
        if (r >= 0)
                r = get_uid(bus, &uid);
        if (r < 0) {
                query_complain(shell, r, NULL);
                return r;
        }
        append_us(shell, text, bus, uid);
        append_service(shell, text);
        append_databases(text, connection);
        g_string_append(text, rights->str);
        append_lists(shell, text, bus, uid);
        return answer_text(shell, text->str);
}

/* ---- Limits ------------------------------------------------------------------------------------------------------- */

static void append_limit(GString *text, const char *key, uint64_t value) {
        bool is_time = g_str_has_suffix(key, "-usec");
        g_autoptr(GString) name = g_string_new(NULL);
        g_autofree char *human = NULL;

        if (value == UINT64_MAX)
                human = g_strdup("no limit");
        else if (is_time)
                human = human_time(value);
        else if (g_str_has_suffix(key, "-size-max") || g_str_equal(key, "heap-max"))
                human = human_configured_size(value);
        else
                human = g_strdup_printf("%" PRIu64, value);
        format_shown_text(name, key, strlen(key) - (is_time ? strlen("-usec") : 0), SIZE_MAX);
        g_string_append_printf(text, "%-28s %s\n", name->str, human);
}

int status_print_limits(Shell *shell) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        const char *key;
        uint64_t value;
        int r = service_property(shell, true, "Limits", "a{st}", &reply);

        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "{st}");
        while (r >= 0 && (r = sd_bus_message_read(reply, "{st}", &key, &value)) > 0)
                append_limit(text, key, value);
        if (r == -ENODATA)
                shell_complain(shell, "no database is open; .open NAME opens one, .databases lists them");
        else if (r < 0)
                service_complain(shell, r);
        if (r < 0)
                return r;
        g_string_append_printf(text, "%-28s ", "rows of a result here");
        if (shell->settings.rows_max > 0)
                g_string_append_printf(text, "%" PRIu64 "\n", shell->settings.rows_max);
        else
                g_string_append(text, "no limit\n");
        return answer_text(shell, text->str);
}
