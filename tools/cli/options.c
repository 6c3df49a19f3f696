/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of ipcq-cli: GOption's table, and what it cannot check. */
#include "options.h"

#include <string.h>

static const char description[] =
        "Modes:\n"
        "  table  aligned columns, the default; widths come from the first 200 rows, a wider value\n"
        "         that follows goes on in the line below\n"
        "  csv    as sqlite3 -csv -header writes it\n"
        "  json   one array, as sqlite3 -json; a BLOB is {\"base64\": \"...\"}\n"
        "  jsonl  one object a line\n"
        "  line   one value a line\n"
        "  tabs   as sqlite3 -tabs -header; NULL is \\N\n"
        "\n"
        "Values of parameters: 12 INTEGER, 1.5 REAL, x'00ff' BLOB, null NULL, 'text' or anything\n"
        "else TEXT. NAME may be a number: the parameter's position.\n"
        "\n"
        "Exit status: 0 success, 1 the query failed, 2 wrong usage, 3 the service cannot be reached,\n"
        "4 the result broke off, 5 the output cannot be written, 130 interrupted (Ctrl-C cancels the query).\n"
        "\n"
        "Example:\n"
        "  ipcq-cli -p pattern='lib%' packages 'SELECT name, version FROM package WHERE name LIKE :pattern'\n";

static void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void complain(const char *format, ...) {
        g_autofree char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        message = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        fprintf(stderr, "ipcq-cli: %s\nTry 'ipcq-cli --help'.\n", message);
}

static int add_parameters(Options *options, char **arguments) {
        options->parameters = parameter_list_new();
        for (char **argument = arguments; argument && *argument; argument++) {
                g_autofree char *message = NULL;

                if (parameter_list_add(options->parameters, *argument, &message) < 0) {
                        complain("-p %s: %s.", *argument, message);
                        return -EINVAL;
                }
        }
        return 0;
}

static int take_words(Options *options, char **words, bool has_parameters) {
        guint n = words ? g_strv_length(words) : 0;

        if (n != (options->list ? 0 : 2)) {
                complain(options->list ? "--list takes no DATABASE and no SQL."
                                       : "DATABASE and SQL are expected, two arguments.");
                return -EINVAL;
        }
        if (options->list && has_parameters) {
                complain("--list takes no parameters.");
                return -EINVAL;
        }
        if (n == 0)
                return 0;
        if (!g_utf8_validate(words[0], -1, NULL) || !g_utf8_validate(words[1], -1, NULL)) {
                complain("DATABASE and SQL are UTF-8.");
                return -EINVAL;
        }
        options->database = g_strdup(words[0]);
        options->sql = g_strdup(words[1]);
        return 0;
}

static int check(Options *options, const char *mode, char **parameters, char **words) {
        if (options->system + options->user + (options->address != NULL) > 1) {
                complain("--system, --user and --address exclude each other.");
                return -EINVAL;
        }
        options->mode = mode ? render_mode_from_string(mode) : RENDER_TABLE;
        if (options->mode == _RENDER_MODE_INVALID) {
                complain("--mode=%s: it is one of table, csv, json, jsonl, line, tabs.", mode);
                return -EINVAL;
        }
        if (add_parameters(options, parameters) < 0)
                return -EINVAL;
        return take_words(options, words, parameters != NULL);
}

int options_parse(int argc, char **argv, Options *ret) {
        g_autoptr(GOptionContext) context = g_option_context_new("DATABASE SQL");
        g_auto(GStrv) parameters = NULL, words = NULL;
        g_autofree char *mode = NULL;
        g_autoptr(GError) error = NULL;
        Options options = {};
        const GOptionEntry entries[] = {
                { "system", 0, 0, G_OPTION_ARG_NONE, &options.system, "Use the system bus, root's default", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &options.user, "Use the user's bus, everybody else's default", NULL },
                { "address", 0, 0, G_OPTION_ARG_STRING, &options.address, "Use the bus at this D-Bus address", "ADDRESS" },
                { "mode", 'm', 0, G_OPTION_ARG_STRING, &mode, "How rows are written, see below", "MODE" },
                { "parameter", 'p', 0, G_OPTION_ARG_FILENAME_ARRAY, &parameters, "Bind a parameter; may be repeated",
                  "NAME=VALUE" },
                { "null", 0, 0, G_OPTION_ARG_FILENAME, &options.null, "What stands for NULL, but in JSON", "TEXT" },
                { "list", 'l', 0, G_OPTION_ARG_NONE, &options.list, "List the databases, with their descriptions", NULL },
                { "no-ask-password", 0, 0, G_OPTION_ARG_NONE, &options.no_ask_password,
                  "Do not have you authenticate, as on a terminal", NULL },
                { "version", 0, 0, G_OPTION_ARG_NONE, &options.version, "Show the version", NULL },
                { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &words, NULL, NULL },
                {},
        };

        g_option_context_set_summary(context, "Runs one SQL query on a database that sqlipcd shares, and writes its rows.");
        g_option_context_set_description(context, description);
        g_option_context_add_main_entries(context, entries, NULL);
        if (!g_option_context_parse(context, &argc, &argv, &error)) {
                complain("%s.", error->message);
                options_done(&options);
                return -EINVAL;
        }
        if (!options.version && check(&options, mode, parameters, words) < 0) {
                options_done(&options);
                return -EINVAL;
        }
        *ret = options;
        return 0;
}

void options_done(Options *options) {
        g_clear_pointer(&options->address, g_free);
        g_clear_pointer(&options->null, g_free);
        g_clear_pointer(&options->database, g_free);
        g_clear_pointer(&options->sql, g_free);
        options->parameters = parameter_list_free(options->parameters);
}
