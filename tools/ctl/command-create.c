/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl create: makes a database that clients can write to, and publishes it. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/configuration/configuration-database.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/create-file.h"
#include "tools/ctl/database-file.h"
#include "tools/ctl/finding.h"
#include "tools/ctl/publish.h"

static char *arg_schema;

static const GOptionEntry options[] = {
        PUBLISH_OPTIONS,
        { "schema", 0, 0, G_OPTION_ARG_FILENAME, &arg_schema, "Run the SQL in FILE in it, for example to make tables",
          "FILE" },
        {},
};

static char *make_text(const char *path) {
        const DatabaseFile file = {
                .path = path,
                .description = publish_options.description,
                .mode = "read-write",
                .allow_users = publish_options.allow_users,
                .allow_groups = publish_options.allow_groups,
                .write_users = publish_options.write_users,
                .write_groups = publish_options.write_groups,
                .polkit = publish_options.polkit,
                .write_polkit = publish_options.write_polkit,
                .foreign_keys = publish_options.foreign_keys ? "yes" : "no",
        };

        return database_file_text(&file);
}

/* The state folder of the system's service is made by systemd at its first start, perhaps later than this. */
static int prepare_state(const ServiceUser *user) {
        if (mkdir(SERVICE_STATE, 0750) == 0) {
                if (chown(SERVICE_STATE, user->uid, user->gid) == 0)
                        return 0;
        } else if (errno == EEXIST)
                return 0;
        complain(SERVICE_STATE " cannot be made: %s", g_strerror(errno));
        return -1;
}

/* The default path; the caller frees it. */
static char *path_of(const Context *c, const char *name) {
        g_autofree char *file = g_strconcat(name, ".sqlite", NULL);

        return context_is_system(c) ? g_build_filename(SERVICE_STATE, "databases", file, NULL)
                                    : g_build_filename(g_get_user_data_dir(), "sqlipc", file, NULL);
}

static int read_schema(char **ret) {
        g_autoptr(GError) error = NULL;
        gsize size;

        if (!arg_schema)
                return 0;
        if (!g_file_get_contents(arg_schema, ret, &size, &error)) {
                complain("The schema cannot be read: %s", error->message);
                return -1;
        }
        if (strlen(*ret) != size) {
                complain("%s is no SQL: it contains NUL bytes.", arg_schema);
                return -1;
        }
        return 0;
}

/* Creates the file, and publishes it; if it cannot be published the file is removed again. */
static int create(Context *c, const char *name, const NewFile *file, const ServiceUser *user, const ServiceUnit *unit) {
        g_autofree char *text = make_text(file->path);
        g_autoptr(GPtrArray) findings = NULL;
        bool taken;
        int r = CTL_FAILED;

        if (create_file(file, user) < 0)
                return CTL_FAILED;
        findings = publish_check(c, name, text, user, unit, &taken);
        if (taken && findings_count(findings, FINDING_ERROR) == 0)
                r = publish_write(c, name, text, user, false);
        if (r != CTL_OK) {
                create_file_undo(file, user);
                complain("Nothing was created.");
                return r;
        }
        return publish_finish(c, name, file->path, findings);
}

static int run(Context *c, char **words) {
        g_autofree char *path = words[1] ? g_canonicalize_filename(words[1], NULL) : path_of(c, words[0]), *schema = NULL;
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_auto(GStrv) directories = context_directories(c);
        g_autofree char *before = NULL;
        g_auto(ServiceUser) user = {};

        if (!database_name_is_valid(words[0])) /* the name becomes part of a path */
                return complain_usage("\"%s\" is no name for a database: use up to 64 of A-Z a-z 0-9 _ -", words[0]);
        before = configuration_find(directories, words[0]);
        if (before) {
                complain("%s is there already: choose another name, or remove that database first.", before);
                return CTL_FAILED;
        }
        if (service_user_find(publish_options.service_user, context_is_system(c), unit, &user) < 0 ||
            read_schema(&schema) < 0)
                return CTL_FAILED;
        if (!words[1] && context_is_system(c) && geteuid() == 0 && prepare_state(&user) < 0)
                return CTL_FAILED;
        return create(c, words[0],
                      &(NewFile) { .path = path, .make_folder = !words[1], .schema = schema, .schema_name = arg_schema },
                      &user, unit);
}

const Verb verb_create = {
        "create", "NAME [PATH]", "Make a database that clients can write to, and publish it", 1, 2, true, options,
        "Without PATH the file is made in the service's own folder.\n"
        "Without --write-user, --write-group and --write-polkit, root and the service's own user alone may write.\n", run,
};
