/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop over units (loop.h). */
#include "tools/cli/shell/loop.h"

#include <errno.h>
#include <stdio.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/shell/command.h"
#include "tools/cli/shell/dialect.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-print.h"
#include "tools/cli/shell/transaction.h"
#include "tools/cli/sql/sql-control.h"

static SqlDialect on_dialect(void *userdata, bool again) {
        if (again)
                dialect_forget(userdata);
        dialect_look_up(userdata);
        return session_dialect(&((Shell *) userdata)->session);
}

/* Refuses SQL that was split by other rules than those of the database, which the service did not say in time. */
static int check_dialect(Shell *shell, const Unit *unit) {
        int r;

        if ((unit->type != UNIT_SQL && !*unit->pending) || !shell->session.database)
                return 0;
        r = dialect_require(shell);
        if (r < 0 || unit->dialect == session_dialect(&shell->session))
                return r;
        shell_complain(shell, "the service did not say in time which SQL %s has, so this did not run: try again",
                       shell->session.database);
        return -EINVAL;
}

int loop_run_unit(Shell *shell, const Unit *unit) {
        const Unit before = shell->unit;
        int r;

        shell->unit = *unit;
        if (shell->settings.echo) {
                printf("%s%s\n", unit->text, unit->type == UNIT_SQL ? ";" : "");
                (void) fflush(stdout);
        }
        r = check_dialect(shell, unit);
        if (r < 0)
                ;
        else if (unit->type == UNIT_SQL) {
                g_free(shell->statement);
                shell->statement = g_strdup(unit->text);
                r = query_print(shell, shell->statement);
        } else
                r = command_run(shell, unit);
        shell->unit = before;
        return r;
}

/* Returns true if the script must end after a failure. The prompt never ends; a script that it reads by .read ends like any
 * script. */
static bool must_stop(const Shell *shell, int r) {
        if (interrupt_leave() != 0)
                return true;
        if (shell->interactive && shell->depth == 0)
                return false;
        return shell->settings.bail || r == -ECANCELED || (!shell->interactive && shell->exit_code == EXIT_OUTPUT);
}

/* Handles Ctrl-C: the first one at an empty prompt explains how to leave, the next one leaves. */
static void on_interrupt(Shell *shell, const Script *script, unsigned *n_idle) {
        if (script_was_typing(script)) {
                *n_idle = 0;
                return;
        }
        if ((*n_idle)++ == 0)
                shell_say(shell, "Ctrl-C again, Ctrl-D or .quit leaves.");
        else
                shell->quit = true;
}

/* Reports why `unit` could not be read. Returns true if the script can go on. */
static bool can_read_on(Shell *shell, const Unit *unit, int r) {
        const Unit before = shell->unit;

        shell->unit = *unit;
        if (r == -ECANCELED && shell->interactive)
                shell_say(shell, "Cancelled.");
        else if (r == -ECANCELED) /* no statement was cancelled, which the exit status alone would say */
                shell_complain(shell, "interrupted between two statements; those before have been carried out");
        else
                shell_complain(shell, "%s", r == -EILSEQ ? "what is read here is no UTF-8 text" : g_strerror(-r));
        shell->unit = before;
        return r == -EILSEQ;
}

/* Runs a unit. After a command like \d or \x, the unfinished statement continues. */
static int run_unit(Shell *shell, Script *script, const Unit *unit) {
        int r = loop_run_unit(shell, unit);

        if (r != -ECANCELED && *unit->pending && !shell->took_pending)
                script_put_back(script);
        return r;
}

/* Refuses COPY ... FROM STDIN, whose data would be read as statements. */
static bool refuses_data(const Shell *shell, const Unit *unit) {
        if (unit->type != UNIT_SQL || unit->dialect != SQL_DIALECT_POSTGRESQL || !sql_control_copies_in(unit->text))
                return false;
        shell_complain(shell, "COPY ... FROM STDIN is not possible, and nothing after it was read: use .import FILE TABLE");
        return true;
}

/* Returns 1: there may be more; 0: the end; negative: the script ends with this error. */
static int run_next(Shell *shell, Script *script, unsigned *n_idle) {
        bool goes_on = true;
        Unit unit;
        int r = script_next(script, &unit);

        if (r == -EINTR) {
                on_interrupt(shell, script, n_idle);
                return 1;
        }
        *n_idle = 0;
        if (r == 0)
                return 0;
        if (r > 0 && refuses_data(shell, &unit)) {
                shell_note_failure(shell, EXIT_QUERY);
                script_drop(script);
                return shell->interactive && shell->depth == 0 ? 1 : -EINVAL;
        }
        if (r > 0) /* a termination signal may have cut the unit short */
                r = interrupt_leave() ? -ECANCELED : run_unit(shell, script, &unit);
        else
                goes_on = can_read_on(shell, &unit, r);
        if (r < 0) {
                shell_note_failure(shell, interrupt_leave() ? 128 + interrupt_leave() : query_exit_code(shell, r));
                if (!goes_on || must_stop(shell, r))
                        return r;
                if (r == -ECANCELED)
                        script_drop(script);
        }
        return 1;
}

/* Asks before the user leaves an open transaction. */
static bool stays(Shell *shell, Script *script) {
        if (!shell->interactive || shell->depth > 0 || interrupt_leave() != 0 || *transaction_mark(&shell->session) != '*' ||
            !script_stays(script, "A transaction is open, and leaving rolls it back. Leave? [y/N] "))
                return false;
        shell->quit = false;
        shell->quit_code = 0;
        return true;
}

int loop_run_script(Shell *shell, Script *script) {
        unsigned n_idle = 0;
        int r = 1;

        script_set_dialect(script, on_dialect, shell);
        do
                while (r > 0 && !shell->quit && interrupt_leave() == 0)
                        r = run_next(shell, script, &n_idle);
        while (stays(shell, script) && (r = 1));
        script_free(script);
        return r < 0 ? r : 0;
}
