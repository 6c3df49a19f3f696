/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands that run statements: again, over and over, from a file, from an editor, as a picture. */
#include <errno.h>

#include "command.h"

/* ---- \g, \gx, \r -------------------------------------------------------------------------------------------------- */

/* What is typed and not yet run, else what ran last. To be freed; NULL: nothing, which was told. */
static char *current_statement(Shell *shell) {
        const char *pending = shell->unit.pending;

        if (pending && *pending)
                return g_strdup(pending);
        if (!shell->statement)
                shell_complain(shell, "there is no statement yet");
        return g_strdup(shell->statement);
}

static int run_statement(Shell *shell, const char *sql) {
        Unit unit = shell->unit;

        unit.type = UNIT_SQL;
        unit.text = sql;
        unit.pending = "";
        return shell_run_unit(shell, &unit);
}

static int run_go(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *sql = current_statement(shell), *target = NULL, *message = NULL;
        int r;

        if (!sql)
                return -EINVAL;
        if (command_target(arguments[1], &target) < 0)
                return command_misuse(shell, command);
        if (target) {
                r = output_redirect(shell->output, target, true, &message);
                if (r < 0) {
                        shell_complain(shell, "%s", message);
                        return r;
                }
        }
        return run_statement(shell, sql);
}

static int run_go_vertical(Shell *shell, const Command *command, char **arguments) {
        const Toggle before = shell->settings.vertical;
        int r;

        shell->settings.vertical = TOGGLE_ON;
        r = run_go(shell, command, arguments);
        shell->settings.vertical = before;
        return r;
}

static int run_reset(Shell *shell, const Command *command, char **arguments) {
        (void) command, (void) arguments;
        shell_say(shell, "What was typed is dropped.");
        return 0;
}

/* ---- The table ---------------------------------------------------------------------------------------------------- */

const Command commands_query[] = {
        { .name = "go", .aliases = "g", .arguments = "[FILE | \"|COMMAND\"]", .summary = "Run what was typed, or the last statement again",
          .details = "With FILE or COMMAND the result goes there.",
          .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_go },
        { .name = "gox", .aliases = "gx", .arguments = "[FILE | \"|COMMAND\"]", .summary = "As .go, a line for each value",
          .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_go_vertical },
        { .name = "reset", .aliases = "r", .summary = "Drop what was typed of a statement", .run = run_reset },
        {},
};
