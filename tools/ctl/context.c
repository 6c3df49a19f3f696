/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line: `sqlipcctl [OPTION...] VERB [OPTION...] [WORD...]`. Common options may be before or after the verb,
 * options of one verb only after it. So it is parsed twice: first up to the verb, then the rest, with the verb's own
 * options.
 */
#include "tools/ctl/context.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "daemon/configuration/configuration-files.h"
#include "tools/ctl/stdout-pager.h"
#include "tools/terminal/nearest.h"

static const Verb *const verbs[] = {
        &verb_list,     &verb_status, &verb_clients,  &verb_statements, &verb_runs,   &verb_transactions,
        &verb_channels, &verb_watches, &verb_cancel,  &verb_top,        &verb_check,  &verb_add,
        &verb_create,   &verb_cat,    &verb_edit,     &verb_remove,     &verb_reload, &verb_security,
        &verb_backup,   &verb_vacuum, &verb_integrity, &verb_migrate,
};

bool context_is_system(const Context *c) {
        return c->system || (!c->user && (geteuid() == 0 || context_is_remote(c)));
}

bool context_is_unit(const Context *c) {
        return context_is_system(c) && !c->address && !context_is_remote(c);
}

bool context_is_remote(const Context *c) {
        return c->host || c->machine;
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

/* Puts the folders of options before the verb together with those after it; the second parser knows only the latter. */
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

static int take_json(Context *c, const char *how) {
        static const char *const names[] = { [JSON_OFF] = "off", [JSON_SHORT] = "short", [JSON_PRETTY] = "pretty" };

        if (!how)
                return CTL_OK;
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
                if (g_str_equal(how, names[i])) {
                        c->json = (Json) i;
                        return CTL_OK;
                }
        return complain_usage("--json=%s is not known: give pretty, short or off.", how);
}

/* GLib would take the word after a bare "--json" for its value. */
static void complete_json(int argc, char **argv) {
        static char complete[] = "--json=short";

        for (int i = 1; i < argc && !g_str_equal(argv[i], "--"); i++)
                if (g_str_equal(argv[i], "--json"))
                        argv[i] = complete;
}

/* Parses the options before the verb (`verb` is NULL), or those after it. Returns -1 after --version, which ends the
 * program. */
static int parse(Context *c, const Verb *verb, int *argc, char ***argv) {
        g_autofree char *call = verb ? g_strdup_printf("%s %s", verb->name, verb->words) : NULL;
        g_autofree char *description = verb ? g_strdup(verb->description) : describe_verbs();
        g_autoptr(GOptionContext) parser = g_option_context_new(call ?: "[VERB [WORD...]]");
        g_autoptr(GError) error = NULL;
        g_autofree char *json = NULL;
        gboolean version = FALSE;
        const GOptionEntry entries[] = {
                { "system", 0, 0, G_OPTION_ARG_NONE, &c->system, "The service on the system bus, root's default", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &c->user, "The user's own, the default of other users", NULL },
                { "address", 0, 0, G_OPTION_ARG_STRING, &c->address, "The service on the bus at this address", "ADDRESS" },
                { "config-dir", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &c->config_directories,
                  "The configuration in DIR (again for more; the first wins)", "DIR" },
                { "host", 'H', 0, G_OPTION_ARG_STRING, &c->host,
                  "The system's service on another host, [USER@]HOST, over ssh", "HOST" },
                { "machine", 'M', 0, G_OPTION_ARG_STRING, &c->machine, "The service in a local container", "CONTAINER" },
                { "json", 0, 0, G_OPTION_ARG_STRING, &json, "Print JSON: pretty, short (which --json is) or off", "HOW" },
                { "no-pager", 0, 0, G_OPTION_ARG_NONE, &c->no_pager, "Do not show long output in a pager", NULL },
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
        return take_json(c, json);
}

static const Verb *find_verb(const char *name) {
        for (size_t i = 0; i < G_N_ELEMENTS(verbs); i++)
                if (g_str_equal(verbs[i]->name, name))
                        return verbs[i];
        return NULL;
}

static int complain_of_verb(const char *name) {
        Nearest nearest = nearest_begin(name);
        g_autofree char *meant = NULL;

        for (size_t i = 0; i < G_N_ELEMENTS(verbs); i++)
                nearest_consider(&nearest, verbs[i]->name, verbs[i]->name);
        meant = nearest.name;
        return meant ? complain_usage("There is no verb \"%s\"; did you mean \"%s\"?", name, meant)
                     : complain_usage("There is no verb \"%s\".", name);
}

static int check_bus(const Context *c, const Verb *verb) {
        if (c->system + c->user + (c->address != NULL) > 1)
                return complain_usage("--system, --user and --address exclude each other.");
        if ((c->address != NULL) + (c->host != NULL) + (c->machine != NULL) > 1)
                return complain_usage("--address, --host and --machine exclude each other.");
        if (c->host && c->user)
                return complain_usage("--host reaches the system's service only.");
        if (verb->needs_files && context_is_remote(c))
                return complain_usage("\"%s\" works on the files of this machine: --host and --machine do not go with it.",
                                      verb->name);
        return CTL_OK;
}

/* Removes the verb from `argv`; the options before it have been parsed already. */
static const Verb *take_verb(int *argc, char **argv) {
        const Verb *verb = find_verb(argv[1]);

        for (int i = 1; verb && i < *argc; i++)
                argv[i] = argv[i + 1];
        *argc -= 1;
        return verb;
}

/* The words; removes the `--` that the parser leaves. */
static char **words_of(int *argc, char **argv) {
        if (*argc < 2 || !g_str_equal(argv[1], "--"))
                return argv + 1;
        *argc -= 1;
        return argv + 2;
}

static int run_verb(Context *c, int argc, char **argv) {
        const char *name = argc > 1 ? argv[1] : NULL;
        const Verb *verb = name ? take_verb(&argc, argv) : &verb_list;
        char **before = c->config_directories, **words;
        int r;

        if (!verb)
                return complain_of_verb(name);
        r = parse(c, verb, &argc, &argv);
        join_directories(c, before);
        if (r != CTL_OK)
                return r < 0 ? CTL_OK : r;
        words = words_of(&argc, argv);
        if ((guint) argc - 1 < verb->n_min || (guint) argc - 1 > verb->n_max)
                return complain_usage("Usage: sqlipcctl %s %s", verb->name, verb->words);
        r = check_bus(c, verb);
        if (r != CTL_OK)
                return r;
        for (char **word = words; *word; word++)
                if (!g_utf8_validate(*word, -1, NULL))
                        return complain_usage("Words are UTF-8.");
        r = verb->run(c, words);
        stdout_pager_close();
        return r;
}

int context_run(int argc, char **argv) {
        Context c = {};
        int r;

        complete_json(argc, argv);
        r = parse(&c, NULL, &argc, &argv);

        r = r < 0 ? CTL_OK : r > 0 ? r : run_verb(&c, argc, argv);
        sd_bus_flush_close_unref(c.bus);
        g_clear_pointer(&c.processes, g_hash_table_unref);
        g_free(c.address);
        g_free(c.host);
        g_free(c.machine);
        g_strfreev(c.config_directories);
        return r;
}
