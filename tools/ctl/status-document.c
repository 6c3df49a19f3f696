/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The data of `sqlipcctl status`, see status-document.h. */
#include "tools/ctl/status-document.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/configuration/configuration-files.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tools/ctl/work.h"

/* ---- The service -------------------------------------------------------------------------------------------------- */

/* The field "starttime" of /proc/PID/stat, counted in words after the name; in proc(5) it is 22, and the first word after
 * the name is 3. */
enum { STAT_START = 22 - 2 };

/* The start time of a process, in seconds since 1970; 0: unknown. */
static guint64 start_of(pid_t pid) {
        g_autofree char *file = g_strdup_printf("/proc/%d/stat", (int) pid), *text = NULL;
        g_auto(GStrv) words = NULL;
        struct timespec boot, now;
        const char *behind_name;
        long tick = sysconf(_SC_CLK_TCK);

        if (!g_file_get_contents(file, &text, NULL, NULL) || !(behind_name = strrchr(text, ')')))
                return 0;
        words = g_strsplit(behind_name + 1, " ", -1);
        if (g_strv_length(words) <= STAT_START)
                return 0;
        if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
                return 0;
        return (guint64) (now.tv_sec - boot.tv_sec) + g_ascii_strtoull(words[STAT_START], NULL, 10) / (guint64) tick;
}

static void add_process(Context *c, GVariantBuilder *document) {
        uid_t uid;
        pid_t pid;

        if (bus_get_service(c, &uid, &pid) < 0)
                return;
        entry(document, "pid", g_variant_new_uint32((guint32) pid));
        entry(document, "uid", g_variant_new_uint32(uid));
        entry(document, "since", g_variant_new_uint64(context_is_remote(c) ? 0 : start_of(pid)));
}

/* Calls a method of the service, which is known to run. */
static int call(Context *c, const char *method, const char *reply_type, GVariant **ret) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        int r = bus_call(c, START_NOTHING, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, method, reply_type, &error,
                         ret, "a{sv}", 0);

        return r < 0 ? bus_failed(c, &error, r) : CTL_OK;
}

static int add_counts(Context *c, GVariantBuilder *document) {
        g_autoptr(GVariant) listed = NULL, databases = NULL, info = NULL, asked = NULL, clients = NULL, broken = NULL;

        if (call(c, "ListDatabases", REPLY_DATABASES, &listed) != CTL_OK ||
            call(c, "ListClients", REPLY_CLIENTS, &asked) != CTL_OK)
                return CTL_FAILED;
        g_variant_get(listed, "(@a(soa{sv})@a{sv})", &databases, &info);
        g_variant_get(asked, "(@a(sa{sv})@a{sv})", &clients, NULL);
        entry(document, "databases", g_variant_new_uint32((guint32) g_variant_n_children(databases)));
        entry(document, "clients", g_variant_new_uint32((guint32) g_variant_n_children(clients)));
        broken = g_variant_lookup_value(info, "broken", G_VARIANT_TYPE("a{ss}"));
        if (broken)
                entry(document, "broken", broken);
        return CTL_OK;
}

int status_of_service(Context *c, GVariant **ret) {
        const char *bus = c->address ?: c->host ?: c->machine ?: context_is_system(c) ? "system" : "user";
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        g_auto(GVariantBuilder) document = {};
        g_autoptr(GVariant) reply = NULL, properties = NULL;
        int r = bus_open(c);

        if (r < 0)
                return CTL_FAILED;
        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        r = bus_call(c, START_NOTHING, SQLIPC_MANAGER_PATH, "org.freedesktop.DBus.Properties", "GetAll", REPLY_DICTIONARY,
                     &error, &reply, "s", SQLIPC_MANAGER_INTERFACE);
        if (r < 0 && !(bus_is_absent(&error) && bus_can_start(c)))
                return bus_failed(c, &error, r);
        entry(&document, "running", g_variant_new_boolean(r >= 0));
        entry(&document, "bus", g_variant_new_string(bus));
        if (r >= 0) {
                g_variant_get(reply, "(@a{sv})", &properties);
                add_process(c, &document);
                properties_of(&document, properties);
                if (add_counts(c, &document) != CTL_OK)
                        return CTL_FAILED;
        }
        *ret = g_variant_ref_sink(g_variant_builder_end(&document));
        return CTL_OK;
}

/* ---- One database ------------------------------------------------------------------------------------------------- */

static GVariant *strings(char **words) {
        return g_variant_new_strv((const char *const *) words, -1);
}

static void add_writing(const DatabaseConfig *d, GVariantBuilder *document) {
        if (!database_config_is_writable(d))
                return;
        entry(document, "write-users", strings(d->write_users));
        entry(document, "write-groups", strings(d->write_groups));
        entry(document, "write-tables", strings(d->write_tables));
        entry(document, "write-schema", g_variant_new_boolean(d->write_schema));
        if (database_config_is_server(d))
                return;
        entry(document, "synchronous", g_variant_new_string(d->sync_full ? "full" : "normal"));
        entry(document, "foreign-keys", g_variant_new_boolean(d->foreign_keys));
        if (d->database_size_max != UINT64_MAX)
                entry(document, "database-size-max", g_variant_new_uint64(d->database_size_max));
        entry(document, "wal-size-max", g_variant_new_uint64(d->wal_size_max));
}

