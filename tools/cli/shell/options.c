/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses the command line of ipcq-cli: GOption's table, and the checks that GOption cannot make. */
#include "tools/cli/shell/options.h"

#include <string.h>
#include <unistd.h>

static const char description[] =
        "Without SQL and without -c or -f: a shell on a terminal (.help lists its commands), else\n"
        "standard input is run. SQL may be a command as well: ipcq-cli DATABASE .dump\n"
        "\n"
        "Modes:\n"
        "  table     aligned columns between lines, the default; text is cut only on a terminal\n"
        "  box       the same with lines of Unicode, the default of the shell if the terminal has them\n"
        "  qbox      the same as box with literals of SQL; lines of more than 60 columns are wrapped\n"
        "  markdown  the same as Markdown has it\n"
        "  column    the same without lines\n"
        "  vertical  a line for each value, with a title for each row\n"
        "  line      a line for each value\n"
        "  list      values between separators, |\n"
        "  csv       comma-separated values, with a line of names\n"
        "  tsv       tab-separated values, with a line of names; quoted as in csv if necessary\n"
        "  json      one array of objects; a BLOB is {\"base64\": \"...\"}\n"
        "  jsonl     one object a line\n"
        "  html      rows of an HTML table\n"
        "  insert    INSERT statements\n"
        "  quote     literals of SQL\n"
        "  ascii     values between the controls US and RS\n"
        "  tcl       list elements of Tcl\n"
        "\n"
        "Values of parameters: 12 INTEGER, 1.5 REAL, x'00ff' BLOB, null NULL, 'text' or anything\n"
        "else TEXT. NAME may be a number: the parameter's position.\n"
        "\n"
        "Exit status, of the first failure: 0 success, 1 a query or command failed, 2 wrong usage,\n"
        "3 the service cannot be reached, 4 the result broke off, 5 the output cannot be written,\n"
        "6 --wait: nothing has changed within --timeout, 130 interrupted (Ctrl-C cancels the query).\n"
        "\n"
        "Examples:\n"
        "  ipcq-cli packages\n"
        "  ipcq-cli -p pattern='lib%' packages 'SELECT name, version FROM package WHERE name LIKE :pattern'\n"
        "  ipcq-cli packages .dump | sqlite3 copy.sqlite\n"
        "  ipcq-cli --wait packages package\n";

static void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void complain(const char *format, ...) {
        g_autofree char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        message = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        fprintf(stderr, "ipcq-cli: %s\nTry 'ipcq-cli --help'.\n", message);
}

/* ---- Tasks, whose order matters ----------------------------------------------------------------------------------- */

static void task_clear(void *data) {
        g_free(((Task *) data)->text);
}

static gboolean add_task(Options *options, const char *text, bool is_file, GError **error) {
        Task task = { .is_file = is_file };

        if (!is_file && !g_utf8_validate(text, -1, NULL)) {
                g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "SQL is UTF-8");
                return FALSE;
        }
        task.text = g_strdup(text);
        g_array_append_val(options->tasks, task);
        return TRUE;
}

static gboolean on_command(const char *name, const char *value, void *userdata, GError **error) {
        (void) name;
        return add_task(userdata, value, false, error);
}

static gboolean on_file(const char *name, const char *value, void *userdata, GError **error) {
        (void) name;
        return add_task(userdata, value, true, error);
}

static gboolean on_parameter(const char *name, const char *value, void *userdata, GError **error) {
        Options *options = userdata;
        g_autofree char *message = NULL;

        (void) name;
        if (parameter_list_add(options->parameters, value, &message) >= 0)
                return TRUE;
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "-p %s: %s", value, message);
        return FALSE;
}

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

static gboolean add_setting(Options *options, const char *name, const char *value, GError **error) {
        g_autofree char *message = NULL;
        Settings settings;
        int r;

        settings_init(&settings);
        r = settings_set(&settings, name, value, &message);
        settings_done(&settings);
        if (r < 0) {
                g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--%s=%s: %s",
                            g_str_equal(name, "nullvalue") ? "null" : name, value, message);
                return FALSE;
        }
        g_ptr_array_add(options->settings, g_strdup(name));
        g_ptr_array_add(options->settings, g_strdup(value));
        return TRUE;
}

