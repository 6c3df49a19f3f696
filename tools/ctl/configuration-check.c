/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors and warnings of a configuration, see configuration-check.h. */
#include "tools/ctl/configuration-check.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/configuration-names.h"
#include "tools/ctl/file-check.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/schema-check.h"
#include "tools/ctl/server-check.h"

#define POLKIT_SERVICE "/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service"

void configuration_resolve(Config *config) {
        g_autofree char *question = names_question(config), *answer = names_resolve(question);

        names_apply(config, answer);
}

static int compare(const void *a, const void *b) {
        return strcmp(a, b);
}

GList *configuration_names(const Config *config) {
        return g_list_sort(g_hash_table_get_keys(config->databases), compare);
}

/* The system's service runs in a sandbox, in which folders may differ from those that this program sees. */
static void check_sandbox(const DatabaseConfig *d, const ServiceUnit *unit, GPtrArray *findings) {
        const char *setting = service_unit_hides(unit, d->path);
        const char *protects = setting || !database_config_is_writable(d) ? NULL : service_unit_protects(unit, d->path);

        if (protects)
                findings_add(findings, FINDING_WARNING, d->name,
                             "Mode=read-write, but the service cannot write to %s because of %s of its unit; a drop-in with "
                             "ReadWritePaths= and the folder lets it", d->path, protects);
        if (setting)
                findings_add(findings, FINDING_WARNING, d->name,
                             "%s is hidden from the service by %s of its unit; a drop-in can show it: see sqlipcd(8)",
                             d->path, setting);
}

static void check_polkit(const Context *c, const DatabaseConfig *d, bool is_asked, const char *consequence,
                         GPtrArray *findings) {
        if (is_asked && !context_is_system(c))
                findings_add(findings, FINDING_WARNING, d->name, "%s here: polkit is on the system bus, not on a user's",
                             consequence);
        else if (is_asked && !g_file_test(POLKIT_SERVICE, G_FILE_TEST_EXISTS))
                findings_add(findings, FINDING_WARNING, d->name, "%s: polkit is not installed on this machine", consequence);
}

static void check_access(const Context *c, const DatabaseConfig *d, GPtrArray *findings) {
        if (context_is_system(c) && !d->polkit && !*d->allow_users && !*d->allow_groups)
                findings_add(findings, FINDING_WARNING, d->name,
                             "only root and the service's own user may use it: give AllowUsers=, AllowGroups= or "
                             "Polkit=yes");
        check_polkit(c, d, d->polkit, "Polkit=yes gives no other user access", findings);
        check_polkit(c, d, d->write_polkit && database_config_is_writable(d),
                     "WritePolkit=yes lets no other user write", findings);
}

