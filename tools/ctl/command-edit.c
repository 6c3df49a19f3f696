/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipcctl edit: changes a database's drop-in, or its whole file, in an editor.
 *
 * The editor gets a copy in a temporary directory. The configuration is then read with that directory as the first one, so
 * that the copy replaces the old file. The copy is moved to its place only if the database has no errors with it.
 */
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-files.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/reload.h"
#include "tools/ctl/variant.h"

static gboolean arg_full, arg_reload;

static const GOptionEntry options[] = {
        { "full", 0, 0, G_OPTION_ARG_NONE, &arg_full, "Edit the whole file, not a drop-in", NULL },
        { "reload", 0, 0, G_OPTION_ARG_NONE, &arg_reload, "Have the service read it, too", NULL },
        {},
};

typedef struct Edit {
        const char *name;      /* of the database */
        char *folder, *file;   /* below a directory of the configuration: databases.d/..., the file's own name */
        char *directory;       /* temporary; it is laid out like a directory of the configuration */
        char *copy;            /* the edited file, in `directory` */
        char *before, *after;  /* its text */
} Edit;

static void edit_done(Edit *e) {
        g_free(e->folder);
        g_free(e->file);
        g_free(e->directory);
        g_free(e->copy);
        g_free(e->before);
        g_free(e->after);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Edit, edit_done)

/* The text that the editor starts with. */
static char *text_of(const Edit *e, char **directories, const char *main_file) {
        g_autofree char *file = g_build_filename(directories[0], e->folder, e->file, NULL);
        char *text = NULL;

        if (g_file_get_contents(arg_full ? main_file : file, &text, NULL, NULL) || arg_full)
                return text;
        return g_strdup_printf("# Settings that differ from %s: see sqlipc.databases(5).\n[Database]\n", main_file);
}

static bool make_copy(Edit *e) {
        g_autofree char *folder = NULL;

        e->directory = g_dir_make_tmp("sqlipcctl-XXXXXX", NULL);
        if (!e->directory)
                return false;
        folder = g_build_filename(e->directory, e->folder, NULL);
        e->copy = g_build_filename(folder, e->file, NULL);
        return g_mkdir_with_parents(folder, 0700) >= 0 && g_file_set_contents(e->copy, e->before, -1, NULL);
}

static void remove_copy(const Edit *e) {
        g_autofree char *folder = g_build_filename(e->directory, e->folder, NULL);
        g_autofree char *above = g_build_filename(e->directory, DATABASES, NULL);

        (void) g_unlink(e->copy);
        (void) g_rmdir(folder);
        (void) g_rmdir(above);
        (void) g_rmdir(e->directory);
}

static const char *find_editor(void) {
        static const char *const usual[] = { "editor", "nano", "vim", "vi" };
        const char *editor = g_getenv("SYSTEMD_EDITOR") ?: g_getenv("EDITOR") ?: g_getenv("VISUAL");

        for (size_t i = 0; !editor && i < G_N_ELEMENTS(usual); i++) {
                g_autofree char *program = g_find_program_in_path(usual[i]);

                editor = program ? usual[i] : NULL;
        }
        return editor ?: "vi";
}

static bool run_editor(const Edit *e) {
        g_autofree char *quoted = g_shell_quote(e->copy), *command = g_strdup_printf("%s %s", find_editor(), quoted);

        return system(command) == 0;
}

/* True if the service would publish the database with the new text. Prints its errors and warnings. */
static bool is_taken(const Edit *e, char **directories) {
        g_autoptr(GPtrArray) all = g_ptr_array_new();
        g_autoptr(Config) config = NULL;
        const char *problem;

        g_ptr_array_add(all, e->directory);
        for (char **directory = directories; *directory; directory++)
                g_ptr_array_add(all, *directory);
        g_ptr_array_add(all, NULL);
        config = config_load((const char *const *) all->pdata);
        for (guint i = 0; i < config->warnings->len; i++)
                if (strstr(config->warnings->pdata[i], e->directory))
                        complain("warning: %s", (const char *) config->warnings->pdata[i]);
        problem = g_hash_table_lookup(config->broken, e->name);
        if (problem)
                complain("error: %s", problem);
        return !problem;
}

static int print_outcome(Context *c, const char *file, GVariant *reload) {
        g_auto(GVariantBuilder) document = {};

        if (!c->json) {
                printf("Wrote %s.%s\n", file, reload ? "" : " 'sqlipcctl reload' has the service read it.");
                return reload ? reload_print(c, reload) : CTL_OK;
        }
        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "file", g_variant_new_string(file));
        if (reload)
                entry(&document, "reload", reload);
        document_print(c, g_variant_builder_end(&document));
        return reload ? reload_complain(reload) : CTL_OK;
}

/* Puts the new text in place. */
static int publish(Context *c, const Edit *e, const char *directory) {
        g_autofree char *folder = g_build_filename(directory, e->folder, NULL);
        g_autofree char *file = g_build_filename(folder, e->file, NULL);
        g_autoptr(GVariant) reload = NULL;
        int r = configuration_write(c, folder, e->file, e->after, true);

        if (r < 0) {
                complain("%s cannot be written: %s. The new text is in %s.", file, g_strerror(-r), e->copy);
                return CTL_FAILED;
        }
        remove_copy(e);
        r = arg_reload ? reload_service(c, &reload) : CTL_OK;
        return r == CTL_OK ? print_outcome(c, file, reload) : r;
}

static int edit(Context *c, Edit *e, char **directories) {
        if (!make_copy(e)) {
                complain("A temporary file cannot be written.");
                return CTL_FAILED;
        }
        if (!run_editor(e) || !g_file_get_contents(e->copy, &e->after, NULL, NULL)) {
                complain("The editor failed: nothing was changed. Set $EDITOR for another.");
                remove_copy(e);
                return CTL_FAILED;
        }
        if (g_str_equal(e->before, e->after) || strspn(e->after, " \t\n") == strlen(e->after)) {
                complain("Nothing was changed, since the text is %s.", *e->after ? "as before" : "empty");
                remove_copy(e);
                return CTL_OK;
        }
        if (!is_taken(e, directories)) {
                complain("Nothing was changed. The new text is in %s.", e->copy);
                return CTL_FAILED;
        }
        return publish(c, e, directories[0]);
}

static int run(Context *c, char **words) {
        g_auto(GStrv) directories = context_directories(c);
        g_autofree char *main_file = database_name_is_valid(words[0]) ? configuration_find(directories, words[0]) : NULL;
        g_auto(Edit) e = {
                .name = words[0],
                .folder = arg_full ? g_strdup(DATABASES) : g_strdup_printf(DATABASES "/%s.conf.d", words[0]),
                .file = arg_full ? g_strdup_printf("%s.conf", words[0]) : g_strdup(OVERRIDE),
        };

        if (!main_file) {
                complain("The configuration in %s has no database \"%s\": 'sqlipcctl add' makes one.", directories[0],
                         words[0]);
                return CTL_FAILED;
        }
        e.before = text_of(&e, directories, main_file);
        if (!e.before) {
                complain("%s cannot be read.", main_file);
                return CTL_FAILED;
        }
        return edit(c, &e, directories);
}

const Verb verb_edit = {
        "edit", "NAME", "Change a database's drop-in, or its file, in an editor", 1, 1, true, options,
        "The text is checked before it is put in place. The editor is $SYSTEMD_EDITOR, $EDITOR or $VISUAL.\n", run,
};
