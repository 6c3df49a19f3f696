/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishes a database, see publish.h. */
#include "tools/ctl/publish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-main.h"
#include "tools/ctl/configuration-check.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/reload.h"
#include "tools/ctl/variant.h"

PublishOptions publish_options;

static void tell(const GPtrArray *findings) {
        for (guint i = 0; i < findings->len; i++) {
                const Finding *finding = findings->pdata[i];

                if (finding->severity != FINDING_OK)
                        complain("%s: %s", severity_to_string(finding->severity), finding->text);
        }
}

GPtrArray *publish_check(const Context *c, const char *name, const char *text, const ServiceUser *user,
                         const ServiceUnit *unit, bool *ret_taken) {
        g_autofree char *file_name = g_strconcat(name, ".conf", NULL);
        const ConfigText texts[] = { { file_name, text, strlen(text) } };
        g_autoptr(Config) config = config_new();
        GPtrArray *findings = findings_new();

        config_add_database(config, name, texts, 1);
        configuration_resolve(config);
        configuration_check(c, config, user, unit, findings);
        tell(findings);
        *ret_taken = g_hash_table_size(config->broken) == 0;
        return findings;
}

/* The file's directory is created with it. */
static char *directory_of(const Context *c) {
        g_auto(GStrv) directories = context_directories(c);

        return g_build_filename(directories[0], DATABASES, NULL);
}

int publish_write(const Context *c, const char *name, const char *text, const ServiceUser *user, bool replace) {
        g_autofree char *directory = directory_of(c), *file_name = g_strconcat(name, ".conf", NULL);
        int r = configuration_make_databases(directory, user->gid);

        if (r >= 0)
                r = configuration_write(c, directory, file_name, text, replace);
        if (r == -EEXIST)
                complain("%s/%s is there already: 'sqlipcctl add --force' replaces it.", directory, file_name);
        else if (r < 0)
                complain("%s/%s cannot be written: %s", directory, file_name, g_strerror(-r));
        return r < 0 ? CTL_FAILED : CTL_OK;
}

int publish_finish(Context *c, const char *name, const char *made, const GPtrArray *findings) {
        g_autofree char *directory = directory_of(c), *file = g_strdup_printf("%s/%s.conf", directory, name);
        g_auto(GVariantBuilder) document = {};
        g_autoptr(GVariant) reload = NULL;
        int r = publish_options.reload ? reload_service(c, &reload) : CTL_OK;

        if (r != CTL_OK)
                return r;
        if (!c->json) {
                if (made)
                        printf("Created %s.\n", made);
                printf("Wrote %s.%s\n", file, reload ? "" : " 'sqlipcctl reload' has the service read it.");
                return reload ? reload_print(c, reload) : CTL_OK;
        }
        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "file", g_variant_new_string(file));
        if (made)
                entry(&document, "created", g_variant_new_string(made));
        entry(&document, "findings", findings_document(findings));
        if (reload)
                entry(&document, "reload", reload);
        document_print(c, g_variant_builder_end(&document));
        return reload ? reload_complain(reload) : CTL_OK;
}