static bool has_id(const uint32_t *ids, size_t n, uint32_t id) {
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

/* Writing needs reading. Groups and polkit may allow a user to read, so only the lists of users are compared, and only if
 * there is nothing else. */
static void check_writers(const DatabaseConfig *d, const ServiceUser *user, GPtrArray *findings) {
        if (!database_config_is_writable(d) || d->allow_everybody || d->polkit || d->n_gids > 0)
                return;
        for (size_t i = 0; i < d->n_write_uids; i++) {
                uid_t uid = d->write_uids[i];
                g_autofree char *name = user_name(uid);

                if (uid != 0 && uid != user->uid && !has_id(d->uids, d->n_uids, uid))
                        findings_add(findings, FINDING_WARNING, d->name,
                                     "WriteUsers=%s, but that user may not read the database, and so may not write to it: "
                                     "add the user to AllowUsers=", name);
        }
        if (d->n_uids == 0 && (d->write_everybody || d->n_write_gids > 0 || d->write_polkit))
                findings_add(findings, FINDING_WARNING, d->name,
                             "the users of %s may not read the database, and so may not write to it: give AllowUsers= or "
                             "AllowGroups=",
                             d->write_everybody    ? "WriteUsers=*"
                             : d->n_write_gids > 0 ? "WriteGroups="
                                                   : "WritePolkit=");
}

static void check_write_tables(const DatabaseConfig *d, GPtrArray *findings) {
        if (database_config_is_writable(d) && *d->write_tables && d->write_schema)
                findings_add(findings, FINDING_WARNING, d->name,
                             "WriteTables= protects nothing: with WriteSchema=yes, a client that writes can also drop any "
                             "table, or make a trigger that changes it");
}

static FileUse use_of(const DatabaseConfig *d) {
        return database_config_is_writable(d) ? FILE_WRITE : d->immutable ? FILE_READ_IMMUTABLE : FILE_READ;
}

/* Only root can have another user's rights. */
static void check_schema(const Config *config, const DatabaseConfig *d, bool at_rest, const ServiceUser *user,
                         GPtrArray *findings) {
        const ServiceUser own = { .uid = geteuid() };
        const Limits limits = config_limits(config, d);

        schema_check(d, &limits, at_rest, geteuid() == 0 ? user : &own, findings);
}

static void check_database(const Context *c, const Config *config, const DatabaseConfig *d, const ServiceUser *user,
                           const ServiceUnit *unit, GPtrArray *findings) {
        guint before = findings->len;

        if (database_config_is_server(d))
                server_check_access(d, context_is_system(c), user, findings);
        else {
                FileContents contents = file_check(d->path, use_of(d), user, findings, d->name);

                if (contents != FILE_NO_DATABASE)
                        check_schema(config, d, contents == FILE_DATABASE_AT_REST, user, findings);
                if (unit)
                        check_sandbox(d, unit, findings);
        }
        check_access(c, d, findings);
        check_writers(d, user, findings);
        check_write_tables(d, findings);
        if (findings->len == before && database_config_is_server(d))
                findings_add(findings, FINDING_OK, d->name, "the service %s it by Engine=%s, which was not asked",
                             database_config_is_writable(d) ? "reads and writes" : "reads", engine_kind_name(d->engine));
        else if (findings->len == before)
                findings_add(findings, FINDING_OK, d->name, "%s, as the user %s %s it", d->path, user->name,
                             database_config_is_writable(d) ? "reads and writes" : "reads");
}

/* The names of files are names of databases. The folder of the package has none of the administrator's. */
static void check_folders(const Context *c, const ServiceUser *user, GPtrArray *findings) {
        g_auto(GStrv) directories = context_directories(c);

        for (char **i = directories; *i; i++) {
                g_autofree char *folder = g_build_filename(*i, "databases.d", NULL);
                struct stat st;

                if (strcmp(*i, SQLIPC_VENDOR_DIR) == 0 || lstat(folder, &st) < 0)
                        continue;
                if (!service_user_may(user, &st, R_OK) || !service_user_may(user, &st, X_OK))
                        findings_add(findings, FINDING_ERROR, "configuration", "the user %s may not read %s", user->name,
                                     folder);
                else if (st.st_mode & (S_IROTH | S_IXOTH))
                        findings_add(findings, FINDING_WARNING, "configuration",
                                     "all users of the machine may read %s, and so learn which databases and users there "
                                     "are: give it the group of the service, and the mode 0750", folder);
        }
}

void configuration_check(const Context *c, const Config *config, const ServiceUser *user, const ServiceUnit *unit,
                         GPtrArray *findings) {
        g_autoptr(GList) broken = g_list_sort(g_hash_table_get_keys(config->broken), compare);
        g_autoptr(GList) names = configuration_names(config);

        if (unit)
                check_folders(c, user, findings);
        for (GList *i = broken; i; i = i->next)
                findings_add(findings, FINDING_ERROR, i->data, "%s",
                             (const char *) g_hash_table_lookup(config->broken, i->data));
        for (guint i = 0; i < config->warnings->len; i++)
                findings_add(findings, FINDING_WARNING, "configuration", "%s", (const char *) config->warnings->pdata[i]);
        if (unit && unit->is_outdated)
                findings_add(findings, FINDING_WARNING, "unit",
                             "the service runs since before its unit was changed: 'systemctl restart sqlipcd' has it run by "
                             "the new settings");
        for (GList *i = names; i; i = i->next)
                check_database(c, config, g_hash_table_lookup(config->databases, i->data), user, unit, findings);
}
