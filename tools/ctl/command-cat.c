/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl cat: prints the configuration files of a database, in the order in which they apply. */
#include <stdio.h>
#include <string.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/stdout-pager.h"
#include "tools/ctl/variant.h"
#include "tools/terminal/format.h"

static bool add_file(GVariantBuilder *files, const char *file) {
        g_autofree char *text = NULL, *shown = g_utf8_make_valid(file, -1), *valid = NULL;
        g_autoptr(GError) error = NULL;
        gsize size;

        if (!g_file_get_contents(file, &text, &size, &error)) {
                complain("%s.", error->message);
                return false;
        }
        valid = g_utf8_make_valid(text, (gssize) size);
        g_variant_builder_open(files, G_VARIANT_TYPE_VARDICT);
        entry(files, "file", g_variant_new_string(shown));
        entry(files, "text", g_variant_new_string(valid));
        g_variant_builder_close(files);
        return true;
}

static int compare(const void *a, const void *b, void *userdata) {
        return strcmp(a, b);
}

/* Name -> path, sorted by name. If several directories have a file of the same name, the first directory's is used. */
static GTree *find_drop_ins(char **directories, const char *name) {
        g_autofree char *folder_name = g_strconcat(name, ".conf.d", NULL);
        GTree *found = g_tree_new_full(compare, NULL, g_free, g_free);

        for (char **directory = directories; *directory; directory++) {
                g_autofree char *folder = g_build_filename(*directory, DATABASES, folder_name, NULL);
                g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
                const char *file;

                while (dir && (file = g_dir_read_name(dir)))
                        if (g_str_has_suffix(file, ".conf") && file[0] != '.' && !g_tree_lookup(found, file))
                                g_tree_insert(found, g_strdup(file), g_build_filename(folder, file, NULL));
        }
        return found;
}

static void print_files(GVariant *files) {
        gsize n = g_variant_n_children(files);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) one = g_variant_get_child_value(files, i);
                const char *file = lookup_text(one, "file", ""), *text = lookup_text(one, "text", "");
                g_autoptr(GString) shown = g_string_new(i > 0 ? "\n# " : "# ");

                format_shown_text(shown, file, strlen(file), SIZE_MAX);
                g_string_append_c(shown, '\n');
                format_shown_lines(shown, text, strlen(text), SIZE_MAX);
                fputs(shown->str, stdout);
                if (!g_str_has_suffix(shown->str, "\n"))
                        putchar('\n');
        }
}

static int run(Context *c, char **words) {
        g_auto(GStrv) directories = context_directories(c);
        g_autofree char *file = database_name_is_valid(words[0]) ? configuration_find(directories, words[0]) : NULL;
        g_autoptr(GTree) drop_ins = NULL;
        g_auto(GVariantBuilder) files = {};
        g_autoptr(GVariant) document = NULL;
        bool all;

        if (!file) {
                complain("The configuration in %s has no database \"%s\".", directories[0], words[0]);
                return CTL_FAILED;
        }
        drop_ins = find_drop_ins(directories, words[0]);
        g_variant_builder_init(&files, G_VARIANT_TYPE("aa{sv}"));
        all = add_file(&files, file);
        for (GTreeNode *node = g_tree_node_first(drop_ins); node; node = g_tree_node_next(node))
                all = add_file(&files, g_tree_node_value(node)) && all;
        document = g_variant_ref_sink(g_variant_builder_end(&files));
        stdout_pager_open(!c->no_pager);
        if (c->json)
                document_print(c, document);
        else
                print_files(document);
        return all ? CTL_OK : CTL_FAILED;
}

const Verb verb_cat = {
        "cat", "NAME", "Show the file of a database and its drop-ins", 1, 1, true, NULL, NULL, run,
};
