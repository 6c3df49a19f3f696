/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands about the shell itself: help, settings, parameters, scripts, programs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/commands/command-setting.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/help.h"
#include "tools/cli/output/program.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/loop.h"
#include "tools/cli/shell/options.h"
#include "tools/terminal/format.h"
#include "tools/terminal/sink.h"

/* ---- .help, .show, .quit, .print ---------------------------------------------------------------------------------- */

static int run_help(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *text = NULL, *message = NULL;

        (void) command;
        if (!arguments[1])
                text = help_list();
        else
                text = g_str_equal(arguments[1], "--all") ? help_everything() : help_topic(arguments[1], &message);
        if (text)
                return answer_text(shell, text);
        return command_fail(shell, -EINVAL, "%s", message);
}

static void append_shown(GString *text, const char *name, const char *value) {
        g_string_append_printf(text, "%12s: ", name);
        format_shown_text(text, value, strlen(value), SIZE_MAX);
        g_string_append_c(text, '\n');
}

static int run_show(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *bus = session_describe_bus(&shell->session);
        g_autoptr(GString) text = g_string_new(NULL);

        (void) command, (void) arguments;
        append_shown(text, "bus", bus);
        append_shown(text, "database", shell->session.database ?: "none");
        append_shown(text, "output", output_target(shell->output));
        for (const char *const *name = settings_names(); *name; name++) {
                g_autofree char *value = settings_get(&shell->settings, *name);

                append_shown(text, *name, value);
        }
        return answer_text(shell, text->str);
}

static int run_quit(Shell *shell, const Command *command, char **arguments) {
        guint64 code;

        if (arguments[1]) {
                if (!g_ascii_string_to_unsigned(arguments[1], 10, 0, 255, &code, NULL))
                        return command_misuse(shell, command);
                shell->quit_code = (int) code;
                shell->exit_code = (int) code;
        }
        shell->quit = true;
        return 0;
}

static int run_print(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *words = g_strjoinv(" ", arguments + 1);
        g_autofree char *line = g_strconcat(words, "\n", NULL);

        (void) command;
        return answer_text(shell, line);
}

/* ---- .parameter --------------------------------------------------------------------------------------------------- */

static void append_text_literal(GString *text, const char *value, size_t max) {
        g_auto(GStrv) pieces = g_strsplit(value, "'", -1);
        g_autofree char *doubled = g_strjoinv("''", pieces);

        g_string_append_c(text, '\'');
        if (format_shown_text(text, doubled, strlen(doubled), max) < strlen(doubled))
                g_string_append(text, FORMAT_ELLIPSIS);
        g_string_append_c(text, '\'');
}

static void append_blob_literal(GString *text, const char *bytes, size_t size) {
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = text, .buffer = buffer, .size = sizeof buffer };

        sink_string(&sink, "x'");
        sink_hex(&sink, bytes, size);
        sink_char(&sink, '\'');
        sink_flush(&sink);
}

/* Appends a literal in the format that parameter.h reads, except that a long text or BLOB is cut on a terminal. */
static void append_literal(GString *text, const sqlipc_parameter *parameter, bool on_terminal) {
        char number[FORMAT_NUMBER_SIZE];

        switch (parameter->type) {
        case SQLIPC_INTEGER:
                g_string_append_len(text, number, (gssize) format_integer(number, parameter->integer));
                break;
        case SQLIPC_REAL:
                g_string_append_len(text, number, (gssize) format_double_exact(number, parameter->real));
                break;
        case SQLIPC_TEXT:
                append_text_literal(text, parameter->bytes, on_terminal ? RENDER_VALUE_MAX : SIZE_MAX);
                break;
        case SQLIPC_BLOB:
                if (on_terminal)
                        format_shown_blob(text, parameter->bytes, parameter->size);
                else
                        append_blob_literal(text, parameter->bytes, parameter->size);
                break;
        case SQLIPC_NULL:
                g_string_append(text, "NULL");
                break;
        }
}

static int list_parameters(Shell *shell) {
        size_t n;
        const sqlipc_parameter *parameters = parameter_list_get(shell->parameters, &n);
        g_autoptr(GString) text = g_string_new(NULL);

        if (n == 0) {
                shell_say(shell, "No parameter is set.");
                return 0;
        }
        for (size_t i = 0; i < n; i++) {
                format_shown_text(text, parameters[i].name, strlen(parameters[i].name), SIZE_MAX);
                g_string_append_c(text, ' ');
                append_literal(text, &parameters[i], output_is_terminal(shell->output));
                g_string_append_c(text, '\n');
        }
        return answer_text(shell, text->str);
}

/* Sets a parameter. `value` is the verbatim text: '12' is text, as on the command line. The form "'12'" of sqlite3's users
 * is accepted as well. */
static int set_parameter(Shell *shell, const char *name, const char *value) {
        g_auto(GStrv) words = NULL;
        g_autofree char *message = NULL;

        if (*value == '"' && command_split(value, &words) >= 0 && g_strv_length(words) == 1)
                value = words[0];
        if (parameter_list_set(shell->parameters, name, value, &message) >= 0)
                return 0;
        return command_fail(shell, -EINVAL, "parameter %s: %s", name, message);
}

