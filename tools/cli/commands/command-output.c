/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands for the format of results and their destination. */
#include <errno.h>

#include "tools/cli/commands/command-setting.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/shell/answer.h"

/* ---- .mode, .width ------------------------------------------------------------------------------------------------ */

static int run_mode(Shell *shell, const Command *command, char **arguments) {
        if (!arguments[1])
                return command_setting(shell, command, arguments);
        if (arguments[2] && !g_str_equal(arguments[1], "insert"))
                return command_misuse(shell, command);
        if (arguments[2] && command_set(shell, "insert-table", arguments[2]) < 0)
                return -EINVAL;
        return command_set(shell, "mode", arguments[1]);
}

static int run_width(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *widths = g_strjoinv(" ", arguments + 1);

        (void) command;
        return command_set(shell, "width", widths);
}

/* As in sqlite3's shell, \t is a tab here even without quotes. */
static int run_separator(Shell *shell, const Command *command, char **arguments) {
        const char *rest = arguments[1];
        bool is_quoted = *rest == '"' || *rest == '\'';
        g_autofree char *quoted = is_quoted ? g_strdup(rest) : g_strconcat("\"", rest, "\"", NULL);
        g_auto(GStrv) words = NULL;

        if (!*rest)
                return command_setting(shell, command, (char *[]) { arguments[0], NULL });
        if (command_split(quoted, &words) < 0 || g_strv_length(words) != 1)
                return command_misuse(shell, command);
        return command_setting(shell, command, (char *[]) { arguments[0], words[0], NULL });
}

/* ---- .output, .once ----------------------------------------------------------------------------------------------- */

static int redirect(Shell *shell, const Command *command, const char *rest, bool once) {
        g_autofree char *target = NULL, *message = NULL;
        int r;

        if (command_target(rest, &target) < 0 || (once && !target))
                return command_misuse(shell, command);
        r = output_redirect(shell->output, target ?: "", once, &message);
        return r < 0 ? command_fail(shell, r, "%s", message) : 0;
}

static int run_output(Shell *shell, const Command *command, char **arguments) {
        return redirect(shell, command, arguments[1], false);
}

static int run_once(Shell *shell, const Command *command, char **arguments) {
        return redirect(shell, command, arguments[1], true);
}

/* ---- The table ---------------------------------------------------------------------------------------------------- */

const Command commands_output[] = {
        { .name = "mode", .arguments = "[MODE | insert TABLE]", .summary = "Choose how results are written",
          .details = "For people: table, box, qbox, markdown, column, line, vertical. For programs: csv, tsv, json, jsonl,\n"
                     "list, html, insert, quote, ascii, tcl. INSERT statements name TABLE, by default \"table\".",
          .n_max = 2, .kinds = { ARGUMENT_SETTING, ARGUMENT_TABLE }, .run = run_mode },
        { .name = "headers", .arguments = "on|off|auto", .summary = "Write the names of columns",
          .details = "auto: as the mode has it.", .n_max = 1, .kinds = { ARGUMENT_SETTING }, .run = command_setting },
        { .name = "nullvalue", .arguments = "TEXT|auto", .summary = "Set the text for NULL",
          .details = "auto: the default of the mode. JSON and SQL have their own.", .n_max = 1, .run = command_setting },
        { .name = "separator", .arguments = "TEXT|auto", .summary = "Set the text between the values of mode list",
          .details = "auto: |. \\t is a tab.", .takes_rest = true, .run = run_separator },
        { .name = "width", .arguments = "[N...]", .summary = "Set the widths of the first columns of a grid",
          .details = "Negative: flushed right. 0: as wide as the values. Without N each column is.",
          .n_max = -1, .run = run_width },
        { .name = "vertical", .aliases = "x", .arguments = "on|off|auto",
          .summary = "Write a line for each value instead of a grid",
          .details = "auto: if a grid cannot be shrunk to the screen. \\x turns it.", .n_max = 1,
          .kinds = { ARGUMENT_SETTING }, .run = command_setting },
        { .name = "output", .aliases = "o", .arguments = "[FILE | \"|COMMAND\"]",
          .summary = "Send results to a file or a command from now on",
          .details = "Without an argument, results go to standard output, or to the file of --output, again.",
          .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_output },
        { .name = "once", .arguments = "FILE | \"|COMMAND\"", .summary = "Send the next result to a file or a command",
          .n_min = 1, .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_once },
        {},
};
