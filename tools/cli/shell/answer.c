/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes answers to the current output (answer.h). */
#include "tools/cli/shell/answer.h"

#include <errno.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/shell/options.h"

void answer_cancelled(Shell *shell) {
        if (!interrupt_leave())
                shell_say(shell, "Cancelled.");
        shell_note_failure(shell, interrupt_leave() ? 128 + interrupt_leave() : EXIT_INTERRUPTED);
}

static int tell(Shell *shell, int r) {
        if (r == -ECANCELED) { /* while waiting for the reader */
                answer_cancelled(shell);
                return r;
        }
        if (r != -EPIPE && r != -ECHILD) /* the user knows that the reader left, and a failed command has been reported */
                shell_complain(shell, "cannot write: %s", g_strerror(-r));
        shell_note_failure(shell, EXIT_OUTPUT);
        return r;
}

int answer_begin(Shell *shell, FILE **ret) {
        const OutputOptions options = { .interactive = shell->interactive, .pager = shell->settings.pager };
        int r = output_begin(shell->output, &options, ret);

        if (r < 0) {
                shell_complain(shell, "cannot write to %s: %s", output_target(shell->output), g_strerror(-r));
                shell_note_failure(shell, EXIT_OUTPUT);
        }
        return r;
}

int answer_end(Shell *shell, int r) {
        int end = output_end(shell->output);

        if (end == -EPIPE && shell->interactive)
                return 0;
        return end < 0 ? tell(shell, end) : r;
}

int answer_text(Shell *shell, const char *text) {
        FILE *file;
        int r = answer_begin(shell, &file);

        if (r < 0)
                return r;
        if (fputs(text, file) < 0)
                r = -errno;
        return answer_end(shell, r);
}
