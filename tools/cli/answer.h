/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a command answers in text, to where results go. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "shell.h"

/** Writes text that may be shown, through the pager where it is long. 0 (also where the pager was quit), or what writing gave,
 * which was told. */
int answer_text(Shell *shell, const char *text);

#endif
