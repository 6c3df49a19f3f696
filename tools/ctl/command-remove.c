/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl remove: removes the files that add and edit wrote for a database. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/reload.h"
#include "tools/ctl/variant.h"

static gboolean arg_reload;

static const GOptionEntry options[] = {
        { "reload", 0, 0, G_OPTION_ARG_NONE, &arg_reload, "Have the service read it, too", NULL },
        {},
};

/* Returns 1 if the file existed, and adds its name to `removed`. */
static int remove_file(const char *file, GVariantBuilder *removed) {
        g_autofree char *name = g_utf8_make_valid(file, -1);

        if (unlink(file) < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
        g_variant_builder_add(removed, "s", name);
        return 1;
}

static int complain_of_absence(char **directories, const char *name, const char *file) {
        g_autofree char *other = configuration_find(directories, name);

        if (other)
                complain("%s is not in %s, so it is not removed. To hide the database: ln -s /dev/null %s", other,
                         directories[0], file);
        else
                complain("The configuration in %s has no database \"%s\".", directories[0], name);
        return CTL_FAILED;
}

static int print_outcome(const Context *c, GVariant *removed, GVariant *reload) {
        g_auto(GVariantBuilder) document = {};
        gsize n = g_variant_n_children(removed);

        if (!c->json) {
                for (gsize i = 0; i < n; i++) {
                        const char *file;

                        g_variant_get_child(removed, i, "&s", &file);
                        printf("Removed %s.\n", file);
                }
                if (!reload)
                        puts("'sqlipcctl reload' has the service read that.");
                return reload ? reload_print(c, reload) : CTL_OK;
        }
        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "removed", removed);
        if (reload)
                entry(&document, "reload", reload);
        document_print(c, g_variant_builder_end(&document));
        return reload ? reload_complain(reload) : CTL_OK;
}

/* Names the remaining files that still apply to the database. */
static void complain_of_rest(char **directories, const char *name, const char *folder) {
        g_autofree char *other = configuration_find(directories, name);

        if (other)
                complain("%s counts now.", other);
        else if (rmdir(folder) < 0 && errno == ENOTEMPTY)
                complain("%s still has drop-ins of other names, which the service will call an error.", folder);
}

static int run(Context *c, char **words) {
        g_auto(GStrv) directories = context_directories(c);
        g_autofree char *file_name = g_strconcat(words[0], ".conf", NULL), *folder_name = g_strconcat(file_name, ".d", NULL);
        g_autofree char *file = g_build_filename(directories[0], DATABASES, file_name, NULL);
        g_autofree char *folder = g_build_filename(directories[0], DATABASES, folder_name, NULL);
        g_autofree char *drop_in = g_build_filename(folder, OVERRIDE, NULL);
        g_autoptr(GVariant) removed = NULL, reload = NULL;
        g_auto(GVariantBuilder) files = {};
        int r;

        if (!database_name_is_valid(words[0])) /* the name becomes part of a path */
                return complain_usage("\"%s\" is no name of a database.", words[0]);
        g_variant_builder_init(&files, G_VARIANT_TYPE_STRING_ARRAY);
        r = remove_file(file, &files);
        if (r == 0)
                return complain_of_absence(directories, words[0], file);
        if (r > 0)
                r = remove_file(drop_in, &files);
        if (r < 0) {
                complain("The files of \"%s\" in %s cannot be removed: %s", words[0], directories[0], g_strerror(-r));
                return CTL_FAILED;
        }
        removed = g_variant_ref_sink(g_variant_builder_end(&files));
        complain_of_rest(directories, words[0], folder);
        r = arg_reload ? reload_service(c, &reload) : CTL_OK;
        return r == CTL_OK ? print_outcome(c, removed, reload) : r;
}

const Verb verb_remove = {
        "remove", "NAME", "Remove a database's files, which add and edit wrote", 1, 1, true, options,
        "Files in other directories than the first one stay.\n", run,
};
