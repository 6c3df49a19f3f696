/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl check: prints the errors of the configuration before the service reads it; or checks SQL, see query-check.h. */
#include <stdio.h>
#include <string.h>

#include "daemon/configuration/configuration-files.h"
#include "tools/ctl/configuration-check.h"
#include "tools/ctl/configuration-file.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/migrate/query-check.h"
#include "tools/ctl/stdout-pager.h"
#include "tools/ctl/variant.h"
#include "tools/terminal/format.h"

static gboolean arg_strict, arg_verbose;
static char *arg_service_user, *arg_queries, *arg_to;

static const GOptionEntry options[] = {
        { "strict", 0, 0, G_OPTION_ARG_NONE, &arg_strict, "Fail for warnings, too", NULL },
        { "verbose", 'v', 0, G_OPTION_ARG_NONE, &arg_verbose, "Also tell what is right", NULL },
        { "service-user", 0, 0, G_OPTION_ARG_STRING, &arg_service_user, "The user that the service runs as", "USER" },
        { "queries", 0, 0, G_OPTION_ARG_FILENAME, &arg_queries, "Check the statements in LOG on the database NAME", "LOG" },
        { "to", 0, 0, G_OPTION_ARG_FILENAME, &arg_to, "Check them on the database of this configuration", "FILE" },
        {},
};

static Config *load(const Context *c, const char *file) {
        g_auto(GStrv) directories = NULL;

        if (file)
                return configuration_of_file(file);
        directories = context_directories(c);
        return config_load((const char *const *) directories);
}

static void print_document(const Context *c, GPtrArray *findings, guint n_databases) {
        g_auto(GVariantBuilder) document = {};

        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "databases", g_variant_new_uint32(n_databases));
        entry(&document, "errors", g_variant_new_uint32(findings_count(findings, FINDING_ERROR)));
        entry(&document, "warnings", g_variant_new_uint32(findings_count(findings, FINDING_WARNING)));
        entry(&document, "findings", findings_document(findings));
        document_print(c, g_variant_builder_end(&document));
}

static void print_lines(const Context *c, GPtrArray *findings, guint n_databases) {
        for (guint i = 0; i < findings->len; i++) {
                const Finding *finding = findings->pdata[i];
                g_autoptr(GString) shown = g_string_new(NULL);

                if (finding->severity == FINDING_OK && !arg_verbose)
                        continue;
                format_shown_text(shown, finding->subject, strlen(finding->subject), SIZE_MAX);
                g_string_append(shown, ": ");
                format_shown_text(shown, finding->text, strlen(finding->text), SIZE_MAX);
                printf("%s: ", severity_to_string(finding->severity));
                puts(shown->str);
        }
        if (!c->no_legend) {
                g_autofree char *databases = counted(n_databases, "database");
                g_autofree char *errors = counted(findings_count(findings, FINDING_ERROR), "error");
                g_autofree char *warnings = counted(findings_count(findings, FINDING_WARNING), "warning");

                printf("%s, %s, %s.\n", databases, errors, warnings);
        }
}

static int run(Context *c, char **words) {
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_auto(ServiceUser) user = {};
        g_autoptr(GPtrArray) findings = findings_new();
        g_autoptr(Config) config = NULL;
        guint n_databases;

        if (arg_queries && !words[0])
                return complain_usage("Usage: sqlipcctl check NAME --queries=LOG");
        if (arg_to && !arg_queries)
                return complain_usage("--to goes with --queries only.");
        if (arg_queries && (arg_strict || arg_verbose || arg_service_user))
                return complain_usage("--strict, --verbose and --service-user do not go with --queries.");
        if (arg_queries)
                return query_check(c, words[0], arg_queries, arg_to);
        if (service_user_find(arg_service_user, context_is_system(c), unit, &user) < 0)
                return CTL_FAILED;
        config = load(c, words[0]);
        if (!config)
                return CTL_FAILED;
        configuration_resolve(config);
        configuration_check(c, config, &user, unit, findings);
        n_databases = g_hash_table_size(config->databases);
        stdout_pager_open(!c->no_pager);
        if (c->json)
                print_document(c, findings, n_databases);
        else
                print_lines(c, findings, n_databases);
        return findings_count(findings, FINDING_ERROR) > 0 || (arg_strict && findings_count(findings, FINDING_WARNING) > 0)
                       ? CTL_FAILED
                       : CTL_OK;
}

const Verb verb_check = {
        "check", "[FILE|NAME]", "Say what is wrong with the configuration, with one file of it, or with SQL", 0, 1, true,
        options,
        "Exit status: 0 nothing is wrong, 1 something is; warnings count with --strict.\n", run,
};
