/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ipcq-cli: the shell of sqlipc, for people and for scripts; shell.h has an overview. If a run fails, the rows that have
 * arrived are written before the error message.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/wait-tables.h"
#include "tools/cli/output/interrupt.h"
#include "tools/cli/prompt/editor.h"
#include "tools/cli/shell/command.h"
#include "tools/cli/shell/loop.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/shell.h"
#include "tools/cli/shell/transaction.h"
#include "tools/cli/shell/user-configuration.h"

/* Opens /dev/null for closed standard streams: otherwise the next file would get such a number, and rows could be written to
 * the bus's socket. Read-only, so that writing fails as it should. */
static void occupy_standard_streams(void) {
        for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = open("/dev/null", O_RDONLY | O_CLOEXEC))
                if (fd > STDERR_FILENO) {
                        close(fd);
                        return;
                }
}

/* Sets the locale. Values and their widths are UTF-8 in every locale. Returns true if the terminal shows UTF-8, according to
 * the user's locale. */
static bool set_locale(void) {
        bool shows_utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;

        if (!shows_utf8)
                (void) setlocale(LC_CTYPE, "C.UTF-8");
        return shows_utf8;
}

static bool wants_colors(void) {
        const char *term = g_getenv("TERM"), *no_color = g_getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && !g_str_equal(term, "dumb");
}

static void set_up(Shell *shell, Options *options, bool shows_utf8) {
        shell->interactive = options->tasks->len == 0 && !options->list && !options->wait && isatty(STDIN_FILENO) &&
                             isatty(STDOUT_FILENO);
        shell->settings.colors = wants_colors();
        shell->settings.timer = shell->interactive;
        shell->settings.mode = shell->interactive && shows_utf8 ? RENDER_BOX : RENDER_TABLE;
        shell->session.bus = options->bus;
        options->bus = (BusChoice) {};
        /* Passwords can be asked only on a terminal. */
        shell->session.interactive_authorization =
                !options->no_ask_password && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
        parameter_list_free(shell->parameters);
        shell->parameters = g_steal_pointer(&options->parameters);
}

static int redirect(Shell *shell, const Options *options) {
        g_autofree char *message = NULL;
        int r = options->output ? output_redirect(shell->output, options->output, false, &message) : 0;

        if (r < 0) {
                shell_complain(shell, "%s", message);
                shell->exit_code = EXIT_OUTPUT;
        }
        return r;
}

/* ---- For scripts -------------------------------------------------------------------------------------------------- */

static int run_file(Shell *shell, const char *path) {
        bool is_stdin = g_str_equal(path, "-");
        FILE *file = is_stdin ? stdin : fopen(path, "re");
        int r;

        shell->stdin_is_script |= is_stdin;
        if (!file) {
                r = -errno;
                shell_complain(shell, "%s: %s", path, g_strerror(-r));
                shell_note_failure(shell, EXIT_USAGE);
                return r;
        }
        return loop_run_script(shell, script_new_file(file, !is_stdin, is_stdin ? "stdin" : path));
}

static void run_tasks(Shell *shell, const Options *options) {
        int r = 0;

        for (guint i = 0; i < options->tasks->len && !shell->quit; i++) {
                const Task *task = &g_array_index(options->tasks, Task, i);

                if (task->is_file)
                        r = run_file(shell, task->text);
                else
                        r = loop_run_script(shell, script_new_text(task->text, NULL));
                if (r < 0)
                        return;
        }
}

/* Reports a parameter that no statement has: a misspelled name would otherwise silently leave NULL in its place. */
static void tell_unused_parameters(Shell *shell) {
        const char *name = parameter_list_unused(shell->parameters);

        if (!name || shell->exit_code != EXIT_OK)
                return;
        shell_complain(shell, "no statement has the parameter %s", name);
        shell->exit_code = EXIT_USAGE;
}

/* Closes the target of -o or .output, because some errors occur only at its end. */
static void end_output(Shell *shell) {
        g_autofree char *message = NULL;
        int r = output_redirect(shell->output, "", false, &message);

        if (r >= 0)
                return;
        if (r != -ECHILD) /* which has been reported */
                shell_complain(shell, "%s", message);
        shell_note_failure(shell, r == -ECANCELED ? EXIT_INTERRUPTED : EXIT_OUTPUT);
}

static void run_scripts(Shell *shell, const Options *options) {
        if (options->wait)
                wait_tables(shell, (const char *const *) options->wait_tables, (uint64_t) options->since);
        else if (options->list)
                (void) loop_run_script(shell, script_new_text(".databases", NULL));
        else if (options->tasks->len > 0)
                run_tasks(shell, options);
        else
                (void) run_file(shell, "-");
}

