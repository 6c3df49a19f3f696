/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl add: checks that the service could use a database, and publishes it by writing databases.d/NAME.conf. */
#include "daemon/configuration/configuration-database.h"
#include "tools/ctl/database-file.h"
#include "tools/ctl/finding.h"
#include "tools/ctl/publish.h"

static char **arg_expose, *arg_mode;
static gboolean arg_immutable, arg_force;

static const GOptionEntry options[] = {
        PUBLISH_OPTIONS,
        { "mode", 0, 0, G_OPTION_ARG_STRING, &arg_mode, "read-only, which is the default, or read-write", "MODE" },
        { "expose", 0, 0, G_OPTION_ARG_STRING_ARRAY, &arg_expose, "Show this table or view alone (again for more)", "NAME" },
        { "immutable", 0, 0, G_OPTION_ARG_NONE, &arg_immutable, "Nobody ever changes the file", NULL },
        { "force", 0, 0, G_OPTION_ARG_NONE, &arg_force, "Write in spite of errors, or over another file", NULL },
        {},
};

static char *make_text(const char *path) {
        const DatabaseFile file = {
                .path = path,
                .description = publish_options.description,
                .mode = arg_mode,
                .allow_users = publish_options.allow_users,
                .allow_groups = publish_options.allow_groups,
                .expose = arg_expose,
                .write_users = publish_options.write_users,
                .write_groups = publish_options.write_groups,
                .immutable = arg_immutable,
                .polkit = publish_options.polkit,
                .write_polkit = publish_options.write_polkit,
                .foreign_keys = g_strcmp0(arg_mode, "read-write") != 0 ? NULL : publish_options.foreign_keys ? "yes" : "no",
        };

        return database_file_text(&file);
}

static int run(Context *c, char **words) {
        g_autofree char *path = g_canonicalize_filename(words[1], NULL), *text = make_text(path);
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_autoptr(GPtrArray) findings = NULL;
        g_auto(ServiceUser) user = {};
        bool taken;

        if (!database_name_is_valid(words[0])) /* the name becomes part of a path */
                return complain_usage("\"%s\" is no name for a database: use up to 64 of A-Z a-z 0-9 _ -", words[0]);
        if (service_user_find(publish_options.service_user, context_is_system(c), unit, &user) < 0)
                return CTL_FAILED;
        findings = publish_check(c, words[0], text, &user, unit, &taken);
        if (!taken || (findings_count(findings, FINDING_ERROR) > 0 && !arg_force)) {
                complain("Nothing was written%s.", taken ? "; --force writes in spite of errors" : "");
                return CTL_FAILED;
        }
        int r = publish_write(c, words[0], text, &user, arg_force);
        return r == CTL_OK ? publish_finish(c, words[0], NULL, findings) : r;
}

const Verb verb_add = {
        "add", "NAME PATH", "Publish a database: write databases.d/NAME.conf", 2, 2, true, options,
        "Without --allow-user, --allow-group and --polkit, root and the service's own user alone may use it.\n", run,
};
