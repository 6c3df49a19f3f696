/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes an answer (the result of a query, or the text of a command) to the current output. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_ANSWER_H
#define SQLIPC_TOOLS_CLI_SHELL_ANSWER_H

#include "tools/cli/shell/shell.h"

/** Begins an answer. The stream in `ret` is borrowed until answer_end(). Returns 0, or the error of opening the output,
 * which has been reported. */
int answer_begin(Shell *shell, FILE **ret);
/** Ends the answer. `r` is 0, a failure that has been reported, or an error of the stream. Returns the write error, which is
 * reported here unless the user quit the pager; otherwise `r`. */
int answer_end(Shell *shell, int r);

/** Writes text that is safe to show, through the pager if it is long. Returns 0, also if the user quit the pager, or the
 * write error, which has been reported. */
int answer_text(Shell *shell, const char *text);

/** Reports that Ctrl-C or a termination signal ended the running operation, and sets the exit code. */
void answer_cancelled(Shell *shell);

#endif
