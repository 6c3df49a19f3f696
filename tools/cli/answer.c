/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers in text (answer.h). */
#include "answer.h"

#include <errno.h>
#include <string.h>

#include "options.h"

int answer_text(Shell *shell, const char *text) {
        const OutputOptions options = { .interactive = shell->interactive, .pager = shell->settings.pager };
        FILE *file;
        int r, end;

        r = output_begin(shell->output, &options, &file);
        if (r >= 0) {
                if (fputs(text, file) < 0)
                        r = -errno;
                end = output_end(shell->output);
                r = r < 0 ? r : end;
        }
        if (r == -EPIPE && shell->interactive)
                return 0;
        if (r < 0 && r != -EPIPE) /* who left knows */
                shell_complain(shell, "cannot write: %s", g_strerror(-r));
        if (r < 0)
                shell_note_failure(shell, EXIT_OUTPUT);
        return r;
}