/* The configuration refuses a connection with a password in it. */
static void add_server(const DatabaseConfig *d, GVariantBuilder *document) {
        entry(document, "connection", g_variant_new_string(d->connection));
        if (d->replica_connection)
                entry(document, "replica-connection", g_variant_new_string(d->replica_connection));
        if (d->password_file)
                entry(document, "password-file", g_variant_new_string(d->password_file));
        entry(document, "connections-max", g_variant_new_uint64(d->connections_max));
        if (d->engine == ENGINE_KIND_RQLITE)
                entry(document, "consistency", g_variant_new_string(consistency_name(d->consistency)));
}

static void add_configuration(Context *c, const char *name, GVariantBuilder *document) {
        g_auto(GStrv) directories = context_directories(c);
        g_autoptr(Config) config = config_load((const char *const *) directories);
        const DatabaseConfig *d = context_is_remote(c) ? NULL : g_hash_table_lookup(config->databases, name);

        if (!d)
                return;
        if (database_config_is_server(d))
                add_server(d, document);
        else {
                entry(document, "path", g_variant_new_string(d->path));
                entry(document, "immutable", g_variant_new_boolean(d->immutable));
        }
        entry(document, "allow-users", strings(d->allow_users));
        entry(document, "allow-groups", strings(d->allow_groups));
        entry(document, "polkit", g_variant_new_boolean(d->polkit));
        entry(document, "expose", strings(d->expose));
        entry(document, "security-barrier", g_variant_new_boolean(d->security_barrier));
        add_writing(d, document);
}

static int add_work(Context *c, Work work, const char *key, const char *name, GVariantBuilder *document) {
        g_autoptr(GVariant) all = NULL, here = NULL;

        if (work_list(c, work, &all) != CTL_OK)
                return CTL_FAILED;
        here = work_on_database(all, name);
        entry(document, key, here);
        return CTL_OK;
}

/* Finds the database `name` in the list; the caller frees both results. */
static bool find(GVariant *databases, const char *name, char **ret_object, GVariant **ret_more) {
        GVariantIter i;
        const char *here;

        g_variant_iter_init(&i, databases);
        while (g_variant_iter_next(&i, "(&so@a{sv})", &here, ret_object, ret_more)) {
                if (g_str_equal(here, name))
                        return true;
                g_clear_pointer(ret_object, g_free);
                g_clear_pointer(ret_more, g_variant_unref);
        }
        return false;
}

/* Prints why the list has no database of this name, as far as the list's `info` and the files tell. */
static void complain_of_absence(const Context *c, const char *name, GVariant *info) {
        g_autoptr(GVariant) broken = g_variant_lookup_value(info, "broken", G_VARIANT_TYPE("a{ss}"));
        g_auto(GStrv) directories = context_directories(c);
        g_autoptr(Config) config = config_load((const char *const *) directories);
        const char *problem;

        if (broken && g_variant_lookup(broken, name, "&s", &problem))
                complain("The database \"%s\" is not published, since its configuration is broken: %s", name, problem);
        else if (broken && /* so the caller would see the database */
                 !context_is_remote(c) && g_hash_table_contains(config->databases, name))
                complain("The service has not read the file of \"%s\" yet: 'sqlipcctl reload' has it do so.", name);
        else
                complain("There is no database \"%s\" for you: 'sqlipcctl list' shows which there are.", name);
}

int status_of_database(Context *c, const char *name, GVariant **ret) {
        g_autoptr(GVariant) reply = NULL, databases = NULL, info = NULL, more = NULL;
        g_auto(GVariantBuilder) document = {};
        g_autofree char *object = NULL;

        if (bus_call_manager(c, "ListDatabases", REPLY_DATABASES, &reply) < 0)
                return CTL_FAILED;
        g_variant_get(reply, "(@a(soa{sv})@a{sv})", &databases, &info);
        if (!find(databases, name, &object, &more)) {
                complain_of_absence(c, name, info);
                return CTL_FAILED;
        }
        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "name", g_variant_new_string(name));
        entry(&document, "object", g_variant_new_object_path(object));
        entries_of(&document, more);
        add_configuration(c, name, &document);
        if (add_work(c, WORK_STATEMENTS, "statements", name, &document) != CTL_OK ||
            add_work(c, WORK_RUNS, "runs", name, &document) != CTL_OK ||
            add_work(c, WORK_CHANNELS, "channels", name, &document) != CTL_OK)
                return CTL_FAILED;
        *ret = g_variant_ref_sink(g_variant_builder_end(&document));
        return CTL_OK;
}
