/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line: `sqlipcctl [OPTION...] VERB [OPTION...] [WORD...]`. Options of all verbs may stand on either side of the
 * verb, those of one verb behind it. So it is parsed twice: up to the verb, then the rest with what the verb adds.
 */
#include "context.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "configuration-files.h"

static const Verb *const verbs[] = {
        &verb_list, &verb_status, &verb_statements, &verb_runs, &verb_channels, &verb_cancel,
        &verb_top, &verb_check, &verb_add, &verb_reload, &verb_security,
};

bool context_is_system(const Context *c) {
        return c->system || (!c->user && geteuid() == 0);
}

bool context_is_unit(const Context *c) {
        return context_is_system(c) && !c->address;
}

char **context_directories(const Context *c) {
        return c->config_directories ? g_strdupv(c->config_directories) : config_default_directories(!context_is_system(c));
}

/* ---- Parsing ------------------------------------------------------------------------------------------------------ */

static char *describe_verbs(void) {
        GString *text = g_string_new("Verbs:\n");

        for (size_t i = 0; i < G_N_ELEMENTS(verbs); i++) {
                g_autofree char *call = g_strdup_printf("%s %s", verbs[i]->name, verbs[i]->words);

                g_string_append_printf(text, "  %-24s %s\n", call, verbs[i]->summary);
        }
        g_string_append(text, "\n'sqlipcctl VERB --help' shows the options of a verb.\n"
                              "Exit status: 0 success, 1 it failed or something is wrong, 2 wrong usage.\n"
                              "See sqlipcctl(1).\n");
        return g_string_free(text, FALSE);
}

/* Adds the folders of options before the verb to those behind it; the parser knows of the latter alone. */
static void join_directories(Context *c, char **before) {
        g_autoptr(GPtrArray) all = g_ptr_array_new();

        if (!before || before == c->config_directories)
                return;
        for (char **directory = before; *directory; directory++)
                g_ptr_array_add(all, *directory);
        for (char **directory = c->config_directories; *directory; directory++)
                g_ptr_array_add(all, *directory);
        g_ptr_array_add(all, NULL);
        g_free(before);
        g_free(c->config_directories);
        c->config_directories = (char **) g_ptr_array_steal(all, NULL);
}

/* The options up to the verb (NULL), or those behind it. -1: all is done. */
static int parse(Context *c, const Verb *verb, int *argc, char ***argv) {
        g_autofree char *call = verb ? g_strdup_printf("%s %s", verb->name, verb->words) : NULL;
        g_autofree char *description = verb ? g_strdup(verb->description) : describe_verbs();
        g_autoptr(GOptionContext) parser = g_option_context_new(call ?: "VERB [WORD...]");
        g_autoptr(GError) error = NULL;
        gboolean version = FALSE;
        const GOptionEntry entries[] = {
                { "system", 0, 0, G_OPTION_ARG_NONE, &c->system, "The service on the system bus, root's default", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &c->user, "The user's own, everybody else's default", NULL },
                { "address", 0, 0, G_OPTION_ARG_STRING, &c->address, "The service on the bus at this address", "ADDRESS" },
                { "config-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &c->config_directories,
                  "The configuration in DIR (again for more; the first wins)", "DIR" },
                { "json", 0, 0, G_OPTION_ARG_NONE, &c->json, "Print JSON", NULL },
                { "no-legend", 0, 0, G_OPTION_ARG_NONE, &c->no_legend, "Print no headings and no summary", NULL },
                { "version", 0, 0, G_OPTION_ARG_NONE, &version, "Show the version", NULL },
                {},
        };

        g_option_context_set_strict_posix(parser, !verb);
        g_option_context_set_summary(parser, verb ? verb->summary : "Administers sqlipcd, which shares SQLite databases.");
        g_option_context_set_description(parser, description);
        g_option_context_add_main_entries(parser, entries, NULL);
        if (verb && verb->options)
                g_option_context_add_main_entries(parser, verb->options, NULL);
        if (!g_option_context_parse(parser, argc, argv, &error))
                return complain_usage("%s.", error->message);
        if (version) {
                puts("sqlipcctl " SQLIPC_VERSION);
                return -1;
        }
        return CTL_OK;
}

static const Verb *find_verb(const char *name) {
        for (size_t i = 0; i < G_N_ELEMENTS(verbs); i++)
                if (g_str_equal(verbs[i]->name, name))
                        return verbs[i];
        return NULL;
}

/* Takes the verb out of `argv`; what was before it is parsed already. */
static const Verb *take_verb(int *argc, char **argv) {
        const Verb *verb = find_verb(argv[1]);

        for (int i = 1; verb && i < *argc; i++)
                argv[i] = argv[i + 1];
        *argc -= 1;
        return verb;
}

/* What the parser leaves of `--`. */
static char **words_of(int *argc, char **argv) {
        if (*argc < 2 || !g_str_equal(argv[1], "--"))
                return argv + 1;
        *argc -= 1;
        return argv + 2;
}

static int run_verb(Context *c, int argc, char **argv) {
        const char *name = argc > 1 ? argv[1] : NULL;
        const Verb *verb = name ? take_verb(&argc, argv) : NULL;
        char **before = c->config_directories, **words;
        int r;

        if (!verb)
                return name ? complain_usage("There is no verb \"%s\".", name) : complain_usage("A verb is expected.");
        r = parse(c, verb, &argc, &argv);
        join_directories(c, before);
        if (r != CTL_OK)
                return r < 0 ? CTL_OK : r;
        words = words_of(&argc, argv);
        if ((guint) argc - 1 < verb->n_min || (guint) argc - 1 > verb->n_max)
                return complain_usage("What is expected is: sqlipcctl %s %s", verb->name, verb->words);
        if (c->system + c->user + (c->address != NULL) > 1)
                return complain_usage("--system, --user and --address exclude each other.");
        for (char **word = words; *word; word++)
                if (!g_utf8_validate(*word, -1, NULL))
                        return complain_usage("Words are UTF-8.");
        return verb->run(c, words);
}

int context_run(int argc, char **argv) {
        Context c = {};
        int r = parse(&c, NULL, &argc, &argv);

        r = r < 0 ? CTL_OK : r > 0 ? r : run_verb(&c, argc, argv);
        sd_bus_flush_close_unref(c.bus);
        g_free(c.address);
        g_strfreev(c.config_directories);
        return r;
}