/* Handles --mode=, -m, --headers=, --transport=, --timeout=, which are named like their settings. */
static gboolean on_setting(const char *name, const char *value, void *userdata, GError **error) {
        return add_setting(userdata, g_str_equal(name, "-m") ? "mode" : name + strlen("--"), value, error);
}

static gboolean on_null(const char *name, const char *value, void *userdata, GError **error) {
        (void) name;
        return add_setting(userdata, "nullvalue", value, error);
}

static gboolean on_bail(const char *name, const char *value, void *userdata, GError **error) {
        (void) name, (void) value;
        return add_setting(userdata, "bail", "on", error);
}

static gboolean on_no_pager(const char *name, const char *value, void *userdata, GError **error) {
        (void) name, (void) value;
        return add_setting(userdata, "pager", "off", error);
}

void options_apply(const Options *options, Settings *settings) {
        for (guint i = 0; i + 1 < options->settings->len; i += 2) {
                g_autofree char *message = NULL;

                (void) settings_set(settings, options->settings->pdata[i], options->settings->pdata[i + 1], &message);
        }
}

/* ---- Combinations of options -------------------------------------------------------------------------------------- */

/* The words are a database and tables. */
static int take_tables(Options *options, char **words) {
        if (options->list || options->single_transaction || options->tasks->len > 0) {
                complain("--wait excludes --list, --single-transaction, -c and -f.");
                return -EINVAL;
        }
        if (!words || options->since < 0) {
                complain(words ? "--since takes a number that --wait has written." : "--wait needs a DATABASE.");
                return -EINVAL;
        }
        for (char **word = words; *word; word++)
                if (!g_utf8_validate(*word, -1, NULL)) {
                        complain("names are UTF-8.");
                        return -EINVAL;
                }
        options->database = g_strdup(words[0]);
        options->wait_tables = g_strdupv(words + 1);
        return 0;
}

static int take_words(Options *options, char **words, GError **error) {
        if (options->wait)
                return take_tables(options, words);
        if (options->since != 0) {
                complain("--since needs --wait.");
                return -EINVAL;
        }
        if (options->list && options->single_transaction) {
                complain("--list and --single-transaction exclude each other.");
                return -EINVAL;
        }
        if (options->list && (words || options->tasks->len > 0)) {
                complain("--list takes no DATABASE and no SQL.");
                return -EINVAL;
        }
        for (char **word = words; word && *word; word++) {
                if (word > words && !add_task(options, *word, false, error))
                        return -EINVAL;
                if (word == words && !g_utf8_validate(*word, -1, NULL)) {
                        complain("DATABASE is UTF-8.");
                        return -EINVAL;
                }
        }
        options->database = words ? g_strdup(words[0]) : NULL;
        return 0;
}

static int take_bus(Options *options, bool system, bool user) {
        BusChoice *bus = &options->bus;

        if (system + user + (bus->address != NULL) > 1) {
                complain("--system, --user and --address exclude each other.");
                return -EINVAL;
        }
        if (bus->host && bus->address) {
                complain("--host and --address exclude each other.");
                return -EINVAL;
        }
        if (bus->address)
                bus->kind = BUS_ADDRESS;
        else if (user)
                bus->kind = BUS_USER;
        else
                bus->kind = system || bus->host ? BUS_SYSTEM : BUS_FOUND;
        return 0;
}

static void options_init(Options *options) {
        *options = (Options) {
                .tasks = g_array_new(FALSE, FALSE, sizeof(Task)),
                .settings = g_ptr_array_new_with_free_func(g_free),
                .parameters = parameter_list_new(),
        };
        g_array_set_clear_func(options->tasks, task_clear);
}

