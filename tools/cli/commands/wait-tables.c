/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits until tables change (wait-tables.h). */
#include "tools/cli/commands/wait-tables.h"

#include <errno.h>
#include <inttypes.h>

#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/service.h"
#include "tools/cli/shell/table-watch.h"

/* 0: without a limit. */
static uint64_t after(uint64_t usec) {
        return usec > 0 ? (uint64_t) g_get_monotonic_time() + usec : UINT64_MAX;
}

/* The service answers soon, unless a user must authenticate before. --timeout is for the wait after that. */
static int wait_for_change(Shell *shell, const char *const *tables, uint64_t since, uint64_t *ret_sequence) {
        uint64_t answer_usec = shell->session.interactive_authorization ? 0 : SERVICE_WAIT_USEC;
        sqlipc_watch *watch;
        int r;

        r = table_watch_open(shell, tables, since, after(answer_usec), &watch);
        if (r < 0)
                return r;
        r = table_watch_wait(shell, watch, after(shell->settings.timeout_usec));
        *ret_sequence = sqlipc_watch_sequence(watch);
        (void) sqlipc_watch_close(watch);
        return r;
}

void wait_tables(Shell *shell, const char *const *tables, uint64_t since) {
        g_autofree char *line = NULL;
        uint64_t sequence;
        int r = wait_for_change(shell, tables, since, &sequence);

        if (r >= 0) {
                if (r == 0)
                        shell->exit_code = EXIT_UNCHANGED;
                line = g_strdup_printf("%" PRIu64 "\n", sequence);
                (void) answer_text(shell, line);
        } else if (r == -ECANCELED)
                answer_cancelled(shell);
        else {
                query_complain(shell, r, NULL);
                shell_note_failure(shell, query_exit_code(shell, r));
        }
}