/* --single-transaction: the first failure ends the script, and takes back everything. */
static void run_as_one(Shell *shell, const Options *options) {
        int r = transaction_begin_script(shell);

        if (r >= 0) {
                shell->settings.bail = true;
                run_scripts(shell, options);
                tell_unused_parameters(shell);
                if (shell->exit_code == EXIT_OK && transaction_is_within_script(shell)) {
                        shell_complain(shell, "the input ended before the COMMIT of its last BEGIN");
                        shell_note_failure(shell, EXIT_QUERY);
                }
                r = shell->exit_code == EXIT_OK && !interrupt_leave() ? transaction_commit(shell) : 0;
        }
        if (r < 0)
                shell_note_failure(shell, query_exit_code(shell, r));
        if (shell->exit_code != EXIT_OK && r != -ECONNABORTED) /* that error says that the outcome is unknown */
                shell_complain(shell, "nothing was changed (--single-transaction)");
}

/* A script that lacks COMMIT would otherwise lose its changes silently. */
static void tell_open_transaction(Shell *shell) {
        if (shell->session.transaction.writes && !interrupt_leave() && *transaction_mark(&shell->session) == '*')
                shell_complain(shell, "the transaction was open at the end, and is rolled back; COMMIT keeps its changes");
}

static void run_for_script(Shell *shell, const Options *options) {
        shell->session.database = g_strdup(options->database);
        if (options->single_transaction) {
                run_as_one(shell, options);
        } else {
                run_scripts(shell, options);
                tell_open_transaction(shell);
        }
        tell_unused_parameters(shell);
        end_output(shell);
}

/* ---- For people --------------------------------------------------------------------------------------------------- */

/* Opens the database of the command line. If it does not exist, that is reported and the prompt opens nevertheless, so that
 * the user can choose another one. */
static int open_first(Shell *shell, const char *database) {
        int r = query_open_database(shell, database);

        if (r >= 0 || r == -ENOENT)
                return 0;
        shell->exit_code = query_exit_code(shell, r);
        return r;
}

static void run_prompt(Shell *shell) {
        const Prompt prompt = editor_as_prompt(shell->editor);

        shell_say(shell, "ipcq-cli " SQLIPC_VERSION "%s%s. Statements end with ;, .help lists commands, Ctrl-D leaves.",
                  shell->session.database ? " on " : "", shell->session.database ?: "");
        (void) loop_run_script(shell, script_new_prompt(&prompt));
        shell->exit_code = shell->quit_code;
}

static int run_for_people(Shell *shell, const Options *options) {
        g_autofree char *history = user_configuration_history_path();
        EditorOptions editing = {
                .history_path = history,
                .history_max = 10000,
                .colors = shell->settings.colors,
                .shell = shell,
        };
        int r;

        if (options->database && open_first(shell, options->database) < 0)
                return 0;
        if (!options->no_init)
                user_configuration_run_init(shell);
        r = editor_new(&editing, &shell->editor);
        if (r < 0)
                return r;
        if (!shell->quit)
                run_prompt(shell);
        shell->editor = editor_free(shell->editor);
        return 0;
}

/* ---- Start -------------------------------------------------------------------------------------------------------- */

static int run(Shell *shell, Options *options, bool shows_utf8) {
        int r;

        r = interrupt_begin();
        if (r >= 0)
                r = shell_init(shell);
        if (r < 0) {
                fprintf(stderr, "ipcq-cli: cannot start: %s\n", g_strerror(-r));
                return EXIT_QUERY;
        }
        set_up(shell, options, shows_utf8);
        if (shell->interactive && !options->no_init)
                user_configuration_read(shell);
        options_apply(options, &shell->settings);
        shell->session.transport = shell->settings.transport;
        if (shell->interactive && options->single_transaction) {
                shell_complain(shell, "--single-transaction needs SQL, -c, -f or standard input");
                return EXIT_USAGE;
        }
        if (redirect(shell, options) < 0)
                return shell->exit_code;
        if (!shell->interactive)
                run_for_script(shell, options);
        else
                (void) run_for_people(shell, options);
        return interrupt_leave() ? 128 + interrupt_leave() : shell->exit_code;
}

int main(int argc, char **argv) {
        bool shows_utf8 = set_locale();
        Options options;
        Shell shell = {};
        int r;

        occupy_standard_streams();
        command_set_groups(commands_all);
        /* A closed reader is reported by our exit code. */
        (void) signal(SIGPIPE, SIG_IGN);
        if (options_parse(argc, argv, &options) < 0)
                return EXIT_USAGE;
        if (options.version) {
                puts("ipcq-cli " SQLIPC_VERSION);
                r = fflush(stdout) == 0 ? EXIT_OK : EXIT_OUTPUT;
        } else {
                r = run(&shell, &options, shows_utf8);
                shell_done(&shell);
        }
        options_done(&options);
        return r;
}
