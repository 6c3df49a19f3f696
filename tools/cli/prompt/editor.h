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

typedef struct Editor Editor;
typedef struct Shell Shell;

typedef struct EditorOptions {
        const char *history_path; /* NULL: no history file */
        size_t history_max;       /* statements */
        bool colors;
        Shell *shell;             /* for completion; borrowed */
} EditorOptions;

/* The earlier lines of the statement that is being typed. */
typedef struct EditorLines {
        const char *text; /* "": there are none */
        const char *open; /* in .text: the start of the string, name or comment that is still open at its end; NULL: none */
        bool started;     /* .text holds more than blanks and comments */
} EditorLines;

/** Reads the history. If that fails, it is reported, and the file is not written either. Returns 0 or -ENOMEM. Only one
 * editor may exist at a time. */
int editor_new(const EditorOptions *options, Editor **ret);
/** NULL is allowed. Returns NULL. */
Editor *editor_free(Editor *editor);

/** The prompt before the first line of a statement, which names the open database. It is safe to show. The caller frees
 * it. */
char *editor_prompt(const Editor *editor);

/** Lets the user type a line; pasted text may be several lines. Returns 1: `*ret`, which the caller frees, is the line
 * without newline; 0: Ctrl-D, end of file, SIGTERM or SIGHUP; -EINTR: Ctrl-C, `*ret_typed` is true if the line had text;
 * else the error of waiting. */
int editor_read_line(Editor *editor, const char *prompt, const EditorLines *before, char **ret, bool *ret_typed);

/** Adds a whole statement or command, with all its lines, to the history; an equal entry moves to the end. Text that begins
 * with a blank is not added. */
void editor_add_history(Editor *editor, const char *text);

/** Turns colours on or off (NO_COLOR, .color). */
void editor_set_colors(Editor *editor, bool colors);

#endif
