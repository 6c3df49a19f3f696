/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl add: checks that the service could use a database, and publishes it by writing databases.d/NAME.conf. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-main.h"
#include "tools/ctl/configuration-check.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/database-file.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/reload.h"
#include "tools/ctl/variant.h"

static char **arg_users, **arg_groups, **arg_expose, *arg_description, *arg_service_user;
static gboolean arg_polkit, arg_immutable, arg_force, arg_reload;

static const GOptionEntry options[] = {
        { "allow-user", 0, 0, G_OPTION_ARG_STRING_ARRAY, &arg_users, "Let a user use it (again for more; * is all)",
          "USER" },
        { "allow-group", 0, 0, G_OPTION_ARG_STRING_ARRAY, &arg_groups, "Let a group use it (again for more)", "GROUP" },
        { "polkit", 0, 0, G_OPTION_ARG_NONE, &arg_polkit, "Ask polkit about all other users", NULL },
        { "expose", 0, 0, G_OPTION_ARG_STRING_ARRAY, &arg_expose, "Show this table or view alone (again for more)", "NAME" },
        { "description", 0, 0, G_OPTION_ARG_STRING, &arg_description, "A line about it", "TEXT" },
        { "immutable", 0, 0, G_OPTION_ARG_NONE, &arg_immutable, "Nobody ever changes the file", NULL },
        { "force", 0, 0, G_OPTION_ARG_NONE, &arg_force, "Write in spite of errors, or over another file", NULL },
        { "reload", 0, 0, G_OPTION_ARG_NONE, &arg_reload, "Have the service read it, too", NULL },
        { "service-user", 0, 0, G_OPTION_ARG_STRING, &arg_service_user, "Whom the service runs as", "USER" },
        {},
};

/* ---- The text ----------------------------------------------------------------------------------------------------- */

static char *make_text(const char *path) {
        const DatabaseFile file = {
                .path = path,
                .description = arg_description,
                .allow_users = arg_users,
                .allow_groups = arg_groups,
                .expose = arg_expose,
                .immutable = arg_immutable,
                .polkit = arg_polkit,
        };

        return database_file_text(&file);
}

/* Reads the text as the service will, and returns the findings. `*ret_taken`: the service would accept it as it is. */
static GPtrArray *check(const Context *c, const char *name, const char *file, const char *text, const ServiceUser *user,
                        const ServiceUnit *unit, bool *ret_taken) {
        const ConfigText texts[] = { { file, text, strlen(text) } };
        g_autoptr(Config) config = config_new();
        GPtrArray *findings = findings_new();

        config_add_database(config, name, texts, 1);
        configuration_resolve(config);
        configuration_check(c, config, user, unit, findings);
        *ret_taken = g_hash_table_size(config->broken) == 0;
        return findings;
}

static void tell(const GPtrArray *findings) {
        for (guint i = 0; i < findings->len; i++) {
                const Finding *finding = findings->pdata[i];

                if (finding->severity != FINDING_OK)
                        complain("%s: %s", severity_to_string(finding->severity), finding->text);
        }
}

/* ---- The verb ----------------------------------------------------------------------------------------------------- */

static int print_outcome(const Context *c, const char *file, const GPtrArray *findings, GVariant *reload) {
        g_auto(GVariantBuilder) document = {};

        if (!c->json) {
                printf("Wrote %s.%s\n", file, reload ? "" : " 'sqlipcctl reload' has the service read it.");
                return reload ? reload_print(c, reload) : CTL_OK;
        }
        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "file", g_variant_new_string(file));
        entry(&document, "findings", findings_document(findings));
        if (reload)
                entry(&document, "reload", reload);
        document_print(c, g_variant_builder_end(&document));
        return reload ? reload_complain(reload) : CTL_OK;
}

static int publish(Context *c, const char *directory, const char *file_name, const char *text, const GPtrArray *findings) {
        g_autofree char *file = g_build_filename(directory, file_name, NULL);
        g_autoptr(GVariant) reload = NULL;
        int r = configuration_write(directory, file_name, text, arg_force);

        if (r == -EEXIST) {
                complain("%s is there already: --force replaces it.", file);
                return CTL_FAILED;
        }
        if (r < 0) {
                complain("%s cannot be written: %s", file, g_strerror(-r));
                return CTL_FAILED;
        }
        r = arg_reload ? reload_service(c, &reload) : CTL_OK;
        if (r != CTL_OK)
                return r;
        return print_outcome(c, file, findings, reload);
}

static int run(Context *c, char **words) {
        g_auto(GStrv) directories = context_directories(c);
        g_autofree char *directory = g_build_filename(directories[0], "databases.d", NULL);
        g_autofree char *file_name = g_strconcat(words[0], ".conf", NULL), *path = g_canonicalize_filename(words[1], NULL);
        g_autofree char *text = make_text(path);
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_autoptr(GPtrArray) findings = NULL;
        g_auto(ServiceUser) user = {};
        bool taken;

        if (!database_name_is_valid(words[0])) /* the name becomes part of a path */
                return complain_usage("\"%s\" is no name for a database: use up to 64 of A-Z a-z 0-9 _ -", words[0]);
        if (service_user_find(arg_service_user, context_is_system(c), unit, &user) < 0)
                return CTL_FAILED;
        findings = check(c, words[0], file_name, text, &user, unit, &taken);
        tell(findings);
        if (!taken || (findings_count(findings, FINDING_ERROR) > 0 && !arg_force)) {
                complain("Nothing was written%s.", taken ? "; --force writes in spite of errors" : "");
                return CTL_FAILED;
        }
        return publish(c, directory, file_name, text, findings);
}

const Verb verb_add = {
        "add", "NAME PATH", "Publish a database: write databases.d/NAME.conf", 2, 2, true, options,
        "Without --allow-user, --allow-group and --polkit, root and the service's own user alone may use it.\n", run,
};