static int unset_parameter(Shell *shell, const char *name) {
        if (parameter_list_unset(shell->parameters, name))
                return 0;
        return command_fail(shell, -EINVAL, "there is no parameter %s", name);
}

static int run_parameter(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *verb = NULL, *name = NULL;
        const char *rest = arguments[1];

        if (command_take_word(&rest, &verb) <= 0 || command_take_word(&rest, &name) < 0)
                return command_misuse(shell, command);
        rest += strspn(rest, " \t");
        if (g_str_equal(verb, "set") && name && *rest)
                return set_parameter(shell, name, rest);
        if (g_str_equal(verb, "unset") && name && !*rest)
                return unset_parameter(shell, name);
        if (name)
                return command_misuse(shell, command);
        if (g_str_equal(verb, "list"))
                return list_parameters(shell);
        if (!g_str_equal(verb, "clear"))
                return command_misuse(shell, command);
        parameter_list_clear(shell->parameters);
        return 0;
}

static const char *const parameter_verbs[] = { "set", "unset", "list", "clear", NULL };

/* ---- .read -------------------------------------------------------------------------------------------------------- */

static int read_script(Shell *shell, FILE *file, const char *name) {
        int r;

        shell->depth++;
        r = loop_run_script(shell, script_new_file(file, true, name));
        shell->depth--;
        return r;
}

static int read_file(Shell *shell, const char *path) {
        FILE *file = fopen(path, "re");
        int r = -errno;

        return file ? read_script(shell, file, path) : command_fail(shell, r, "%s: %s", path, g_strerror(-r));
}

static int start_writer(const char *command, FILE **ret, pid_t *ret_pid) {
        const char *const argv[] = { "sh", "-c", command, NULL };
        ProgramFiles files = PROGRAM_FILES_OURS;
        int pipe_fds[2], r;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        files.output = pipe_fds[1];
        r = program_start(argv, &files, ret_pid);
        (void) close(pipe_fds[1]);
        if (r < 0) {
                (void) close(pipe_fds[0]);
                return r;
        }
        *ret = fdopen(pipe_fds[0], "r"); /* the only possible failure is lack of memory, which ends programs of GLib */
        g_assert(*ret);
        return 0;
}

/* `target` is "|command". */
static int read_command(Shell *shell, const char *target) {
        FILE *file = NULL;
        pid_t pid;
        int r, status;

        r = start_writer(target + 1, &file, &pid);
        if (r < 0)
                return command_fail(shell, r, "%s: %s", target, g_strerror(-r));
        r = read_script(shell, file, target);
        if (r == -ECANCELED) /* a Ctrl-C may have come before the command could receive it */
                (void) kill(pid, SIGTERM);
        status = program_wait(pid, -1);
        if (status == 0 || r < 0)
                return r;
        return command_fail(shell, -EIO, "%s: it ended with exit code %d", target, status);
}

static int run_read(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *target = NULL;

        if (command_target(arguments[1], &target) < 0 || !target)
                return command_misuse(shell, command);
        if (shell->depth >= SHELL_DEPTH_MAX)
                return command_fail(shell, -ELOOP, "%s: scripts read each other more than %d deep", target, SHELL_DEPTH_MAX);
        return *target == '|' ? read_command(shell, target) : read_file(shell, target);
}

/* ---- .cd, .shell -------------------------------------------------------------------------------------------------- */

static int run_cd(Shell *shell, const Command *command, char **arguments) {
        const char *folder = arguments[1] ?: g_get_home_dir();

        (void) command;
        return chdir(folder) == 0 ? 0 : command_fail(shell, -errno, "%s: %s", folder, g_strerror(errno));
}

static int run_shell(Shell *shell, const Command *command, char **arguments) {
        const char *user_shell = g_getenv("SHELL");
        int r;

        (void) command;
        r = program_run_shell(*arguments[1] ? arguments[1] : user_shell && *user_shell ? user_shell : "sh", NULL);
        if (r == 0 || r == -ECANCELED)
                return r;
        if (r < 0)
                return command_fail(shell, r, "cannot start it: %s", g_strerror(-r));
        return command_fail(shell, -EIO, "it ended with exit code %d", r);
}

/* ---- .transport --------------------------------------------------------------------------------------------------- */

static int run_transport(Shell *shell, const Command *command, char **arguments) {
        const char *const *names = settings_values("transport"); /* by sqlipc_transport */
        sqlipc_transport last = shell->session.last_transport;
        g_autofree char *line = NULL;

        if (arguments[1] || last == SQLIPC_TRANSPORT_AUTO)
                return command_setting(shell, command, arguments);
        line = g_strdup_printf("transport: %s, the last run by %s\n", names[shell->settings.transport], names[last]);
        return answer_text(shell, line);
}

