/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers to where results go: what a query gives, or a command says. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "shell.h"

/** An answer begins: `ret` takes it, borrowed until answer_end(). 0, or what opening gave, which was told. */
int answer_begin(Shell *shell, FILE **ret);
/** It is over. `r`: 0, or a failure that was told, or is the stream's own. Returns what writing gave, which is told
 * here, but for a pager that was quit; else `r`. */
int answer_end(Shell *shell, int r);

/** Writes text that may be shown, through the pager where it is long. 0 (also where the pager was quit), or what
 * writing gave, which was told. */
int answer_text(Shell *shell, const char *text);

/** Ctrl-C, or a signal to leave, ended what was under way: says so, and notes the exit code. */
void answer_cancelled(Shell *shell);

#endif