static int parse(int argc, char **argv, Options *o, GError **error) {
        g_autoptr(GOptionContext) context = g_option_context_new("[DATABASE [SQL...]]");
        GOptionGroup *group = g_option_group_new("ipcq-cli", "", "", o, NULL);
        gboolean system = FALSE, user = FALSE;
        g_auto(GStrv) words = NULL;
        const int F = G_OPTION_FLAG_FILENAME, N = G_OPTION_FLAG_NO_ARG;
        const GOptionEntry entries[] = {
                { "command", 'c', 0, G_OPTION_ARG_CALLBACK, on_command, "Run this; may be repeated, also with -f", "SQL" },
                { "file", 'f', F, G_OPTION_ARG_CALLBACK, on_file, "Run what the file holds, - for standard input", "FILE" },
                { "mode", 'm', 0, G_OPTION_ARG_CALLBACK, on_setting, "How rows are written, see below", "MODE" },
                { "headers", 0, 0, G_OPTION_ARG_CALLBACK, on_setting, "Write names of columns: on, off, auto", "WHEN" },
                { "null", 0, F, G_OPTION_ARG_CALLBACK, on_null, "Text for NULL, except in JSON", "TEXT" },
                { "output", 'o', 0, G_OPTION_ARG_FILENAME, &o->output, "Write results there, or to |COMMAND", "FILE" },
                { "param", 'p', F, G_OPTION_ARG_CALLBACK, on_parameter, "Bind a parameter; may be repeated", "NAME=VALUE" },
                { "parameter", 0, F | G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_CALLBACK, on_parameter, "The same", "NAME=VALUE" },
                { "bail", 0, N, G_OPTION_ARG_CALLBACK, on_bail, "Stop at the first failure", NULL },
                { "single-transaction", '1', 0, G_OPTION_ARG_NONE, &o->single_transaction,
                  "Run everything, or on a failure nothing", NULL },
                { "wait", 0, 0, G_OPTION_ARG_NONE, &o->wait, "Wait until one of the TABLEs of DATABASE changes",
                  NULL },
                { "since", 0, 0, G_OPTION_ARG_INT64, &o->since, "Count changes after this one, for --wait", "NUMBER" },
                { "timeout", 0, 0, G_OPTION_ARG_CALLBACK, on_setting, "Cancel a query after so many seconds", "SECONDS" },
                { "transport", 0, 0, G_OPTION_ARG_CALLBACK, on_setting, "How rows come: auto, pipe, channel, dbus", "WAY" },
                { "no-pager", 0, N, G_OPTION_ARG_CALLBACK, on_no_pager, "Let long results scroll by", NULL },
                { "no-init", 0, 0, G_OPTION_ARG_NONE, &o->no_init, "Read neither configuration nor init.sql", NULL },
                { "list", 'l', 0, G_OPTION_ARG_NONE, &o->list, "List the databases, with their descriptions", NULL },
                { "system", 0, 0, G_OPTION_ARG_NONE, &system, "Use the system bus, root's default", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &user, "Use the user's bus, the default of other users", NULL },
                { "host", 'H', 0, G_OPTION_ARG_STRING, &o->bus.host, "Use the bus of another machine, over ssh",
                  "USER@HOST" },
                { "address", 0, 0, G_OPTION_ARG_STRING, &o->bus.address, "Use the bus at this D-Bus address", "ADDRESS" },
                { "no-ask-password", 0, 0, G_OPTION_ARG_NONE, &o->no_ask_password,
                  "Do not have you authenticate, as on a terminal", NULL },
                { "version", 0, 0, G_OPTION_ARG_NONE, &o->version, "Show the version", NULL },
                { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &words, NULL, NULL },
                {},
        };

        g_option_context_set_summary(context, "Queries databases that sqlipcd shares: by hand, or for a script.");
        g_option_context_set_description(context, description);
        g_option_group_add_entries(group, entries);
        g_option_context_set_main_group(context, group);
        if (!g_option_context_parse(context, &argc, &argv, error))
                return -EINVAL;
        if (o->version)
                return 0;
        return take_bus(o, system, user) < 0 ? -EINVAL : take_words(o, words, error);
}

int options_parse(int argc, char **argv, Options *ret) {
        g_autoptr(GError) error = NULL;
        Options options;

        options_init(&options);
        if (parse(argc, argv, &options, &error) < 0) {
                if (error)
                        complain("%s.", error->message);
                options_done(&options);
                return -EINVAL;
        }
        *ret = options;
        return 0;
}

void options_done(Options *options) {
        g_clear_pointer(&options->bus.address, g_free);
        g_clear_pointer(&options->bus.host, g_free);
        g_clear_pointer(&options->output, g_free);
        g_clear_pointer(&options->database, g_free);
        g_clear_pointer(&options->wait_tables, g_strfreev);
        g_clear_pointer(&options->tasks, g_array_unref);
        g_clear_pointer(&options->settings, g_ptr_array_unref);
        options->parameters = parameter_list_free(options->parameters);
}