/* ---- The table ---------------------------------------------------------------------------------------------------- */

#define SETTING(its_name, its_aliases, its_arguments, its_summary, its_details)                                   \
        { .name = its_name, .aliases = its_aliases, .arguments = its_arguments, .summary = its_summary,           \
          .details = its_details, .n_max = 1, .kinds = { ARGUMENT_SETTING }, .run = command_setting }

const Command commands_shell[] = {
        { .name = "help", .aliases = "?", .arguments = "[TOPIC | --all]",
          .summary = "What commands there are, or all about one",
          .details = "TOPIC is a command, or a word that its description has.",
          .n_max = 1, .kinds = { ARGUMENT_COMMAND }, .run = run_help },
        { .name = "quit", .aliases = "q", .preferred = true, .arguments = "[CODE]", .summary = "Leave",
          .details = "CODE is what ipcq-cli ends with, 0 to 255.", .n_max = 1, .run = run_quit },
        { .name = "exit", .arguments = "[CODE]", .summary = "Leave", .details = "As .quit.", .n_max = 1, .run = run_quit },
        { .name = "show", .summary = "Show the settings, each named as in the configuration file", .run = run_show },
        { .name = "print", .aliases = "echo qecho", .arguments = "TEXT...", .summary = "Write the text to where results go",
          .n_max = -1, .run = run_print },
        SETTING("timer", "timing", "on|off", "Have the line below results say how long it took",
                "It shows the time that the service needed, and the time until the last row was here."),
        SETTING("footer", NULL, "on|off", "Write a line below results on a terminal: rows, time", NULL),
        SETTING("stats", NULL, "on|off", "Write what is known of each run below its result", NULL),
        SETTING("changes", NULL, "on|off", "Write how many rows each statement has changed",
                "changes: those of the last statement that writes. total_changes: those of all since the shell began.\n"
                "At the prompt, the line below a statement without a result has the number in any case."),
        SETTING("progress", NULL, "on|off", "Say on a terminal how far a long result is", NULL),
        SETTING("echo", NULL, "on|off", "Write each statement and command before it runs", NULL),
        SETTING("bail", NULL, "on|off", "Stop scripts at the first failure", "The prompt stays open in any case."),
        SETTING("verbose", NULL, "on|off|auto", "Show the D-Bus names of errors",
                "auto: in scripts, and not at the prompt. org.sqlipc1(5) lists the names."),
        SETTING("eqp", NULL, "on|off", "Show the plan before each result",
                "As EXPLAIN QUERY PLAN tells it, drawn as a tree."),
        SETTING("color", NULL, "on|off", "Use colours on the terminal",
                "Off from the start if NO_COLOR is set, if TERM is dumb, and if output is not a terminal."),
        SETTING("timeout", NULL, "SECONDS|off", "Cancel statements that run longer",
                "SECONDS may have a fraction. Limits of the service's own hold in any case, see .limit."),
        { .name = "pager", .arguments = "COMMAND|off|auto",
          .summary = "Show results that are taller than the screen by COMMAND",
          .details = "auto: $PAGER, or else less -SR. Quitting the pager ends the query.", .n_max = -1,
          .kinds = { ARGUMENT_SETTING }, .run = command_setting },
        { .name = "transport", .arguments = "auto|pipe|channel|dbus", .summary = "How requests and rows travel",
          .details = "pipe: asked over the bus, rows down a pipe. channel: over a private socket to the worker, faster for\n"
                     "small results. dbus: all of it as messages of the bus, the only way to another host. auto chooses.",
          .n_max = 1, .kinds = { ARGUMENT_SETTING }, .run = run_transport },
        { .name = "parameter", .arguments = "set NAME VALUE | unset NAME | list | clear",
          .summary = "Values for the parameters of statements, as ?1, :name, @name, $name",
          .details = "NAME is a name with or without its prefix, or a number: the position. VALUE is 12 INTEGER, 1.5 REAL,\n"
                     "x'00ff' BLOB, null NULL; 'text' or anything else is TEXT. A parameter that has no value is NULL.",
          .n_min = 1, .takes_rest = true, .kinds = { ARGUMENT_WORDS, ARGUMENT_NONE }, .words = parameter_verbs,
          .run = run_parameter },
        { .name = "read", .aliases = "i", .arguments = "FILE | \"|COMMAND\"",
          .summary = "Run the statements and commands of a file",
          .details = "Or those that COMMAND writes. Complaints have the file's name and the line.",
          .n_min = 1, .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_read },
        { .name = "cd", .aliases = "cd", .arguments = "[FOLDER]",
          .summary = "Change the folder that names of files start from",
          .n_max = 1, .kinds = { ARGUMENT_FILE }, .run = run_cd },
        { .name = "shell", .aliases = "!", .arguments = "[COMMAND]",
          .summary = "Run a command of the system's shell, or open one",
          .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_shell },
        { .name = "system", .arguments = "[COMMAND]", .summary = "Run a command of the system's shell, or open one",
          .details = "As .shell.", .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_shell },
        {},
};
