/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The prompt: GNU readline, with a history file (0600, no duplicates), bracketed paste, completion and coloured input. On a
 * terminal without cursor movement (TERM=dumb) lines are read without readline. The prompt waits for keys and signals in one
 * poll(), so Ctrl-C never interrupts other work.
 */
#ifndef SQLIPC_TOOLS_CLI_PROMPT_EDITOR_H
#define SQLIPC_TOOLS_CLI_PROMPT_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/cli/shell/script.h"
#include "tools/cli/shell/shell.h"

typedef struct EditorOptions {
        const char *history_path; /* NULL: no history file */
        size_t history_max;       /* statements */
        bool colors;
        Shell *shell;             /* for completion and messages; borrowed */
} EditorOptions;

/** Reads the history. If that fails, it is reported, and the file is not written either. Returns 0 or -ENOMEM. Only one
 * editor may exist at a time. */
int editor_new(const EditorOptions *options, Editor **ret);
/** NULL is allowed. Returns NULL. */
Editor *editor_free(Editor *editor);

/** The editor as a prompt of script.h; borrows the editor. It names the open database. */
Prompt editor_as_prompt(Editor *editor);

/** Adds a whole statement or command, with all its lines, to the history; an equal entry moves to the end. Text that begins
 * with a blank is not added. */
void editor_add_history(Editor *editor, const char *text);

/** Turns colours on or off (NO_COLOR, .color). */
void editor_set_colors(Editor *editor, bool colors);

#endif
